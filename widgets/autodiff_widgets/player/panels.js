/** What stands around the pictures: caption, facts of the selected element, and the key to the states. */

import { html, pushButton, svg } from "./elements.js";
import { kindOf, tagEntry } from "./tags.js";

export const HINT = "Select an element to see what is known about it.";

/** A text whose parts between backquotes are shown as code. @param {string} text */
const withCode = (text) => text.split("`").map((part, i) => (i % 2 ? html("code", {}, part) : part));

/** How much room a caption needs: a line that is begun is a line. @param {string} text */
const extent = (text) => text.length + 80 * text.split("\n").length;

/** What is said of the step, the line of code that it belongs to, and a line for what is said of one element. */
export function captionPanel() {
  const caption = html("p", { class: "caption", "aria-live": "polite", "aria-atomic": "true" });
  const room = html("div", { class: "caption-room" }, caption);
  const source = html("code", { class: "source" });
  const note = html("p", { class: "note", role: "status" });
  let said = "";
  let notice = "";
  let pointed = "";
  const showNote = () => {
    const text = pointed || notice;
    if (note.textContent !== text) note.replaceChildren(...withCode(text));
    note.title = text;
  };
  return {
    roots: [room, source, note],
    /**
     * Make room for what a scene will say, so that the picture stays where it is.
     * @param {Scene} scene @param {boolean} asks whether questions are asked, and answered by a line above the caption
     */
    fit({ frames, notes }, asks) {
      const all = frames.flatMap(({ caption, question }) => (asks && question ? [question.text, `\n${caption}`] : caption));
      const longest = [...new Set(all)].sort((a, b) => extent(b) - extent(a)).slice(0, 3);
      room.replaceChildren(caption, ...longest.map((text) => html("p", { class: "room" }, ...withCode(text))));
      source.hidden = !frames.some((frame) => frame.source);
      note.toggleAttribute("data-kept", Boolean(notes));
    },
    /** What is already said is not said again. @param {string} text @param {string | null} [line] */
    say(text, line) {
      if (text !== said) caption.replaceChildren(...withCode(text));
      said = text;
      if (line !== undefined) source.textContent = line ?? "";
    },
    /** A screen reader cannot keep pace with fast playing. @param {boolean} on */
    aloud: (on) => caption.setAttribute("aria-live", on ? "polite" : "off"),
    /** What is said of the element that is pointed at, in front of a notice. @param {string} text */
    point(text) {
      pointed = text;
      showNote();
    },
    /** What the reader must know just now. @param {string} text */
    notice(text) {
      notice = text;
      showNote();
    },
  };
}

/** The facts of the selected element as a table. @param {(key: string) => void} open */
export function detailsPanel(open) {
  const root = html("div", { class: "details", role: "group", "aria-live": "polite", "aria-label": "Details" });
  return {
    root,
    /** @param {Stage} stage @param {string | null} key @param {string} nearby */
    show(stage, key, nearby) {
      const rows = stage.factsOf(key).map(([label, value]) =>
        html("tr", {}, html("th", { scope: "row" }, label), html("td", {}, value)),
      );
      const table = html("table", {}, html("caption", {}, stage.nameOf(key)), html("tbody", {}, ...rows));
      const opens = key !== null && stage.opens.has(key);
      const button = pushButton({ class: "open", title: "Open (Enter or double click)" }, "Open", () => open(key ?? ""));
      const inside = html("p", {}, "It has an inside. ", button);
      root.replaceChildren(...(rows.length || opens ? [table] : [html("p", {}, HINT)]), ...(opens ? [inside] : []));
      if (nearby) root.append(html("p", {}, nearby));
      const filled = Boolean(rows.length || opens);
      if (filled) root.setAttribute("tabindex", "0"); // it is scrolled by keys
      else root.removeAttribute("tabindex");
      return filled;
    },
  };
}

/** The key to the states, lines and tags in use, drawn by the same rules as the picture. @param {Scene} scene */
export function legendItems(scene) {
  const items = scene.legend.map(([name, meaning]) => {
    const state = name.split(" ").at(-1) ?? ""; // of "active", "backward", "edge saved", "edge used"
    const sample = name.startsWith("edge")
      ? svg("path", { class: name, "data-s": state, d: "M2 9H30" })
      : svg("g", { class: `node op ${name}`, "data-s": state }, svg("path", { d: "M3 3h26v12H3z" }));
    return html("li", {}, svg("svg", { width: "32", height: "18", "aria-hidden": "true" }, sample), meaning);
  });
  const focused = scene.frames.filter((frame) => frame.focus);
  const tags = new Set([false, true].flatMap((ahead) => focused.map((frame) => kindOf(scene, frame, ahead))));
  if (tags.has("next")) tags.delete("then"); // they have one sign
  return [...items, ...[...tags].map(tagEntry)];
}
