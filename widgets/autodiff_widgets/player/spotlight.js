/** What stands out in the pictures: the selected element and what is near it, what was found, and what this step is about. */

import { marker } from "./elements.js";
import { lineage } from "./sources.js";
import { paneOf } from "./stage.js";
import { kindOf, tagger } from "./tags.js";

const SIGNED = 200; // elements near the selected one that bear a sign, at most

/** @param {() => unknown} asks whether the reader is asked before steps */
export function spotlight(asks) {
  const marks = { selected: marker("data-selected"), near: marker("data-near"), match: marker("data-match") };
  const calm = marker("data-calm"); // boxes in which all else steps back
  const stepTags = tagger();
  const nearTags = tagger();
  /** @type {Stage} */
  let stage;
  let kin = lineage();
  /** @type {string | null} */
  let selected = null;
  /** @type {string | null} */
  let pointed = null;

  /** All elements that show keys, each with a value. @template V @param {Iterable<[string, V]>} keys */
  const shown = (keys) => [...keys].flatMap(([key, value]) => stage.family(key).map((one) => /** @type {[SVGElement, V]} */ ([one, value])));

  /** What is near the selected element, and does not show the same thing. */
  function nearSelected() {
    const own = stage.family(selected);
    return [...kin.near(selected)].filter(([key]) => !stage.elements.get(key)?.some((element) => own.includes(element)));
  }

  /** Light up the direct sources of what is pointed at, else all that is near the selected element. */
  function light() {
    const pointing = pointed !== null && pointed !== selected;
    const lit = shown(pointing ? kin.direct(pointed ?? "") : nearSelected());
    marks.near(lit);
    nearTags(lit.length <= SIGNED ? lit : []);
    calm(pointing ? [] : lit.map(([element]) => [paneOf(element), ""])); // a list that shows none of them stays as it is
  }

  /** What this step and the next are about; but not what the reader will be asked. */
  function tagSteps() {
    const [now, next] = [0, 1].map((more) => stage.scene.frames[stage.reel.at + more]);
    /** @type {(frame: Frame, ahead: boolean) => [SVGElement, import("./tags.js").Kind][]} */
    const on = (frame, ahead) => stage.shownIn(frame.focus).map((element) => [element, kindOf(stage.scene, frame, ahead, element)]);
    stepTags([...on(now, false), ...(next && next.focus !== now.focus && !(next.question && asks()) ? on(next, true) : [])]);
  }

  return {
    tagSteps,
    /** Take everything away, before the pictures change. */
    clear() {
      for (const mark of [calm, ...Object.values(marks)]) mark([]);
      for (const tags of [stepTags, nearTags]) tags([]);
    },
    /** @param {Stage} other */
    show(other) {
      stage = other;
      kin = lineage(stage.scene.sources, stage.elements.keys());
      pointed = null;
    },
    /** Select an element; returns what is near it in words. @param {string | null} key */
    select(key) {
      selected = key;
      marks.selected(shown(key === null ? [] : [[key, ""]]));
      light();
      const near = nearSelected().filter(([other]) => !other.includes(">"));
      const after = near.filter(([, way]) => way === "descendant").length;
      return near.length ? `Outlined: ${near.length - after} that lead to it (solid), ${after} that follow from it (dashed).` : "";
    },
    /** Point at an element that something is said of; returns what. @param {string | null} key */
    point(key) {
      const said = stage.scene.notes?.[key ?? ""] ?? "";
      const now = said ? key : null;
      if (now !== pointed) {
        pointed = now;
        light();
      }
      return said;
    },
    /** @param {string[]} keys */
    match: (keys) => marks.match(shown(keys.map((key) => [key, ""]))),
    /** The signs are placed anew, as after the pictures were first drawn. */
    settle() {
      tagSteps();
      light();
    },
  };
}
