/** Making elements of the page, each in one expression. */

const SVG = "http://www.w3.org/2000/svg";

/**
 * @template {Element} E @param {E} node @param {Record<string, string>} attributes @param {(Node | string)[]} children
 * @returns {E}
 */
export function dress(node, attributes, children) {
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
