/** For the back of the class: a player that fills the window, in large type. */

import { html, pushButton, svg } from "./elements.js";

const SMALLEST = 1.25; // how much larger a picture is at least; a larger graph is scrolled, as outside of this mode
const LARGEST = 3;
const SNUG = 0.85; // a picture that has to be smaller than that is scrolled instead
const AROUND = 18; // px, a box's padding and border

/**
 * What fills the window with an element and leaves again. The whole screen is asked for; where that is refused, as
 * without a click, the element lies above the page.
 * @param {HTMLElement} root @param {(on: boolean) => void} changed @param {AbortSignal} signal
 */
export function projector(root, changed, signal) {
  const on = () => root.hasAttribute("data-projector");
  const cover = () => {
    if (!on() || !root.showPopover) return;
    root.popover = "manual"; // the browser's top layer: nothing around it can clip it
    root.showPopover();
  };
  /** @param {boolean} wanted */
  const set = (wanted) => {
    if (wanted === on()) return;
    root.toggleAttribute("data-projector", wanted);
    button.setAttribute("aria-pressed", String(wanted));
    if (!wanted) {
      root.removeAttribute("popover"); // which also hides it
      if (document.fullscreenElement === root) document.exitFullscreen();
    } else if (root.requestFullscreen) root.requestFullscreen().catch(cover);
    else cover();
    changed(wanted);
  };
  const icon = svg("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" });
  icon.append(svg("path", { d: "M3 3h7v3H6v4H3zM14 3h7v7h-3V6h-4zM3 14h3v4h4v3H3zM18 14h3v7h-7v-3h4z" }));
  const label = "Projector: fill the window in large type";
  const button = pushButton({ class: "project", title: label, "aria-label": label, "aria-pressed": "false" }, icon, () => set(!on()));
  document.addEventListener("fullscreenchange", () => document.fullscreenElement || root.matches(":popover-open") || set(false), { signal });
  return { button, set, on };
}

/** The natural width, or height, of a box's picture. @param {HTMLElement} box */
export const natural = (box, side = "width") => parseFloat(box.firstElementChild?.getAttribute(side) ?? "0");

/**
 * Make pictures as large as their boxes allow, or give them their natural size again; a graph that nearly fits into its box is
 * shown whole.
 * @param {HTMLElement[]} boxes @param {boolean} large
 */
export function sizePictures(boxes, large) {
  for (const [place, box] of boxes.entries()) {
    const picture = /** @type {SVGElement} */ (box.firstChild);
    const width = natural(box);
    // Not the height that the box has: that follows the picture's.
    const high = large ? box.offsetHeight : parseFloat(getComputedStyle(box).maxHeight);
    const across = (box.offsetWidth - AROUND) / width;
    const whole = Math.min(across, (high - AROUND) / natural(box, "height"));
    // A list beside the graph, and what is nearly as wide as its box, has its whole width in sight.
    const most = Math.max(Math.min(whole, LARGEST), place || across >= 1 ? Math.min(SMALLEST, across) : SMALLEST);
    const scale = large ? most : place || whole < SNUG ? 1 : Math.min(whole, 1);
    Object.assign(picture.style, scale > 0 && scale !== 1 ? { width: `${width * scale}px`, height: "auto" } : { width: "", height: "" });
  }
}
