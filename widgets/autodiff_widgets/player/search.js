/** The search field: it finds elements by label and facts, and goes from one to the next. */

import { html } from "./elements.js";

/**
 * What finds the elements of a stage that hold all words of a text. Their texts are read on the first search.
 * @param {Stage} stage @returns {(text: string) => string[]}
 */
export function finder(stage) {
  /** @type {[string, string][] | undefined} */
  let index;
  return (text) => {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    index ??= [...stage.elements.keys()].flatMap((key) => (stage.knows(key) ? [[key, textOf(stage, key)]] : []));
    return words.length ? index.flatMap(([key, all]) => (words.every((word) => all.includes(word)) ? [key] : [])) : [];
  };
}

/** @param {Stage} stage @param {string} key */
const textOf = (stage, key) => [stage.nameOf(key), ...stage.factsOf(key).flat()].join(" ").toLowerCase();

/**
 * The field and how many it found.
 * @param {{matched(keys: string[]): void, go(key: string): void, leave(): void}} player
 */
export function searchField(player) {
  const field = html("input", {
    ...{ type: "search", placeholder: "Search", "aria-label": "Search the elements", autocomplete: "off" },
    title: "Search (/). Enter goes to the next, Shift+Enter to the one before",
  });
  const count = html("output", { class: "found" });
  /** @type {string[]} */
  let found = [];
  let at = -1;
  let find = /** @type {(text: string) => string[]} */ (() => []);

  const look = () => {
    const here = found[at];
    found = find(field.value);
    at = found.indexOf(here);
    player.matched(found);
    count.value = !field.value.trim() ? "" : found.length ? `${at < 0 ? "" : `${at + 1} of `}${found.length}` : "nothing found";
  };
  /** @param {number} by */
  const go = (by) => {
    if (!found.length) return;
    at = at < 0 && by < 0 ? found.length - 1 : (at + by + found.length) % found.length;
    count.value = `${at + 1} of ${found.length}`;
    player.go(found[at]);
  };
  field.addEventListener("input", look);
  field.addEventListener("keydown", (event) => {
    event.stopPropagation(); // what is typed steps no player, and no notebook
    if (event.key === "Enter") go(event.shiftKey ? -1 : 1);
    if (event.key !== "Escape") return;
    field.value = "";
    look();
    player.leave();
  });
  const root = html("div", { class: "search" }, field, count);
  return {
    root,
    focus() {
      field.focus();
      field.select();
    },
    /** Search in another scene. @param {Stage} stage */
    show(stage) {
      find = finder(stage);
      root.hidden = Object.keys(stage.scene.facts).length < 2;
      look();
    },
  };
}
