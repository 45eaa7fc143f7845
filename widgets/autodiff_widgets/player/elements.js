/** Making elements of the page, each in one expression, and marking those that are there. */

export const SVG = "http://www.w3.org/2000/svg";

/**
 * @template {Element} E @param {E} node @param {Record<string, string>} attributes @param {(Node | string)[]} children
 * @returns {E}
 */
export function dress(node, attributes, children = []) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/**
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag @param {Record<string, string>} [attributes] @param {...(Node | string)} children
 */
export const html = (tag, attributes = {}, ...children) => dress(document.createElement(tag), attributes, children);

/**
 * @template {keyof SVGElementTagNameMap} T
 * @param {T} tag @param {Record<string, string>} attributes @param {...(Node | string)} children
 */
export const svg = (tag, attributes, ...children) => dress(document.createElementNS(SVG, tag), attributes, children);

/** A button. @param {Record<string, string>} attributes @param {Node | string} content @param {() => void} act */
export function pushButton(attributes, content, act) {
  const made = html("button", { type: "button", ...attributes }, content);
  made.addEventListener("click", act);
  return made;
}

/**
 * What marks elements with an attribute, and takes it from those that it marked before: the cost is that of what changes.
 * @param {string} name @returns {(marked: Iterable<[Element, string]>) => void}
 */
export function marker(name) {
  /** @type {Element[]} */
  let before = [];
  return (marked) => {
    for (const element of before) element.removeAttribute(name);
    before = [];
    for (const [element, value] of marked) {
      element.setAttribute(name, value);
      before.push(element);
    }
  };
}
