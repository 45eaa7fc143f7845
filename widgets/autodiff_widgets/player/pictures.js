/** A pane's SVG text as a picture that is safe to show, and its elements by their keys. */

import { SVG } from "./elements.js";

const DRAWING = new Set(
  "svg g defs marker path rect circle ellipse line polyline polygon text tspan title desc pattern".split(" "),
);
const SUSPECT = /[:(\\]/; // without one of these no value is dangerous; a large picture has 100,000 values
const DANGER = /^javascript:|url\((?!["']?#)|\\/i; // a backslash can spell any of the others
let pictures = 0; // with `copy` it keeps ids apart: notebooks on one page may have copies of this module
const copy = Math.random().toString(36).slice(2, 8);

/**
 * A picture from its text: only drawing elements, no scripts, no addresses outside, and ids that no other picture has.
 * It is read as HTML, which takes Chromium a quarter of the time of XML; what ends an SVG in HTML ends the picture.
 * @param {string} text @returns {SVGSVGElement}
 */
export function parsePicture(text) {
  const root = new DOMParser().parseFromString(text, "text/html").body.firstElementChild;
  if (root?.namespaceURI !== SVG) {
    throw new Error(`a pane needs an SVG document, got ${JSON.stringify(text.slice(0, 60))}`);
  }
  const prefix = `ad-${copy}-${pictures++}-`;
  for (const node of [root, ...root.querySelectorAll("*")]) {
    if (node.namespaceURI !== SVG || !DRAWING.has(node.localName)) node.remove();
    for (const name of node.getAttributeNames()) {
      const value = node.getAttribute(name) ?? "";
      const bare = SUSPECT.test(value) ? value.replace(/[\u0000-\u0020]/g, "") : ""; // skipped inside "java\nscript:"
      if (/^on|href$|^style$/i.test(name) || DANGER.test(bare)) node.removeAttribute(name);
      else if (name === "id") node.id = prefix + value;
      else if (value.includes("url(")) node.setAttribute(name, value.replace(/url\((["']?)#/g, `url($1#${prefix}`));
    }
  }
  return /** @type {any} */ (document.adoptNode(root));
}

/** The elements of pictures by their keys; one key may have several. @param {Element[]} roots @returns {Elements} */
export function byKey(roots) {
  /** @type {Elements} */
  const found = new Map();
  for (const root of roots) {
    for (const element of root.querySelectorAll("[data-op]")) push(found, keyOn(element), /** @type {SVGElement} */ (element));
  }
  return found;
}

/** @param {Element} element */
export const keyOn = (element) => element.getAttribute("data-op") ?? "";

/** @template V @param {Map<string, V[]>} lists @param {string} key @param {V} value */
export function push(lists, key, value) {
  const list = lists.get(key);
  if (list) list.push(value);
  else lists.set(key, [value]);
}

/** A key without the part behind its first ~ (see scene.py). @param {string} key */
export const stem = (key) => key.split("~", 1)[0];

/**
 * What gives all elements that show one thing: the key's own first, then those of keys that are the same up to a part
 * behind a ~ in one of the two.
 * @param {Elements} elements @returns {(key: string | null) => SVGElement[]}
 */
export function families(elements) {
  /** @type {Map<string, string[]>} */
  const kin = new Map();
  for (const key of elements.keys()) push(kin, stem(key), key);
  return (key) => {
    if (key === null) return [];
    const others = (kin.get(stem(key)) ?? []).filter((other) => other.startsWith(`${key}~`) || key.startsWith(`${other}~`));
    return [key, ...others].flatMap((one) => elements.get(one) ?? []);
  };
}

/** A button bears the name that is written on it, apart from the tags of steps. @param {Element} element @param {string} [otherwise] */
export function nameByText(element, otherwise = "") {
  const written = [...element.querySelectorAll("text:not(.tag *)")].map((text) => text.textContent?.trim());
  const name = written.filter(Boolean).join(" ") || otherwise;
  if (name && element.getAttribute("role") === "button") element.setAttribute("aria-label", name);
}
