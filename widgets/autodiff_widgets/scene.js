/**
 * The only renderer: plays a Scene (see scene.py) in a notebook and in a standalone page.
 *
 * Python computed every frame, so stepping never asks the kernel. What belongs here is what is true of every view:
 * showing pictures, moving through frames, selecting, following, speaking to screen readers.
 *
 * @typedef {[element: string, state: string | null, texts?: Record<string, string>]} Change
 * @typedef {{caption: string, changes: Change[], focus: string | null, source: string | null}} Frame
 * @typedef {{svg: string, label: string}} Pane
 * @typedef {{title: string, panes: Pane[], frames: Frame[], facts: Record<string, [string, string][]>,
 *   legend: [string, string][]}} Scene
 * @typedef {{get(name: string): any, set(name: string, value: any): void, save_changes(): void,
 *   on(event: string, listener: () => void): void, off(event: string, listener: () => void): void,
 *   widget_manager?: any}} Model
 * @typedef {Map<string, SVGElement[]>} Elements
 * @typedef {ReturnType<typeof setTimeout> | undefined} Timer
 */

const SVG = "http://www.w3.org/2000/svg";

// ---- making elements

/**
 * @template {Element} E @param {E} node @param {Record<string, string>} attributes @param {(Node | string)[]} children
 * @returns {E}
 */
