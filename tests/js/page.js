/** A page for the tests of the player: jsdom's window as the global scope, scenes by chance, and a model like anywidget's. */

import { afterEach, mock } from "node:test";
import { JSDOM } from "jsdom";

export const PLAYER = "../../widgets/autodiff_widgets/player";
export const { window } = new JSDOM("<!doctype html><body></body>", { pretendToBeVisual: true });
const borrowed = ["document", "DOMParser", "Node", "EventTarget", "CustomEvent", "KeyboardEvent", "MouseEvent", "AbortController", "requestAnimationFrame", "getComputedStyle"];
for (const name of borrowed) globalThis[name] = window[name];

/** The same numbers for the same seed (mulberry32). */
export function random(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

const STATES = ["idle", "waiting", "ready", "active", "done", "used", "target", "skipped", "freed", null];

/** A scene of nodes and list rows that share keys, with frames that change any of them, some keys that nothing bears. */
export function randomScene(seed, count = 8, length = 40) {
  const next = random(seed);
  const pick = (list) => list[Math.floor(next() * list.length)];
  const keys = Array.from({ length: count }, (_, i) => `n${i}`);
  const nodes = keys.map((key) => `<g class="node op" data-op="${key}"><rect/><text class="label">${key}</text><text data-slot="value"/></g>`);
  const rows = keys.map((key) => `<g class="row" data-op="${key}" data-s="idle"><text data-slot="value">old</text></g>`);
  const pane = (label, parts) => ({ label, svg: `<svg xmlns="http://www.w3.org/2000/svg">${parts.join("")}</svg>` });
  const change = () => {
    const texts = next() < 0.4 ? { value: String(Math.floor(next() * 100)), absent: "never" } : undefined;
    return [pick([...keys, "missing"]), pick(STATES), ...(texts ? [texts] : [])];
  };
  const frames = Array.from({ length }, (_, i) => ({
    caption: `step ${i}`,
    changes: Array.from({ length: Math.floor(next() * 6) }, change),
    focus: pick([...keys, null]),
    source: null,
  }));
  const facts = Object.fromEntries(keys.map((key) => [key, [["op", key], ["shape", "(2, 3)"]]]));
  return { title: `scene ${seed}`, panes: [pane("graph", nodes), pane("list", rows)], frames, facts, legend: [["active", "runs now"]] };
}

/** A model with the part of anywidget's interface that the player uses; it counts what is saved and who listens. */
export function makeModel(scene, state = {}) {
  const values = { scene, frame: 0, selected: null, link: "page", ...state };
  const listeners = new Map();
  return {
    saves: 0,
    get: (name) => values[name],
    set(name, value) {
      this.setTogether({ [name]: value });
    },
    /** As Python does inside of hold_sync: all values are there before anybody hears of one. */
    setTogether(changed) {
      Object.assign(values, changed);
      for (const name of Object.keys(changed)) for (const listener of [...(listeners.get(`change:${name}`) ?? [])]) listener();
    },
    save_changes() {
      this.saves += 1;
    },
    on: (event, listener) => listeners.set(event, [...(listeners.get(event) ?? []), listener]),
    off: (event, listener) => listeners.set(event, (listeners.get(event) ?? []).filter((other) => other !== listener)),
    get listening() {
      return [...listeners.values()].flat().length;
    },
  };
}

export const player = await import(`${PLAYER}/widget.js`);
const { buildPlayer } = await import(`${PLAYER}/player.js`);

const cleanups = [];
afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup();
  document.body.replaceChildren();
  mock.timers.reset();
});

/** A player on the page, as its reader uses it; it is gone after the test. */
export function show(scene, state) {
  const el = document.body.appendChild(document.createElement("div"));
  const model = makeModel(scene, state);
  const life = new AbortController();
  buildPlayer(el, model, life.signal);
  const cleanup = () => life.abort();
  cleanups.push(cleanup);
  const press = (key, target = el.querySelector(".autodiff-player")) => {
    const event = new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true });
    target.dispatchEvent(event);
    return event;
  };
  const click = (selector) => el.querySelector(selector).dispatchEvent(new MouseEvent("click", { bubbles: true }));
  return { el, model, cleanup, press, click, counter: () => el.querySelector(".counter").value };
}

