/** Frames as a film: forwards by differences, backwards by undoing them. */

import { nameByText } from "./pictures.js";

/** @param {Element} element @param {string} state */
function setState(element, state) {
  const before = element.getAttribute("data-s");
  element.setAttribute("data-s", state);
  return () => (before === null ? element.removeAttribute("data-s") : element.setAttribute("data-s", before));
}

/** @param {Element} slot @param {string} text */
function setText(slot, text) {
  const before = slot.textContent;
  slot.textContent = text;
  return () => (slot.textContent = before);
}

/** Apply one change; returns what undoes it. @param {Elements} elements @param {Change} change */
function apply(elements, [key, state, texts]) {
  /** @type {(() => void)[]} */
  const undo = [];
  for (const element of elements.get(key) ?? []) {
    if (state !== null) undo.push(setState(element, state));
    if (texts) undo.push(() => nameByText(element)); // undone in turn, so after the texts
    for (const slot of texts ? element.querySelectorAll("[data-slot]") : []) {
      const text = texts?.[slot.getAttribute("data-slot") ?? ""];
      if (text !== undefined && slot.closest("[data-op]") === element) undo.push(setText(slot, text));
    }
    if (texts) nameByText(element);
  }
  return undo;
}

/**
 * The frames as a film over the elements: `go` plays differences forwards or takes them back; nothing is computed anew.
 * @param {Elements} elements @param {Frame[]} frames
 */
export function film(elements, frames) {
  /** @type {(() => void)[][]} */
  const undo = []; // one list a frame shown so far
  return {
    get at() {
      return undo.length - 1;
    },
    /** @param {number} index */
    go(index) {
      while (undo.length <= index) undo.push(frames[undo.length].changes.flatMap((change) => apply(elements, change)));
      while (undo.length - 1 > index) for (const takeBack of (undo.pop() ?? []).reverse()) takeBack();
    },
  };
}
