/**
 * The only renderer: plays a Scene (see scene.py) in a notebook and in a standalone page.
 *
 * Python computed every frame, so stepping never asks the kernel. Here belongs what is true of every view.
 *
 * @typedef {[element: string, state: string | null, texts?: Record<string, string>]} Change
 * @typedef {{text: string, choices: [element: string, label: string][], right: string}} Question
 * @typedef {{caption: string, changes: Change[], focus: string | null, source: string | null, question?: Question}} Frame
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

const DRAWING = "svg g defs marker path rect circle ellipse line polyline polygon text tspan title desc pattern";
const DANGER = /^javascript:|url\((?!["']?#)|\\/i; // a backslash can spell any of the others
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
    if (!DRAWING.split(" ").includes(node.localName)) node.remove();
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
 * The frames as a film over the elements: `go` plays differences forwards or takes them back; nothing is computed anew.
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
 * Join the players of the page that share a link name; returns the function that tells them of a selection. The bus
 * hangs on globalThis because every widget imports its own copy of this module.
 * @param {string} link @param {(element: string | null) => void} hear @param {AbortSignal} signal
 */
function joinPage(link, hear, signal) {
  /** @type {{autodiffBus?: EventTarget}} */
  const page = /** @type {any} */ (globalThis);
  const bus = (page.autodiffBus ??= new EventTarget());
  bus.addEventListener(link, (event) => hear(/** @type {CustomEvent} */ (event).detail), { signal });
  return (/** @type {string | null} */ key) => bus.dispatchEvent(new CustomEvent(link, { detail: key }));
}

/**
 * Traits to and from Python: written at most ten times a second, and not to a dead kernel, where each try logs an error.
 * @param {Model} model @param {AbortSignal} signal
 */
function reporter(model, signal) {
  /** @type {Timer} */
  let timer;
  const send = () => {
    timer = undefined;
    const manager = model.widget_manager ?? {};
    // JupyterLab's manager has a kernel, which is null once it is gone; others do not say.
    if (!("kernel" in manager) || /^(idle|busy|starting)$/.test(manager.kernel?.status)) model.save_changes();
  };
  signal.addEventListener("abort", () => clearTimeout(timer));
  return {
    /** @type {(name: string, value: unknown) => void} */
    write(name, value) {
      if (model.get(name) === value) return;
      model.set(name, value);
      timer ??= setTimeout(send, 100);
    },
    /**
     * Act on a trait that changed in the model. While a newer value waits to be written, what the kernel says is its
     * echo of an older one: the reader has gone on, and must not be taken back.
     * @template T @param {string} name @param {T} mine @param {(value: T) => void} act
     */
    read(name, mine, act) {
      const value = model.get(name);
      if (value === mine) return;
      if (timer) model.set(name, mine);
      else act(value);
    },
  };
}

// ---- the saved notebook

/**
 * The part of a notebook's widget state that its cells show, and whatever these refer to in turn.
 * @template T @param {Record<string, T>} state by model id @param {string} cells as JSON @returns {Record<string, T>}
 */
export function shownState(state, cells) {
  const shown = new Set();
  /** @param {string} text */
  const visit = (text) => {
    for (const id of Object.keys(state)) {
      if (shown.has(id) || !text.includes(id)) continue;
      shown.add(id);
      visit(JSON.stringify(state[id]));
    }
  };
  visit(cells);
  return Object.fromEntries(Object.entries(state).filter(([id]) => shown.has(id)));
}

/**
 * Let JupyterLab save what the notebook shows. By itself it saves the widgets that have a kernel: so it forgets a picture
 * when a reopened notebook is saved before its cells ran again, and it keeps each picture of a cell that ran ten times.
 * Its manager has no option for that. Where a later JupyterLab is built otherwise, it saves as it does by itself.
 * @param {any} manager
 */
export function saveWhatIsShown(manager) {
  const { get_state_sync: save, _modelsSync: models, context } = manager ?? {};
  if (!save || !models || !context?.model?.toJSON || save.keepsPictures) return;
  /** @param {object} options */
  const saveShown = (options) => {
    const left = [...models.values()].filter((model) => !model.comm_live); // their kernel has gone
    for (const model of left) model._comm_live = true; // not by its setter, which would tell the page
    try {
      const all = save.call(manager, options);
      return { ...all, state: shownState(all.state, JSON.stringify(context.model.toJSON().cells)) };
    } finally {
      for (const model of left) model._comm_live = false;
    }
  };
  manager.get_state_sync = Object.assign(saveShown, { keepsPictures: true });
}

// ---- parts

