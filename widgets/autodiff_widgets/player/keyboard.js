/** What the keys do: anywhere in a player, and inside a picture. */

import { follow, paneOf } from "./stage.js";

/**
 * The keys that work anywhere in a player, except where an element has them for itself.
 * @param {Element} root @param {Record<string, (event: KeyboardEvent) => void>} keys
 */
export function listenToKeys(root, keys) {
  // Else the notebook's own keys come first: JupyterLab looks at every element around the key, Notebook at the target alone.
  const mine = (/** @type {EventTarget?} */ element) => /** @type {Element} */ (element).setAttribute("data-lm-suppress-shortcuts", "true");
  mine(root);
  root.addEventListener("focusin", ({ target }) => mine(target));
  root.addEventListener("keydown", (e) => {
    const event = /** @type {KeyboardEvent} */ (e);
    const natives = [" ", "Enter"].includes(event.key) ? "button, select, summary" : "select, .tables";
    const native = /** @type {Element} */ (event.target).closest(natives);
    if (native || event.ctrlKey || event.altKey || event.metaKey || !Object.hasOwn(keys, event.key)) return;
    keys[event.key](event);
    event.preventDefault();
    event.stopPropagation();
  });
}

/**
 * The keys inside a picture: the arrows up and down go to the next element, and Tab comes back to the last one.
 * @param {Element} around @param {() => Stage} onStage
 */
export function walkByKeys(around, onStage) {
  /** @param {Event} event */
  const stopOf = ({ target }) => {
    const stops = onStage().stops.get(/** @type {any} */ (/** @type {Element} */ (target).closest(".pane")));
    return { stops, at: stops ? stops.all.indexOf(/** @type {SVGElement} */ (target)) : -1 };
  };
  around.addEventListener("focusin", (event) => {
    const { stops, at } = stopOf(event);
    if (!stops || at < 0) return;
    stops.all[stops.at].setAttribute("tabindex", "-1");
    stops.all[at].setAttribute("tabindex", "0");
    stops.at = at;
  });
  around.addEventListener("keydown", (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[/** @type {KeyboardEvent} */ (event).key];
    const { stops, at } = stopOf(event);
    const next = by && at >= 0 && stops?.all[at + by];
    if (!next) return;
    next.focus({ preventScroll: true });
    follow(paneOf(next), next, true);
    event.preventDefault();
  });
}