function dress(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/**
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag @param {Record<string, string>} [attributes] @param {...(Node | string)} children
 */
const html = (tag, attributes = {}, ...children) => dress(document.createElement(tag), attributes, children);

/**
 * @template {keyof SVGElementTagNameMap} T
 * @param {T} tag @param {Record<string, string>} attributes @param {...(Node | string)} children
 */
const svg = (tag, attributes, ...children) => dress(document.createElementNS(SVG, tag), attributes, children);

// ---- pictures

const DRAWING = new Set(
  ("svg g defs marker path rect circle ellipse line polyline polygon text tspan title desc clipPath pattern " +
    "linearGradient radialGradient stop").split(" "),
);
const DANGER = /^javascript:|^data:|url\((?!["']?#)|\\/i; // a backslash can spell any of the others
let pictures = 0; // with `copy` it keeps ids apart: every widget imports its own copy of this module
const copy = Math.random().toString(36).slice(2, 8);

/**
 * A picture from its text: only drawing elements, no scripts, no addresses outside, and ids that no other picture has.
 * @param {string} text @returns {SVGSVGElement}
 */
export function parsePicture(text) {
  const parsed = new DOMParser().parseFromString(text, "image/svg+xml");
  const root = parsed.documentElement;
  if (root.localName !== "svg" || parsed.querySelector("parsererror")) {
    throw new Error(`a pane needs an SVG document, got ${JSON.stringify(text.slice(0, 60))}`);
  }
  const prefix = `ad-${copy}-${pictures++}-`;
  for (const node of [root, ...root.querySelectorAll("*")]) {
    if (node.namespaceURI !== SVG || !DRAWING.has(node.localName)) node.remove();
    for (const { name, value } of [...node.attributes]) {
      const bare = value.replace(/[\u0000-\u0020]/g, ""); // browsers skip these inside "java\nscript:"
      if (/^on|href$|^style$/i.test(name) || DANGER.test(bare)) node.removeAttribute(name);
      else if (name === "id") node.id = prefix + value;
      else if (value.includes("url(")) node.setAttribute(name, value.replace(/url\((["']?)#/g, `url($1#${prefix}`));
    }
  }
  return /** @type {any} */ (document.importNode(root, true));
}

/** The elements of pictures by their keys; one key may have several. @param {Element[]} roots @returns {Elements} */
export function byKey(roots) {
  /** @type {Elements} */
  const found = new Map();
  for (const root of roots) {
    for (const element of root.querySelectorAll("[data-op]")) {
      const key = element.getAttribute("data-op") ?? "";
      found.set(key, [...(found.get(key) ?? []), /** @type {SVGElement} */ (element)]);
    }
  }
  return found;
}

// ---- frames

/** @param {Element} element @param {string} state */
function setState(element, state) {
  const before = element.getAttribute("data-s");
  element.setAttribute("data-s", state);
  return () => (before === null ? element.removeAttribute("data-s") : element.setAttribute("data-s", before));
}

/** @param {Element} slot @param {string} text */
function setText(slot, text) {
  const before = slot.textContent;
  slot.textContent = text;
  return () => (slot.textContent = before);
}

/** Apply one change; returns what undoes it. @param {Elements} elements @param {Change} change */
function apply(elements, [key, state, texts]) {
  /** @type {(() => void)[]} */
  const undo = [];
  for (const element of elements.get(key) ?? []) {
    if (state !== null) undo.push(setState(element, state));
    for (const slot of texts ? element.querySelectorAll("[data-slot]") : []) {
      const text = texts?.[slot.getAttribute("data-slot") ?? ""];
      if (text !== undefined && slot.closest("[data-op]") === element) undo.push(setText(slot, text));
    }
  }
  return undo;
}

/**
 * The frames as a film over the elements: `go` plays differences forwards or takes them back, and computes nothing anew.
 * @param {Elements} elements @param {Frame[]} frames
 */
export function film(elements, frames) {
  /** @type {(() => void)[][]} */
  const undo = []; // one list a frame shown so far
  return {
    get at() {
      return undo.length - 1;
    },
    /** @param {number} index */
    go(index) {
      while (undo.length <= index) undo.push(frames[undo.length].changes.flatMap((change) => apply(elements, change)));
      while (undo.length - 1 > index) for (const takeBack of (undo.pop() ?? []).reverse()) takeBack();
    },
  };
}

// ---- the page and the kernel

/**
 * Join the players of the page that share a link name; returns the function that tells them of a selection. The bus hangs
 * on globalThis because every widget imports its own copy of this module.
 * @param {string} link @param {(element: string | null) => void} hear @param {AbortSignal} signal
 */
function joinPage(link, hear, signal) {
  /** @type {{autodiffBus?: EventTarget}} */
  const page = /** @type {any} */ (globalThis);
  const bus = (page.autodiffBus ??= new EventTarget());
  const self = Symbol(link);
  bus.addEventListener(
    `select:${link}`,
    (event) => {
      const { element, from } = /** @type {CustomEvent} */ (event).detail;
      if (from !== self) hear(element);
    },
    { signal },
  );
  return (/** @type {string | null} */ element) => {
    bus.dispatchEvent(new CustomEvent(`select:${link}`, { detail: { element, from: self } }));
  };
}

/**
 * Write a trait back to Python, at most ten times a second, and not to a dead kernel: each try would log an error.
 * @param {Model} model @param {AbortSignal} signal
 */
function reporter(model, signal) {
  /** @type {Timer} */
  let timer;
  const send = () => {
    timer = undefined;
    const status = model.widget_manager?.kernel?.status;
    if (!["dead", "terminating", "restarting", "autorestarting"].includes(status)) model.save_changes();
  };
  signal.addEventListener("abort", () => clearTimeout(timer));
  return (/** @type {string} */ name, /** @type {unknown} */ value) => {
    if (model.get(name) === value) return;
    model.set(name, value);
    timer ??= setTimeout(send, 100);
  };
}

// ---- parts

const ICONS = {
  first: "M5 4h2.5v16H5zM20 4v16L8.5 12z",
  back: "M14 4h2.5v16H14zM12 4v16L3 12z",
  play: "M6 3.5v17L20 12z",
  pause: "M5 4h5v16H5zM14 4h5v16h-5z",
  forward: "M7.5 4h2.5v16H7.5zM12 4v16l9-8z",
  last: "M16.5 4H19v16h-2.5zM4 4v16l11.5-8z",
};

/** @param {keyof ICONS} name */
const icon = (name) => svg("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" }, svg("path", { d: ICONS[name] }));

/**
 * Buttons, scrubber, counter and speed.
 * @param {number} last @param {{go(index: number): void, step(by: number): void, toggle(): void}} player
 */
function toolbar(last, player) {
  /** @type {(name: keyof ICONS, label: string, act: () => void) => HTMLButtonElement} */
  const button = (name, label, act) => {
    const made = html("button", { type: "button", title: label, "aria-label": label, class: name }, icon(name));
    made.addEventListener("click", act);
    return made;
  };
  const first = button("first", "First step (Home)", () => player.go(0));
  const back = button("back", "Step back (←)", () => player.step(-1));
  const play = button("play", "Play (Space)", () => player.toggle());
  const forward = button("forward", "Step forward (→)", () => player.step(1));
  const end = button("last", "Last step (End)", () => player.go(last));
  const scrubber = html("input", { type: "range", min: "0", max: String(last), value: "0", "aria-label": "Step" });
  scrubber.addEventListener("input", () => player.go(Number(scrubber.value)));
  const counter = html("output", { class: "counter" });
  const speed = html(
    "select",
    { "aria-label": "Speed", title: "Speed" },
    ...["0.5", "1", "2", "5", "20"].map((times) => html("option", { value: times }, `${times}×`)),
  );
  speed.value = "1";
  return {
    root: html("div", { class: "toolbar" }, first, back, play, forward, end, scrubber, counter, speed),
    /** Steps a second. */
    get pace() {
      return Number(speed.value);
    },
    /** @type {(at: number, playing: boolean) => void} */
    show(at, playing) {
      scrubber.value = String(at);
      scrubber.setAttribute("aria-valuetext", `step ${at} of ${last}`);
      counter.value = `${at} / ${last}`;
      // Not `disabled`: a disabled button loses the focus, and with it the keyboard.
      for (const node of [first, back]) node.setAttribute("aria-disabled", String(at === 0));
      for (const node of [forward, end]) node.setAttribute("aria-disabled", String(at === last));
      const label = playing ? "Pause (Space)" : "Play (Space)";
      play.title = label;
      play.setAttribute("aria-label", label);
      play.replaceChildren(icon(playing ? "pause" : "play"));
    },
  };
}

/** One picture in a scroll box. @param {Pane} pane */
function paneBox(pane) {
  const picture = parsePicture(pane.svg);
  picture.setAttribute("role", "group");
  picture.setAttribute("aria-label", pane.label);
  const width = Number.parseFloat(picture.getAttribute("width") ?? "") || 400;
  const box = html("div", { class: "pane" }, picture);
  // Panes share a row while each keeps a readable width, and take the rest in proportion to their pictures.
  box.style.flex = `${width} 1 ${Math.min(width + 26, 340)}px`;
  return box;
}

/** The facts of the selected element as a table. @param {Record<string, [string, string][]>} facts */
function detailsPanel(facts) {
  const root = html("aside", { class: "details", "aria-live": "polite", "aria-label": "Details" });
  root.hidden = Object.keys(facts).length === 0;
  return {
    root,
    /** @type {(key: string | null, name: string) => void} */
    show(key, name) {
      const rows = key === null ? undefined : facts[key];
      if (!rows) {
        root.replaceChildren(html("p", {}, "Select an element of the picture to see what is known about it."));
        return;
      }
      const lines = rows.map(([label, value]) =>
        html("tr", {}, html("th", { scope: "row" }, label), html("td", {}, value)),
      );
      root.replaceChildren(html("table", {}, html("caption", {}, name), html("tbody", {}, ...lines)));
    },
  };
}

/**
 * The key to the states and lines in use, drawn by the same rules as the picture.
 * @param {[string, string][]} legend
 */
function legendList(legend) {
  const items = legend.map(([name, meaning]) => {
    const sample = /\bedge\b/.test(name)
      ? svg("path", { class: name, d: "M2 9H30" })
      : svg("g", { class: `node op ${name}`, "data-s": name }, svg("rect", { x: "3", y: "3", width: "26", height: "12", rx: "4" }));
    return html("li", {}, svg("svg", { width: "32", height: "18", "aria-hidden": "true" }, sample), meaning);
  });
  const list = html("ul", { class: "legend", "aria-label": "Key" }, ...items);
  list.hidden = items.length === 0;
  return list;
}

const calm = () => globalThis.matchMedia?.("(prefers-reduced-motion: reduce)").matches ?? false;

/**
 * Scroll a box to an element, only when it is outside of the comfortable middle.
 * @param {Element} box @param {Element} element @param {boolean} smooth
 */
function follow(box, element, smooth) {
  const frame = box.getBoundingClientRect();
  const target = element.getBoundingClientRect();
  const x = (target.left + target.right - frame.left - frame.right) / 2;
  const y = (target.top + target.bottom - frame.top - frame.bottom) / 2;
  const far = (/** @type {number} */ off, /** @type {number} */ size) => Math.abs(off) > size * 0.32;
  if (frame.height === 0 || !(far(x, frame.width) || far(y, frame.height))) return;
  box.scrollBy({
    left: far(x, frame.width) ? x : 0,
    top: far(y, frame.height) ? y : 0,
    behavior: smooth && !calm() ? "smooth" : "auto",
  });
}

// ---- player

/**
 * Build a player for the model's scene inside `el`; it lives until the signal aborts.
 * @param {HTMLElement} el @param {Model} model @param {AbortSignal} signal
 */
function buildPlayer(el, model, signal) {
  /** @type {Scene} */
  const scene = model.get("scene");
  const last = scene.frames.length - 1;
  const boxes = scene.panes.map(paneBox);
  const elements = byKey(boxes);
  const reel = film(elements, scene.frames);
  const report = reporter(model, signal);
  const tell = joinPage(model.get("link"), select, signal);
  const bar = toolbar(last, { go, step, toggle });
  const caption = html("p", { class: "caption", "aria-live": "polite" });
  const longest = scene.frames.reduce((most, frame) => (frame.caption.length > most.length ? frame.caption : most), "");
  const source = html("code", { class: "source" });
  const details = detailsPanel(scene.facts);
  /** @type {string | null} */
  let selected = null;
  /** @type {Timer} */
  let timer; // runs while playing

  const body = html("div", { class: "body" }, html("div", { class: "panes" }, ...boxes), details.root);
  const room = html("div", { class: "caption-room", "data-longest": longest }, caption);
  const attributes = { class: "autodiff-player", role: "region", "aria-label": scene.title, tabindex: "0" };
  const root = html("div", attributes, html("div", { class: "title" }, scene.title), bar.root, room, source, body);
  root.append(legendList(scene.legend));
  root.setAttribute("data-lm-suppress-shortcuts", "true"); // JupyterLab's own keys, which it looks up first
  bar.root.hidden = last < 1;
  source.hidden = !scene.frames.some((frame) => frame.source);

  /** Show a frame, by any way there. @param {number} index */
  function go(index) {
    const before = reel.at;
    const at = Math.max(0, Math.min(last, index));
    reel.go(at);
    const frame = scene.frames[at];
    caption.textContent = frame.caption;
    source.textContent = frame.source ?? "";
    bar.show(at, Boolean(timer));
    look(frame.focus, Math.abs(at - before) === 1 && (!timer || bar.pace <= 2));
    report("frame", at);
  }

  /** A step by hand stops the playing. @param {number} by */
  function step(by) {
    if (timer) stop();
    go(reel.at + by);
  }

  function stop() {
    clearTimeout(timer);
    timer = undefined;
    caption.setAttribute("aria-live", "polite");
    bar.show(reel.at, false);
  }

  function tick() {
    if (reel.at >= last) return stop();
    timer = setTimeout(tick, 1000 / bar.pace);
    go(reel.at + 1);
    if (reel.at === last) stop();
  }

  function toggle() {
    if (timer) return stop();
    if (reel.at === last) go(0);
    caption.setAttribute("aria-live", "off"); // a screen reader cannot keep pace
    timer = setTimeout(tick, 1000 / bar.pace);
    bar.show(reel.at, true);
  }

  /** Let every pane show an element. @param {string | null} key @param {boolean} smooth */
  function look(key, smooth) {
    for (const box of boxes) {
      const element = (elements.get(key ?? "") ?? []).find((candidate) => box.contains(candidate));
      if (element) follow(box, element, smooth);
    }
  }

  /** @param {string | null} key */
  function select(key) {
    if (key === selected) return;
    for (const element of elements.get(selected ?? "") ?? []) element.removeAttribute("data-selected");
    selected = key;
    const chosen = elements.get(key ?? "") ?? [];
    for (const element of chosen) element.setAttribute("data-selected", "");
    details.show(key, chosen.map((element) => element.querySelector(".label")?.textContent).find(Boolean) ?? key ?? "");
    look(key, true);
    report("selected", key);
  }

  /** A selection made here, told to the page. @param {string | null} key */
  function choose(key) {
    select(key);
    tell(key);
  }

  /** @param {EventTarget | null} target */
  const keyOf = (target) => {
    const key = /** @type {Element} */ (target).closest?.("[data-op]")?.getAttribute("data-op");
    return key != null && key in scene.facts ? key : null;
  };

  // One Tab stop a picture; the arrows up and down go to its other elements.
  for (const box of boxes) {
    const stops = [...box.querySelectorAll("[data-op]")].filter(keyOf);
    stops.forEach((element, index) => {
      const label = element.querySelector(".label")?.textContent ?? "";
      const rows = scene.facts[keyOf(element) ?? ""].slice(0, 4).map((row) => row.join(" "));
      dress(element, { role: "button", "aria-label": [label, ...rows].join(", "), tabindex: index ? "-1" : "0" }, []);
    });
    box.addEventListener("click", (event) => choose(keyOf(event.target)));
    box.addEventListener("focusin", (event) => {
      if (!stops.includes(/** @type {Element} */ (event.target))) return;
      for (const element of stops) element.setAttribute("tabindex", element === event.target ? "0" : "-1");
    });
    box.addEventListener("keydown", (event) => {
      const here = stops.indexOf(/** @type {Element} */ (event.target));
      const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (here < 0 || by === undefined) return;
      const next = /** @type {SVGElement | undefined} */ (stops[here + by]);
      next?.focus({ preventScroll: true });
      if (next) follow(box, next, true);
      event.preventDefault();
    });
  }

  /** @type {Record<string, (event: KeyboardEvent) => void>} */
  const keys = {
    ArrowRight: () => step(1),
    ArrowLeft: () => step(-1),
    PageDown: () => step(10),
    PageUp: () => step(-10),
    Home: () => step(-last),
    End: () => step(last),
    " ": () => toggle(),
    Escape: () => choose(null),
    Enter: (event) => choose(keyOf(event.target)),
  };
  root.addEventListener("keydown", (event) => {
    const target = /** @type {Element} */ (event.target);
    const native = target.closest("select") || (target.closest("button") && [" ", "Enter"].includes(event.key));
    if (native || event.ctrlKey || event.altKey || event.metaKey || !(event.key in keys)) return;
    keys[event.key](event);
    event.preventDefault();
    event.stopPropagation();
  });

  const followFrame = () => model.get("frame") !== reel.at && go(model.get("frame"));
  const followSelected = () => model.get("selected") !== selected && choose(model.get("selected"));
  model.on("change:frame", followFrame);
  model.on("change:selected", followSelected);
  // A picture has no size until it is on the page.
  const seen = globalThis.ResizeObserver && new ResizeObserver(() => look(scene.frames[reel.at].focus, false));
  for (const box of boxes) seen?.observe(box);
  signal.addEventListener("abort", () => {
    clearTimeout(timer);
    seen?.disconnect();
    model.off("change:frame", followFrame);
    model.off("change:selected", followSelected);
    root.remove();
  });

  details.show(null, "");
  el.append(root);
  go(model.get("frame"));
  select(model.get("selected"));
}

/**
 * Show a widget's model inside an element; returns what takes it away again.
 * @param {{model: Model, el: HTMLElement}} view
 */
export function render({ model, el }) {
  let life = new AbortController();
  const build = () => {
    life.abort();
    life = new AbortController();
    buildPlayer(el, model, life.signal);
  };
  build();
  model.on("change:scene", build);
  model.on("change:link", build);
  return () => {
    life.abort();
    model.off("change:scene", build);
    model.off("change:link", build);
  };
}

/** Play every scene of a standalone page: element `[data-scene="i"]` shows the i-th of the page's scenes. */
export function renderPage() {
  const scenes = JSON.parse(document.getElementById("autodiff-scenes")?.textContent ?? "[]");
  for (const el of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-scene]"))) {
    const state = scenes[Number(el.dataset.scene)];
    const nothing = () => {};
    const model = {
      get: (/** @type {string} */ name) => state[name],
      set: (/** @type {string} */ name, /** @type {unknown} */ value) => (state[name] = value),
      save_changes: nothing,
      on: nothing,
      off: nothing,
    };
    render({ model, el });
  }
}

export default { render };