// Those that look forwards are mirrored by player.css.
const ICONS = {
  first: "M5 4h2.5v16H5zM20 4v16L8.5 12z",
  back: "M14 4h2.5v16H14zM12 4v16L3 12z",
  play: "M6 3.5v17L20 12z",
  pause: "M5 4h5v16H5zM14 4h5v16h-5z",
};

/** @param {keyof ICONS} name */
const icon = (name) => svg("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" }, svg("path", { d: ICONS[name] }));

/**
 * Buttons, scrubber, counter and speed.
 * @param {number} last @param {{go(index: number): void, step(by: number): void, toggle(): void}} player
 */
function toolbar(last, player) {
  /** @type {(name: string, picture: keyof ICONS, label: string, act: () => void) => HTMLButtonElement} */
  const button = (name, picture, label, act) => {
    const made = html("button", { type: "button", title: label, "aria-label": label, class: name }, icon(picture));
    made.addEventListener("click", act);
    return made;
  };
  const first = button("first", "first", "First step (Home)", () => player.go(0));
  const back = button("back", "back", "Step back (←)", () => player.step(-1));
  const play = button("play", "play", "Play (Space)", () => player.toggle());
  const forward = button("forward", "back", "Step forward (→)", () => player.step(1));
  const end = button("last", "first", "Last step (End)", () => player.go(last));
  const scrubber = html("input", { type: "range", min: "0", max: String(last), value: "0", "aria-label": "Step" });
  scrubber.addEventListener("input", () => player.go(Number(scrubber.value)));
  const counter = html("output", { class: "counter" });
  const speeds = ["0.5", "1", "2", "5", "20"].map((times) => html("option", { value: times }, `${times}×`));
  const speed = html("select", { "aria-label": "Speed" }, ...speeds);
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
      play.replaceChildren();
      dress(play, { title: label, "aria-label": label }, [icon(playing ? "pause" : "play")]);
    },
  };
}

/** One picture in a scroll box. @param {Pane} pane */
function paneBox(pane) {
  const picture = dress(parsePicture(pane.svg), { role: "group", "aria-label": pane.label }, []);
  return html("div", { class: "pane", style: `flex-basis: calc(${picture.getAttribute("width")}px + 18px)` }, picture);
}

