/** A scene on stage: its pictures in scroll boxes, its film, and its elements as buttons. */

import { dress, html } from "./elements.js";
import { film } from "./film.js";
import { byKey, families, keyOn, nameByText, parsePicture, stem } from "./pictures.js";

/**
 * A picture in its scroll box. Of the stage before, the box stays where it is, and so does a picture that is the same.
 * @param {Pane} pane @param {Stage} [before] @param {number} [place]
 */
function paneBox(pane, before, place = 0) {
  const box = before?.boxes[place] ?? html("div", { class: "pane" });
  if (before?.scene.panes[place]?.svg !== pane.svg) box.replaceChildren(parsePicture(pane.svg));
  const picture = dress(/** @type {SVGElement} */ (box.firstChild), { role: "group", "aria-label": pane.label });
  box.style.flexBasis = `calc(${picture.getAttribute("width")}px + 18px)`;
  return box;
}

/**
 * Scroll a box to an element whose centre is outside of the box's comfortable middle; player.css says how.
 * @param {Element} box @param {Element} element @param {boolean} smooth @param {number} [middle] of the box, each way
 */
export function follow(box, element, smooth, middle = 0.32) {
  const frame = box.getBoundingClientRect();
  const target = element.getBoundingClientRect();
  const x = (target.left + target.right - frame.left - frame.right) / 2;
  const y = (target.top + target.bottom - frame.top - frame.bottom) / 2;
  const left = Math.abs(x) > frame.width * middle ? x : 0;
  const top = Math.abs(y) > frame.height * middle ? y : 0;
  if (frame.height && (left || top)) box.scrollBy({ left, top, behavior: smooth ? "auto" : "instant" });
}

/**
 * Put a scene on stage, in the boxes of the stage before if there was one.
 * @param {Scene} scene @param {Stage} [before] @returns {Stage}
 */
export function makeStage(scene, before) {
  before?.reel.go(-1);
  const boxes = scene.panes.map((pane, place) => paneBox(pane, before, place));
  const elements = byKey(boxes);
  const family = families(elements);
  for (const element of [...elements.values()].flat()) element.parentElement?.closest("[data-op]")?.setAttribute("data-holds", "");
  const opens = new Set(scene.opens);
  /** @param {string} key */
  const known = (key) => Object.hasOwn(scene.facts, key) || Object.hasOwn(scene.notes ?? {}, key) || opens.has(key);
  /** @param {string | null} key */
  const factsOf = (key) => scene.facts[key ?? ""] ?? scene.facts[stem(key ?? "")] ?? [];

  /** @param {string | null} key */
  const ownLabel = (key) => (elements.get(key ?? "") ?? []).map((one) => one.querySelector(".label")?.textContent).find(Boolean);
  /** @param {string | null} key */
  const nameOf = (key) => ownLabel(key) ?? scene.facts[key ?? ""]?.[0][1] ?? key ?? "";
  /** @param {string} key */
  const spoken = (key) => (scene.facts[key] ?? []).slice(0, 4).map((row) => row.join(" ")).join(", ") || scene.notes?.[key] || key;
  /** @type {Stage["shownIn"]} */
  const shownIn = (key) => {
    const all = family(key);
    return boxes.flatMap((box) => all.find((element) => box.contains(element)) ?? []);
  };

  return {
    scene,
    boxes,
    elements,
    family,
    opens,
    knows: known,
    factsOf,
    reel: film(elements, scene.frames),
    last: scene.frames.length - 1,
    shownIn,
    stops: new Map(boxes.map((box) => [box, makeButtons(box, known, nameOf, spoken)])),
    keyOf(target) {
      const element = /** @type {Element | null} */ (target)?.closest?.("[data-op]");
      return element && known(keyOn(element)) ? keyOn(element) : null;
    },
    nameOf,
    look(key, smooth, middle) {
      for (const element of shownIn(key)) follow(paneOf(element), element, smooth, middle);
    },
  };
}

/** The box around an element. @param {Element} element */
export const paneOf = (element) => /** @type {HTMLElement} */ (element.closest(".pane"));

/**
 * Make the elements of a box that something is known of into buttons, with one Tab stop for all.
 * @param {Element} box @param {(key: string) => boolean} known @param {(key: string) => string} nameOf @param {(key: string) => string} facts
 */
function makeButtons(box, known, nameOf, facts) {
  const [buttons, others] = [true, false].map((wanted) => [...byKey([box])].filter(([key]) => known(key) === wanted));
  for (const [key, same] of buttons) {
    for (const element of same) {
      nameByText(dress(element, { role: "button", "aria-description": facts(key), tabindex: "-1" }), nameOf(key));
    }
  }
  for (const element of others.flatMap(([, same]) => same)) {
    for (const name of ["role", "aria-label", "aria-description", "tabindex"]) element.removeAttribute(name); // known to the scene before
  }
  for (const [key, same] of buttons) {
    // A screen reader does not look for buttons in a button. This one is selected as before.
    for (const holder of same.filter((element) => element.querySelector("[role=button]"))) {
      dress(holder, { role: "group", "aria-label": nameOf(key) });
    }
  }
  const all = buttons.flatMap(([, same]) => same);
  all[0]?.setAttribute("tabindex", "0");
  if (all.length) box.removeAttribute("tabindex");
  else box.setAttribute("tabindex", "0"); // it is scrolled by keys all the same
  return { all, at: 0 };
}
