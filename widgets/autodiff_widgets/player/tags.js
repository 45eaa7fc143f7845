/** Tags on elements: what just ran, what runs next, and which way an element is near the selected one. */

import { html, svg } from "./elements.js";
import { stem } from "./pictures.js";

/** @typedef {keyof typeof SIGNS} Kind */

// A sign of 10 × 10 px and its word: neither needs a colour or a glyph that a bare machine may lack.
const SIGNS = {
  ran: ["M1 5.5L4 8.5L9 1.5", "just ran"],
  now: ["M2 5a3 3 0 1 0 6 0a3 3 0 1 0-6 0z", "this step"],
  next: ["M2 1L9 5L2 9z", "runs next"],
  then: ["M2 1L9 5L2 9z", "next step"],
  source: ["M5 1L9 9H1z", ""],
  ancestor: ["M5 1L9 9H1z", ""],
  descendant: ["M5 9L9 1H1z", ""],
};
const SIZE = 16;

/** A tag with its upper left corner at a place. @param {Kind} kind @param {string} word @param {number} x @param {number} y */
function tag(kind, word, x, y) {
  return svg(
    "g",
    { class: `tag ${kind}`, transform: `translate(${x} ${y})`, "aria-hidden": "true" },
    svg("rect", { width: `${widthOf(word)}`, height: `${SIZE}`, rx: "4" }),
    svg("path", { d: SIGNS[kind][0], transform: "translate(3 3)" }),
    svg("text", { x: "17", y: "12" }, word),
  );
}

/** @param {string} word */
const widthOf = (word) => SIZE + (word ? word.length * 7 + 4 : 0);

/**
 * What a frame does with the element that it is about: whether it runs there, or is only spoken of.
 * @param {Scene} scene @param {Frame} frame @param {boolean} ahead whether the frame is still to come
 * @param {Element} [element] that shows it: an input or a constant does not run @returns {Kind}
 */
export function kindOf({ runs: any }, { focus, changes }, ahead, element) {
  const runs = any !== false && !element?.matches(".input, .constant") && changes.some(([key, state]) => state === "active" && stem(key) === stem(focus ?? ""));
  if (ahead) return runs ? "next" : "then";
  return runs ? "ran" : "now";
}

/** An entry of the key. @param {Kind} kind */
export const tagEntry = (kind) =>
  html("li", {}, svg("svg", { width: "18", height: "18", "aria-hidden": "true" }, tag(kind, "", 1, 1)), SIGNS[kind][1]);

/**
 * What hangs tags on elements, and takes away those that it hung before. A word stands on a node's
 * left corner, beside the edges that come in above; on the edge of a row, a bar or an array, where no text is, stands the sign alone. All sizes are read before anything is changed, so that the browser lays out once.
 */
export function tagger() {
  /** @type {Element[]} */
  let before = [];
  return (/** @type {Iterable<[SVGElement, Kind]>} */ wanted) => {
    const placed = [...wanted].flatMap(([element, kind]) => {
      const box = placeOf(element);
      return box ? [{ element, kind, box }] : [];
    });
    for (const old of before) old.remove();
    before = placed.map(({ element, kind, box }) => {
      const isNode = element.matches(".node");
      const word = isNode ? SIGNS[kind][1] : "";
      const isRow = element.matches(".row");
      const x = word ? Math.max(box.x - 24, -6) : box.x + box.width - (isRow ? 6 : SIZE + 4);
      const y = isRow ? box.y + (box.height - SIZE) / 2 : box.y - (isNode || box.height > 48 ? 14 : 10);
      return element.appendChild(tag(kind, word, x, y));
    });
  };
}

/** Where the shape of an element is; nothing while it is not on the page. @param {SVGElement} element */
function placeOf(element) {
  const shape = /** @type {SVGGraphicsElement | null} */ (element.querySelector(":scope > rect, :scope > path"));
  const box = shape?.getBBox?.();
  return box?.width ? box : null;
}
