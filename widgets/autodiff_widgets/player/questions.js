/** Asking what comes next before it is shown. */

import { html, pushButton } from "./elements.js";

/**
 * @param {{say(text: string): void, show(number: number): void, home(): void}} player
 */
export function questions(player) {
  const root = html("div", { class: "answers", role: "group", "aria-label": "Your answer" });
  /** @type {Map<Frame, boolean>} */
  const answered = new Map(); // whether the answer was right
  /** @type {{number: number, frame: Frame, question: Question} | null} */
  let asked = null; // what waits for an answer

  /** Answer what was asked, and show its frame with the verdict. @param {string | null} key */
  function answer(key) {
    if (!asked) return;
    const { number, frame, question } = asked;
    if (key !== null) answered.set(frame, key === question.right);
    player.home();
    player.show(number);
    const all = [...answered.values()];
    const truth = question.choices.find(([choice]) => choice === question.right)?.[1];
    const verdict = key === question.right ? "Right!" : `${key === null ? "It is" : "No, it is"} \`${truth}\`.`;
    const score = all.length ? ` (${all.filter(Boolean).length} of ${all.length} right)` : "";
    player.say(`${verdict}${score}\n${frame.caption}`);
  }

  return {
    root,
    /** Ask before a frame; false where there is nothing to ask any more. @param {number} number @param {Frame} frame */
    ask(number, frame) {
      if (!frame.question || answered.has(frame) || asked?.number === number) return false;
      asked = { number, frame, question: frame.question };
      player.say(frame.question.text);
      const choices = [...frame.question.choices, /** @type {const} */ ([null, "Skip"])];
      root.replaceChildren(...choices.map(([key, label]) => pushButton({}, label, () => answer(key))));
      /** @type {HTMLElement} */ (root.firstChild).focus({ preventScroll: true });
      return true;
    },
    /** Take an element as the answer, if it is one. @param {string | null} key */
    take(key) {
      const fits = asked?.question.choices.some(([choice]) => choice === key);
      if (fits) answer(key);
      return Boolean(fits);
    },
    /** Take back what was asked. */
    withdraw() {
      asked = null;
      if (root.contains(document.activeElement)) player.home(); // its button goes now
      root.replaceChildren();
    },
    /** Forget the answers: these are other frames. */
    restart: () => answered.clear(),
  };
}
