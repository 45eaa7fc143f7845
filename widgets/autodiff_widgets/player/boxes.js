/** The scroll box of a picture: what it follows, and its elements as buttons. */

import { dress, html } from "./elements.js";
import { byKey, parsePicture } from "./pictures.js";

/** One picture in a scroll box. @param {Pane} pane */
export function paneBox(pane) {
  const picture = dress(parsePicture(pane.svg), { role: "group", "aria-label": pane.label }, []);
  return html("div", { class: "pane", style: `flex-basis: calc(${picture.getAttribute("width")}px + 18px)` }, picture);
}

/**
 * Scroll a box to an element whose centre is outside of the box's comfortable middle; player.css says how.
 * @param {Element} box @param {Element} element @param {boolean} smooth @param {number} [middle] of the box, each way
 */
export function follow(box, element, smooth, middle = 0.32) {
  const frame = box.getBoundingClientRect();
  const target = element.getBoundingClientRect();
  const x = (target.left + target.right - frame.left - frame.right) / 2;
  const y = (target.top + target.bottom - frame.top - frame.bottom) / 2;
  const left = Math.abs(x) > frame.width * middle ? x : 0;
  const top = Math.abs(y) > frame.height * middle ? y : 0;
  if (frame.height && (left || top)) box.scrollBy({ left, top, behavior: smooth ? "auto" : "instant" });
}

/**
 * Make the elements that have facts into buttons, with one Tab stop a picture: the arrows up and down go to the others.
 * @param {Element} box @param {Facts} facts
 */
export function makeButtons(box, facts) {
  const stops = [...byKey([box]).values()].flat().filter((element) => keyOf(element, facts));
  stops.forEach((element, index) => {
    const rows = facts[keyOf(element, facts) ?? ""].slice(0, 4).map((row) => row.join(" "));
    const label = [element.querySelector(".label")?.textContent, ...rows].filter(Boolean).join(", ");
    dress(element, { role: "button", "aria-label": label, tabindex: index ? "-1" : "0" }, []);
  });
  box.addEventListener("focusin", (event) => {
    if (!keyOf(event.target, facts)) return;
    for (const element of stops) element.setAttribute("tabindex", element === event.target ? "0" : "-1");
  });
  box.addEventListener("keydown", (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[/** @type {KeyboardEvent} */ (event).key];
    const next = by && stops[stops.indexOf(/** @type {SVGElement} */ (event.target)) + by];
    if (!next) return;
    next.focus({ preventScroll: true });
    follow(box, next, true);
    event.preventDefault();
  });
}

/**
 * Whether two keys are one thing in several places: the same, or one is the other with a part behind a ~ (see scene.py).
 * @param {string} a @param {string | null} b
 */
export const akin = (a, b) => b !== null && (a === b || a.startsWith(`${b}~`) || b.startsWith(`${a}~`));

/** The key of the element with facts around a target. @param {EventTarget?} target @param {Facts} facts */
export function keyOf(target, facts) {
  const key = /** @type {Element} */ (target).closest("[data-op]")?.getAttribute("data-op") ?? "";
  return Object.hasOwn(facts, key) ? key : null;
}

/**
 * The keys that work anywhere in a player.
 * @param {Element} root @param {Record<string, (event: KeyboardEvent) => void>} keys
 */
export function listenToKeys(root, keys) {
  root.setAttribute("data-lm-suppress-shortcuts", "true"); // else JupyterLab's own keys come first
  root.addEventListener("keydown", (e) => {
    const event = /** @type {KeyboardEvent} */ (e);
    const natives = [" ", "Enter"].includes(event.key) ? "button, select" : "select";
    const native = /** @type {Element} */ (event.target).closest(natives);
    if (native || event.ctrlKey || event.altKey || event.metaKey || !Object.hasOwn(keys, event.key)) return;
    keys[event.key](event);
    event.preventDefault();
    event.stopPropagation();
  });
}
