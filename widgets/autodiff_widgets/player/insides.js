/** The next level of detail: asking for the scene inside an element, the way back, and the passage between. */

import { html, pushButton } from "./elements.js";

const PATIENCE = 3000; // ms
const ASKING = "Asking Python what is inside …";
const SILENT =
  "Python has not answered yet. The kernel is busy or gone: wait until its cell has run, or restart it and run the cells again.";
const NOT_SAVED = "What is inside was not saved with this page. Open it where Python runs, in the notebook.";

/**
 * What asks Python for the scene inside an element, unless it is there already.
 * @param {Model} model @param {(name: string, value: unknown) => void} write
 * @param {(key: string, scene: Scene) => void} show @param {(text: string) => void} say @param {AbortSignal} signal
 */
export function asker(model, write, show, say, signal) {
  /** @type {string | null} */
  let waiting = null;
  /** @type {Timer} */
  let timer;
  const answered = () => {
    const answer = waiting !== null && model.get("inner")?.[waiting];
    if (!answer) return false;
    const key = /** @type {string} */ (waiting);
    forget();
    if (answer.error) say(answer.error);
    else show(key, answer);
    return true;
  };
  const forget = () => {
    clearTimeout(timer);
    waiting = null;
    say("");
  };
  model.on("change:inner", answered);
  signal.addEventListener("abort", () => {
    clearTimeout(timer);
    model.off("change:inner", answered);
  });
  return {
    /** @param {string} key */
    ask(key) {
      forget();
      waiting = key;
      if (answered()) return;
      if (!model.widget_manager) return say(NOT_SAVED);
      say(ASKING);
      timer = setTimeout(() => say(SILENT), PATIENCE);
      model.set("opened", null); // else a second try would change nothing, and not be sent
      write("opened", key);
    },
    forget,
  };
}

/** The title, or the way from the outermost scene to this one. @param {(depth: number) => void} goTo */
export function breadcrumb(goTo) {
  const root = html("div", { class: "title" });
  return {
    root,
    /** @param {string[]} titles */
    show(titles) {
      const steps = titles.map((title, depth) =>
        depth === titles.length - 1
          ? html("li", { "aria-current": "page" }, title)
          : html("li", {}, pushButton({ title: "Back (Backspace)" }, title, () => goTo(depth))),
      );
      const path = html("nav", { "aria-label": "Levels of detail" }, html("ol", {}, ...steps));
      root.replaceChildren(titles.length > 1 ? path : titles[0]);
    },
  };
}

/**
 * Let a box grow out of a place, or shrink into it, unless the reader wants no motion.
 * @param {HTMLElement} box @param {DOMRect | undefined} place @param {boolean} [back] @returns {Animation | undefined}
 */
export function zoom(box, place, back = false) {
  const calm = globalThis.matchMedia?.("(prefers-reduced-motion: reduce)").matches;
  const full = box.getBoundingClientRect();
  if (calm || !place?.width || !full.width || !box.animate) return undefined;
  const size = `scale(${place.width / full.width}, ${place.height / full.height})`;
  const small = { transform: `translate(${place.left - full.left}px, ${place.top - full.top}px) ${size}`, opacity: 0.3 };
  const frames = [small, { transform: "none", opacity: 1 }].map((frame) => ({ ...frame, transformOrigin: "0 0" }));
  return box.animate(back ? frames.reverse() : frames, { duration: 240, easing: "ease-out" });
}