/** The facts of the selected element as a table. @param {Scene["facts"]} facts */
function detailsPanel(facts) {
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
function legendList(legend) {
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

/**
 * Scroll a box to an element whose centre is outside of the box's comfortable middle; player.css says how.
 * @param {Element} box @param {Element} element @param {boolean} smooth @param {number} [middle] of the box, each way
 */
function follow(box, element, smooth, middle = 0.32) {
  const frame = box.getBoundingClientRect();
  const target = element.getBoundingClientRect();
  const x = (target.left + target.right - frame.left - frame.right) / 2;
  const y = (target.top + target.bottom - frame.top - frame.bottom) / 2;
  const left = Math.abs(x) > frame.width * middle ? x : 0;
  const top = Math.abs(y) > frame.height * middle ? y : 0;
  if (frame.height && (left || top)) box.scrollBy({ left, top, behavior: smooth ? "auto" : "instant" });
}

/**
 * Make the elements that have facts into buttons, with one Tab stop a picture: the arrows up and down go to the others.
 * @param {Element} box @param {Scene["facts"]} facts
 */
function makeButtons(box, facts) {
  const stops = [...byKey([box]).values()].flat().filter((element) => keyOf(element, facts));
  stops.forEach((element, index) => {
    const rows = facts[keyOf(element, facts) ?? ""].slice(0, 4).map((row) => row.join(" "));
    const label = [element.querySelector(".label")?.textContent, ...rows].filter(Boolean).join(", ");
    dress(element, { role: "button", "aria-label": label, tabindex: index ? "-1" : "0" }, []);
  });
  box.addEventListener("focusin", (event) => {
    if (!keyOf(event.target, facts)) return;
    for (const element of stops) element.setAttribute("tabindex", element === event.target ? "0" : "-1");
  });
  box.addEventListener("keydown", (event) => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[/** @type {KeyboardEvent} */ (event).key];
    const next = by && stops[stops.indexOf(/** @type {SVGElement} */ (event.target)) + by];
    if (!next) return;
    next.focus({ preventScroll: true });
    follow(box, next, true);
    event.preventDefault();
  });
}

/**
 * Whether two keys are one thing in several places: the same, or one is the other with a part behind a ~ (see scene.py).
 * @param {string} a @param {string | null} b
 */
const akin = (a, b) => b !== null && (a === b || a.startsWith(`${b}~`) || b.startsWith(`${a}~`));

/** The key of the element with facts around a target. @param {EventTarget?} target @param {Scene["facts"]} facts */
function keyOf(target, facts) {
  const key = /** @type {Element} */ (target).closest("[data-op]")?.getAttribute("data-op") ?? "";
  return Object.hasOwn(facts, key) ? key : null;
}

/**
 * The keys that work anywhere in a player.
 * @param {Element} root @param {Record<string, (event: KeyboardEvent) => void>} keys
 */
function listenToKeys(root, keys) {
  root.setAttribute("data-lm-suppress-shortcuts", "true"); // else JupyterLab's own keys come first
  root.addEventListener("keydown", (e) => {
    const event = /** @type {KeyboardEvent} */ (e);
    const natives = [" ", "Enter"].includes(event.key) ? "button, select" : "select";
    const native = /** @type {Element} */ (event.target).closest(natives);
    if (native || event.ctrlKey || event.altKey || event.metaKey || !Object.hasOwn(keys, event.key)) return;
    keys[event.key](event);
    event.preventDefault();
    event.stopPropagation();
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
  const { frames, facts } = scene;
  const last = frames.length - 1;
  const boxes = scene.panes.map(paneBox);
  const elements = byKey(boxes);
  const reel = film(elements, frames);
  const traits = reporter(model, signal);
  const tell = joinPage(model.get("link"), select, signal);
  const bar = toolbar(last, { go, step, toggle });
  const caption = html("p", { class: "caption", "aria-live": "polite" });
  const source = html("code", { class: "source" });
  const details = detailsPanel(facts);
  const answers = html("div", { class: "answers", role: "group", "aria-label": "Your answer" });
  /** @type {Map<number, boolean>} */
  const answered = new Map(); // frame: whether the answer was right
  let asked = 0; // the frame whose question waits for an answer
  /** @type {string | null} */
  let selected = null;
  /** @type {Timer} */
  let timer; // runs while playing

  /** @param {number} index */
  function go(index) {
    const before = reel.at;
    const at = Math.max(0, Math.min(last, index));
    reel.go(at);
    asked = 0;
    if (answers.contains(document.activeElement)) root.focus({ preventScroll: true }); // its button goes now
    answers.replaceChildren();
    say(frames[at].caption);
    source.textContent = frames[at].source ?? "";
    bar.show(at, Boolean(timer));
    look(frames[at].focus, Math.abs(at - before) === 1 && (!timer || bar.pace <= 2));
    traits.write("frame", at);
  }

  /** @param {string} text */
  function say(text) {
    const parts = text.split("`"); // every other part stands between backquotes
    caption.replaceChildren(...parts.map((part, i) => (i % 2 ? html("code", {}, part) : part)));
  }

  /** A step by hand ends the playing. @param {number} by */
  function step(by) {
    if (timer) stop();
    if (by === 1) next();
    else go(reel.at + by);
  }

  /** Show the next frame, or ask first what it will show; a second time it is shown without an answer. */
  function next() {
    const number = reel.at + 1;
    const question = frames[number]?.question;
    if (!question || !model.get("predict") || answered.has(number) || asked === number) return go(number);
    if (timer) stop();
    asked = number;
    say(question.text);
    for (const [key, label] of [...question.choices, [null, "Skip"]]) {
      const button = html("button", { type: "button" }, label ?? "");
      button.addEventListener("click", () => answer(key));
      answers.append(button);
    }
    /** @type {HTMLElement} */ (answers.firstChild).focus({ preventScroll: true });
  }

  /** Answer the question that was asked, and show its frame with the verdict. @param {string | null} key */
  function answer(key) {
    const number = asked;
    const { choices, right } = /** @type {Question} */ (frames[number].question);
    if (key !== null) answered.set(number, key === right);
    root.focus({ preventScroll: true });
    go(number);
    const all = [...answered.values()];
    const truth = choices.find(([choice]) => choice === right)?.[1];
    const verdict = key === right ? "Right!" : `${key === null ? "It is" : "No, it is"} \`${truth}\`.`;
    const score = all.length ? ` (${all.filter(Boolean).length} of ${all.length} right)` : "";
    say(`${verdict}${score}\n${frames[number].caption}`);
  }

  function stop() {
    clearTimeout(timer);
    timer = undefined;
    caption.setAttribute("aria-live", "polite");
    bar.show(reel.at, false);
  }

  function tick() {
    timer = setTimeout(tick, 1000 / bar.pace);
    next();
    if (reel.at === last) stop();
  }

  function toggle() {
    if (timer) return stop();
    if (reel.at === last) go(0);
    caption.setAttribute("aria-live", "off"); // a screen reader cannot keep pace
    timer = setTimeout(tick, 1000 / bar.pace);
    bar.show(reel.at, true);
  }

  /**
   * What shows a key in a box: its element, or else one that is akin to it.
   * @param {Element} box @param {string} key
   */
  function shownIn(box, key) {
    const itself = elements.get(key)?.find((element) => box.contains(element));
    if (itself) return itself;
    for (const [other, same] of elements) {
      const near = akin(other, key) && same.find((element) => box.contains(element));
      if (near) return near;
    }
  }

  /** Let every pane show an element. @param {string | null} key @param {boolean} smooth @param {number} [middle] */
  function look(key, smooth, middle) {
    for (const box of boxes) {
      const element = key !== null && shownIn(box, key);
      if (element) follow(box, element, smooth, middle);
    }
  }

  /** @param {string | null} key */
  function select(key) {
    if (key === selected) return;
    selected = key;
    for (const [other, same] of elements) for (const element of same) element.toggleAttribute("data-selected", akin(other, key));
    const name = (elements.get(key ?? "") ?? []).map((element) => element.querySelector(".label")?.textContent).find(Boolean);
    details.show(key, name ?? facts[key ?? ""]?.[0][1] ?? key ?? "");
    look(key, true, 0.5); // what was clicked is in sight, and stays where it is
    traits.write("selected", key);
  }

  /** A selection made here, told to the page. @param {string | null} key */
  function choose(key) {
    if (asked && frames[asked].question?.choices.some(([choice]) => choice === key)) return answer(key);
    select(key);
    tell(key);
  }

  // The longest caption keeps the room for all, so that the picture stays where it is.
  const longest = frames.reduce((most, { caption }) => (caption.length > most.length ? caption : most), "");
  const side = html("div", { class: "side" }, html("div", { class: "panes" }, ...boxes.slice(1)), details.root);
  const root = html(
    "div",
    { class: "autodiff-player", role: "region", "aria-label": scene.title, tabindex: "0" },
    html("div", { class: "title" }, scene.title),
    bar.root,
    html("div", { class: "caption-room", "data-longest": longest }, caption),
    answers,
    source,
    html("div", { class: "body" }, boxes[0], side),
    legendList(scene.legend),
  );
  bar.root.hidden = last === 0;
  source.hidden = !frames.some((frame) => frame.source);
  for (const box of boxes) {
    makeButtons(box, facts);
    box.addEventListener("click", (event) => choose(keyOf(event.target, facts)));
  }
  listenToKeys(root, {
    ArrowRight: () => step(1),
    ArrowLeft: () => step(-1),
    PageDown: () => step(10),
    PageUp: () => step(-10),
    Home: () => step(-last),
    End: () => step(last),
    " ": () => toggle(),
    Escape: () => choose(null),
    Enter: (event) => choose(keyOf(event.target, facts)),
  });

  const followFrame = () => traits.read("frame", reel.at, go);
  const followSelected = () => traits.read("selected", selected, choose);
  model.on("change:frame", followFrame);
  model.on("change:selected", followSelected);
  // A picture has no size until it is on the page.
  const sizes = globalThis.ResizeObserver && new ResizeObserver(() => look(frames[reel.at].focus, false));
  for (const box of boxes) sizes?.observe(box);
  signal.addEventListener("abort", () => {
    clearTimeout(timer);
    sizes?.disconnect();
    model.off("change:frame", followFrame);
    model.off("change:selected", followSelected);
    root.remove();
  });

  details.show(null, "");
  el.append(root);
  go(model.get("frame"));
  select(model.get("selected"));
}

/** Show a widget's model in an element; returns what takes it away. @param {{model: Model, el: HTMLElement}} view */
function render({ model, el }) {
  let life = new AbortController();
  const build = () => {
    const hadFocus = el.contains(document.activeElement);
    life.abort();
    life = new AbortController();
    buildPlayer(el, model, life.signal);
    if (hadFocus) /** @type {HTMLElement} */ (el.querySelector(".autodiff-player")).focus({ preventScroll: true });
  };
  const causes = ["change:scene", "change:link"];
  for (const cause of causes) model.on(cause, build);
  build();
  return () => {
    life.abort();
    for (const cause of causes) model.off(cause, build);
  };
}

/** Runs once for each widget, also where JupyterLab does not draw its cell yet. @param {{model: Model}} widget */
function initialize({ model }) {
  saveWhatIsShown(model.widget_manager);
}

export default { initialize, render }; // anywidget warns of a `render` that is exported by name
