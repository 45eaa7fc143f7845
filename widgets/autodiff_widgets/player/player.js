/** A player: the parts of one view, joined. */

import { akin, follow, keyOf, listenToKeys, makeButtons, paneBox } from "./boxes.js";
import { html } from "./elements.js";
import { film } from "./film.js";
import { joinPage, reporter } from "./model.js";
import { detailsPanel, legendList } from "./panels.js";
import { byKey } from "./pictures.js";
import { toolbar } from "./toolbar.js";

/**
 * Build a player for the model's scene inside `el`; it lives until the signal aborts.
 * @param {HTMLElement} el @param {Model} model @param {AbortSignal} signal
 */
export function buildPlayer(el, model, signal) {
  /** @type {Scene} */
  const scene = model.get("scene");
  const { frames, facts } = scene;
  const last = frames.length - 1;
  const boxes = scene.panes.map(paneBox);
  const elements = byKey(boxes);
  const reel = film(elements, frames);
  const traits = reporter(model, signal);
  const tell = joinPage(model.get("link"), select, signal);
  const bar = toolbar(last, { go, step, toggle });
  const caption = html("p", { class: "caption", "aria-live": "polite" });
  const source = html("code", { class: "source" });
  const details = detailsPanel(facts);
  const answers = html("div", { class: "answers", role: "group", "aria-label": "Your answer" });
  /** @type {Map<number, boolean>} */
  const answered = new Map(); // frame: whether the answer was right
  let asked = 0; // the frame whose question waits for an answer
  /** @type {string | null} */
  let selected = null;
  /** @type {Timer} */
  let timer; // runs while playing

  /** @param {number} index */
  function go(index) {
    const before = reel.at;
    const at = Math.max(0, Math.min(last, index));
    reel.go(at);
    asked = 0;
    if (answers.contains(document.activeElement)) root.focus({ preventScroll: true }); // its button goes now
    answers.replaceChildren();
    say(frames[at].caption);
    source.textContent = frames[at].source ?? "";
    bar.show(at, Boolean(timer));
    look(frames[at].focus, Math.abs(at - before) === 1 && (!timer || bar.pace <= 2));
    traits.write("frame", at);
  }

  /** @param {string} text */
  function say(text) {
    const parts = text.split("`"); // every other part stands between backquotes
    caption.replaceChildren(...parts.map((part, i) => (i % 2 ? html("code", {}, part) : part)));
  }

  /** A step by hand ends the playing. @param {number} by */
  function step(by) {
    if (timer) stop();
    if (by === 1) next();
    else go(reel.at + by);
  }

  /** Show the next frame, or ask first what it will show; a second time it is shown without an answer. */
  function next() {
    const number = reel.at + 1;
    const question = frames[number]?.question;
    if (!question || !model.get("predict") || answered.has(number) || asked === number) return go(number);
    if (timer) stop();
    asked = number;
    say(question.text);
    for (const [key, label] of [...question.choices, [null, "Skip"]]) {
      const button = html("button", { type: "button" }, label ?? "");
      button.addEventListener("click", () => answer(key));
      answers.append(button);
    }
    /** @type {HTMLElement} */ (answers.firstChild).focus({ preventScroll: true });
  }

  /** Answer the question that was asked, and show its frame with the verdict. @param {string | null} key */
  function answer(key) {
    const number = asked;
    const { choices, right } = /** @type {Question} */ (frames[number].question);
    if (key !== null) answered.set(number, key === right);
    root.focus({ preventScroll: true });
    go(number);
    const all = [...answered.values()];
    const truth = choices.find(([choice]) => choice === right)?.[1];
    const verdict = key === right ? "Right!" : `${key === null ? "It is" : "No, it is"} \`${truth}\`.`;
    const score = all.length ? ` (${all.filter(Boolean).length} of ${all.length} right)` : "";
    say(`${verdict}${score}\n${frames[number].caption}`);
  }

  function stop() {
    clearTimeout(timer);
    timer = undefined;
    caption.setAttribute("aria-live", "polite");
    bar.show(reel.at, false);
  }

  function tick() {
    timer = setTimeout(tick, 1000 / bar.pace);
    next();
    if (reel.at === last) stop();
  }

  function toggle() {
    if (timer) return stop();
    if (reel.at === last) go(0);
    caption.setAttribute("aria-live", "off"); // a screen reader cannot keep pace
    timer = setTimeout(tick, 1000 / bar.pace);
    bar.show(reel.at, true);
  }

  /**
   * What shows a key in a box: its element, or else one that is akin to it.
   * @param {Element} box @param {string} key
   */
  function shownIn(box, key) {
    const itself = elements.get(key)?.find((element) => box.contains(element));
    if (itself) return itself;
    for (const [other, same] of elements) {
      const near = akin(other, key) && same.find((element) => box.contains(element));
      if (near) return near;
    }
  }

  /** Let every pane show an element. @param {string | null} key @param {boolean} smooth @param {number} [middle] */
  function look(key, smooth, middle) {
    for (const box of boxes) {
      const element = key !== null && shownIn(box, key);
      if (element) follow(box, element, smooth, middle);
    }
  }

  /** @param {string | null} key */
  function select(key) {
    if (key === selected) return;
    selected = key;
    for (const [other, same] of elements) for (const element of same) element.toggleAttribute("data-selected", akin(other, key));
    const name = (elements.get(key ?? "") ?? []).map((element) => element.querySelector(".label")?.textContent).find(Boolean);
    details.show(key, name ?? facts[key ?? ""]?.[0][1] ?? key ?? "");
    look(key, true, 0.5); // what was clicked is in sight, and stays where it is
    traits.write("selected", key);
  }

  /** A selection made here, told to the page. @param {string | null} key */
  function choose(key) {
    if (asked && frames[asked].question?.choices.some(([choice]) => choice === key)) return answer(key);
    select(key);
    tell(key);
  }

  // The longest caption keeps the room for all, so that the picture stays where it is.
  const longest = frames.reduce((most, { caption }) => (caption.length > most.length ? caption : most), "");
  const side = html("div", { class: "side" }, html("div", { class: "panes" }, ...boxes.slice(1)), details.root);
  const root = html(
    "div",
    { class: "autodiff-player", role: "region", "aria-label": scene.title, tabindex: "0" },
    html("div", { class: "title" }, scene.title),
    bar.root,
    html("div", { class: "caption-room", "data-longest": longest }, caption),
    answers,
    source,
    html("div", { class: "body" }, boxes[0], side),
    legendList(scene.legend),
  );
  bar.root.hidden = last === 0;
  source.hidden = !frames.some((frame) => frame.source);
  for (const box of boxes) {
    makeButtons(box, facts);
    box.addEventListener("click", (event) => choose(keyOf(event.target, facts)));
  }
  listenToKeys(root, {
    ArrowRight: () => step(1),
    ArrowLeft: () => step(-1),
    PageDown: () => step(10),
    PageUp: () => step(-10),
    Home: () => step(-last),
    End: () => step(last),
    " ": () => toggle(),
    Escape: () => choose(null),
    Enter: (event) => choose(keyOf(event.target, facts)),
  });

  const followFrame = () => traits.read("frame", reel.at, go);
  const followSelected = () => traits.read("selected", selected, choose);
  model.on("change:frame", followFrame);
  model.on("change:selected", followSelected);
  // A picture has no size until it is on the page.
  const sizes = globalThis.ResizeObserver && new ResizeObserver(() => look(frames[reel.at].focus, false));
  for (const box of boxes) sizes?.observe(box);
  signal.addEventListener("abort", () => {
    clearTimeout(timer);
    sizes?.disconnect();
    model.off("change:frame", followFrame);
    model.off("change:selected", followSelected);
    root.remove();
  });

  details.show(null, "");
  el.append(root);
  go(model.get("frame"));
  select(model.get("selected"));
}
