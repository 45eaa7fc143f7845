/** What stands around the pictures: the facts of the selected element, and the key to the states. */

import { html, svg } from "./elements.js";

/** The facts of the selected element as a table. @param {Facts} facts */
export function detailsPanel(facts) {
  const root = html("aside", { class: "details", "aria-live": "polite", "aria-label": "Details" });
  root.hidden = Object.keys(facts).length === 0;
  return {
    root,
    /** @type {(key: string | null, name: string) => void} */
    show(key, name) {
      const rows = (facts[key ?? ""] ?? facts[key?.split("~")[0] ?? ""] ?? []).map(([label, value]) =>
        html("tr", {}, html("th", { scope: "row" }, label), html("td", {}, value)),
      );
      const table = html("table", {}, html("caption", {}, name), html("tbody", {}, ...rows));
      root.replaceChildren(rows.length ? table : html("p", {}, "Select an element to see what is known about it."));
    },
  };
}

/** The key to the states and lines in use, drawn by the same rules as the picture. @param {Scene["legend"]} legend */
export function legendList(legend) {
  const items = legend.map(([name, meaning]) => {
    const state = name.split(" ").at(-1) ?? ""; // of "active", "backward", "edge saved", "edge used"
    const sample = name.startsWith("edge")
      ? svg("path", { class: name, "data-s": state, d: "M2 9H30" })
      : svg("g", { class: `node op ${name}`, "data-s": state }, svg("path", { d: "M3 3h26v12H3z" }));
    return html("li", {}, svg("svg", { width: "32", height: "18", "aria-hidden": "true" }, sample), meaning);
  });
  const list = html("ul", { class: "legend", "aria-label": "Key" }, ...items);
  list.hidden = items.length === 0;
  return list;
}
