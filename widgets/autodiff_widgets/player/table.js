/** The text twin as tables: what a screen reader walks through by rows and columns. Built only when it is opened. */

import { html, pushButton } from "./elements.js";

const SHOWN = 300; // elements at a time; all of a large graph at once would take the browser a second

/** The rows of one element: its name beside each of its facts. @param {Stage} stage @param {string} key */
function factRows(stage, key) {
  const rows = stage.factsOf(key).map(([label, value]) =>
    html("tr", {}, html("th", { scope: "row" }, label), html("td", {}, value)),
  );
  rows[0]?.prepend(html("th", { scope: "rowgroup", rowspan: String(rows.length) }, stage.nameOf(key)));
  return html("tbody", {}, ...rows);
}

/** @param {string} caption @param {string[]} columns @param {...Node} bodies */
function table(caption, columns, ...bodies) {
  const heads = columns.map((column) => html("th", { scope: "col" }, column));
  return html("table", {}, html("caption", {}, caption), html("thead", {}, html("tr", {}, ...heads)), ...bodies);
}

/** @param {Stage} stage */
function elementsTable(stage) {
  const keys = Object.keys(stage.scene.facts);
  const made = table("Elements", ["Element", "Fact", "Value"]);
  let shown = 0;
  const more = pushButton({}, "", () => {
    made.append(...keys.slice(shown, shown + SHOWN).map((key) => factRows(stage, key)));
    shown = Math.min(shown + SHOWN, keys.length);
    more.hidden = shown === keys.length;
    more.textContent = `Show more: ${keys.length - shown} of ${keys.length} are left`;
  });
  more.click();
  return [made, more];
}

/** @param {Frame[]} frames */
function stepsTable(frames) {
  const rows = frames.map(({ caption }, number) =>
    html("tr", {}, html("th", { scope: "row" }, String(number)), html("td", {}, caption.replaceAll("`", ""))),
  );
  return { root: table("Steps", ["Step", "What happens"], html("tbody", {}, ...rows)), rows };
}

/** A fold that holds the tables of the scene on stage, with the current step marked. */
export function twin() {
  const inside = html("div", { class: "tables", role: "group", "aria-label": "Tables", tabindex: "0" }); // scrolled by keys
  const root = html("details", { class: "twin" }, html("summary", {}, "As a table"), inside);
  /** @type {Stage | undefined} */
  let stage; // whose tables are wanted
  /** @type {HTMLElement[]} */
  let rows = []; // of the steps, if the tables were built
  /** @type {Timer} */
  let timer;
  let now = 0;
  /** @type {HTMLElement | undefined} */
  let current;

  const mark = () => {
    current?.removeAttribute("aria-current");
    current = rows[now];
    current?.setAttribute("aria-current", "step");
  };
  const build = () => {
    timer = undefined;
    if (!root.open || !stage) return;
    const steps = stepsTable(stage.scene.frames);
    rows = steps.rows;
    inside.replaceChildren(...(Object.keys(stage.scene.facts).length ? elementsTable(stage) : []), steps.root);
    mark();
  };
  root.addEventListener("toggle", () => (root.open ? build() : inside.replaceChildren()));
  return {
    root,
    /** Another scene. One that grows is written anew three times a second at most. @param {Stage} other */
    show(other) {
      stage = other;
      rows = [];
      if (root.open) timer ??= setTimeout(build, 300);
    },
    /** @param {number} step */
    at(step) {
      now = step;
      if (rows.length) mark();
    },
    end: () => clearTimeout(timer),
  };
}
