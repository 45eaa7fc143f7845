/** A player: the parts of one view, joined. A level is a scene on stage; an inner one takes the place of the outer one. */

import { html } from "./elements.js";
import { asker, breadcrumb, zoom } from "./insides.js";
import { listenToKeys, walkByKeys } from "./keyboard.js";
import { joinPage, reporter, tellPainted } from "./model.js";
import { HINT, captionPanel, detailsPanel, legendItems } from "./panels.js";
import { projector, sizePictures, natural } from "./projector.js";
import { questions } from "./questions.js";
import { searchField } from "./search.js";
import { spotlight } from "./spotlight.js";
import { makeStage } from "./stage.js";
import { twin } from "./table.js";
import { toolbar } from "./toolbar.js";

/** @typedef {{stage: Stage, key: string, selected: string | null, places: [number, number][]}} Outer */

/**
 * Build a player for the model's scene inside `el`; it lives until the signal aborts.
 * @param {HTMLElement} el @param {Model} model @param {AbortSignal} signal
 */
export function buildPlayer(el, model, signal) {
  let stage = makeStage(model.get("scene"));
  /** @type {Outer[]} */
  const outer = []; // the levels that this one lies in, the outermost first
  /** @type {string | null} */
  let selected = null;
  /** @type {Timer} */
  let timer; // runs while playing
  /** @type {() => void} */
  let rest = () => {}; // brings back into sight what was, when the pictures get another size

  const traits = reporter(model, signal);
  const tell = joinPage(() => model.get("link"), select, signal);
  const body = html("div", { class: "body" });
  const light = spotlight(() => model.get("predict"));
  const bar = toolbar({ go, step, toggle });
  const words = captionPanel();
  const asking = questions({ say: words.say, show: go, home });
  const details = detailsPanel(open);
  const tables = twin();
  const crumbs = breadcrumb((depth) => leave(depth));
  const field = searchField({ matched: light.match, go: choose, leave: home });
  const insides = asker(model, traits.write, enter, words.notice, signal);
  const panes = html("div", { class: "panes" });
  const side = html("div", { class: "side" }, panes, details.root);
  const hint = html("p", { class: "hint" }, HINT);
  const legend = html("ul", { class: "legend", "aria-label": "Key" });
  const root = html("div", { class: "autodiff-player", role: "region", tabindex: "0" });
  const large = projector(root, (on) => (traits.write("projector", on), settle()), signal);

  function home() {
    root.focus({ preventScroll: true });
  }

  // ---- steps

  /** @param {number} index */
  function go(index) {
    const before = stage.reel.at;
    const at = Math.max(0, Math.min(stage.last, index));
    stage.reel.go(at);
    asking.withdraw();
    const frame = showFrame();
    const smooth = Math.abs(at - before) === 1 && (!timer || bar.pace <= 2);
    lookAt(frame.focus, smooth);
    light.tagSteps(); // after the scrolling: what that reads would else be laid out twice
    if (!outer.length) traits.write("frame", at);
  }

  /** All that depends on the frame, besides the pictures. */
  function showFrame() {
    const at = stage.reel.at;
    const frame = stage.scene.frames[at];
    words.aloud(!timer || bar.pace <= 1);
    words.say(frame.caption, frame.source);
    bar.show(at, stage.last, Boolean(timer));
    tables.at(at);
    return frame;
  }

  /** A step by hand ends the playing. @param {number} by */
  function step(by) {
    if (timer) stop();
    if (by === 1) next();
    else go(stage.reel.at + by);
  }

  /** Show the next frame, or ask first what it will show; a second time it is shown without an answer. */
  function next() {
    const number = stage.reel.at + 1;
    const frame = stage.scene.frames[number];
    if (!frame || !model.get("predict") || !asking.ask(number, frame)) go(number);
    else if (timer) stop();
  }

  function stop() {
    clearTimeout(timer);
    timer = undefined;
    words.aloud(true);
    bar.show(stage.reel.at, stage.last, false);
  }

  function tick() {
    timer = setTimeout(tick, 1000 / bar.pace);
    next();
    if (stage.reel.at === stage.last) stop();
  }

  function toggle() {
    if (timer) return stop();
    if (stage.reel.at === stage.last) go(0);
    timer = setTimeout(tick, 1000 / bar.pace);
    bar.show(stage.reel.at, stage.last, true);
  }

  // ---- selecting and pointing

  /** @param {string | null} key @param {boolean} smooth @param {number} [middle] */
  function lookAt(key, smooth, middle) {
    const here = stage;
    rest = () => here.look(key, false, middle);
    stage.look(key, smooth, middle);
  }

  /** @param {string | null} key */
  function select(key) {
    if (key === selected) return;
    selected = key;
    insides.forget();
    showSelected();
    lookAt(key, true, 0.5); // what was clicked is in sight, and stays where it is
    traits.write("selected", key);
  }

  /** A selection made here, told to the page. @param {string | null} key */
  function choose(key) {
    if (asking.take(key)) return;
    select(key);
    tell(key);
  }

  function showSelected() {
    const nearby = light.select(selected);
    details.root.dataset.filled = String(details.show(stage, selected, nearby));
    arrange();
  }

  /** @param {string | null} key */
  function point(key) {
    words.point(light.point(key));
  }

  // ---- levels

  /** @param {string} key */
  function open(key) {
    if (stage.opens.has(key)) insides.ask(key);
  }

  /** @param {string} key @param {Scene} scene */
  function enter(key, scene) {
    if (timer) stop();
    const place = stage.shownIn(key)[0]?.getBoundingClientRect();
    const places = stage.boxes.map((box) => /** @type {[number, number]} */ ([box.scrollLeft, box.scrollTop]));
    outer.push({ stage, key, selected, places });
    present(makeStage(scene));
    go(0);
    home();
    for (const box of stage.boxes) zoom(box, place);
  }

  /** Back to an outer level, as it was left. @param {number} depth */
  function leave(depth) {
    const [level] = outer.splice(depth);
    if (!level) return;
    if (timer) stop();
    const inner = stage.boxes[0];
    present(level.stage);
    showFrame();
    rest = () => level.places.forEach(([left, top], i) => level.stage.boxes[i].scrollTo?.({ left, top, behavior: "instant" }));
    rest();
    const back = rest;
    choose(level.selected);
    back(), (rest = back);
    home();
    inner.classList.add("leaving");
    body.append(inner);
    const passage = zoom(inner, stage.shownIn(level.key)[0]?.getBoundingClientRect(), true);
    if (passage) passage.onfinish = () => inner.remove();
    else inner.remove();
  }

  /** Put another stage in the place of this one. @param {Stage} other */
  function present(other) {
    light.clear();
    stage = other;
    light.show(stage);
    words.point("");
    const [first, ...others] = stage.boxes;
    if (body.firstChild !== first) body.replaceChildren(first, side);
    if (others.some((box, i) => panes.children[i] !== box) || panes.childElementCount > others.length) panes.replaceChildren(...others);
    const titles = [...outer.map((level) => level.stage.scene.title), stage.scene.title];
    crumbs.show(titles);
    root.setAttribute("aria-label", titles.join(" › "));
    makeRoom();
    legend.replaceChildren(...legendItems(stage.scene));
    legend.hidden = !legend.childElementCount;
    tables.show(stage);
    field.show(stage);
    showSelected();
    for (const box of stage.boxes) sizes?.observe(box);
  }

  /** Room for what will be said and asked. */
  function makeRoom() {
    const asks = Boolean(model.get("predict"));
    words.fit(stage.scene, asks);
    asking.root.toggleAttribute("data-kept", asks);
  }

  /** The scene has changed, as it does many times a second while a graph grows: what the reader sees stays as it is. */
  function renew() {
    const scene = model.get("scene");
    const old = outer[0]?.stage ?? stage;
    const focused = body.contains(document.activeElement) ? stage.keyOf(document.activeElement) : null;
    const wish = model.get("frame"); // another than the one shown: Python's own
    const was = old.reel.at;
    light.clear();
    const made = makeStage(scene, old);
    made.reel.go(Math.max(0, Math.min(made.last, wish !== was ? wish : was === old.last ? made.last : was)));
    const stays = outer.length && made.opens.has(outer[0].key);
    if (stays) outer[0].stage = made;
    else outer.length = 0;
    asking.withdraw();
    asking.restart();
    present(stays ? stage : made);
    const followed = !stays && showFrame();
    if (followed && made.reel.at !== was) lookAt(followed.focus, false);
    traits.write("frame", made.reel.at);
    tellPainted(model);
    if (focused === null || root.contains(document.activeElement)) return;
    const again = stage.elements.get(focused)?.find((element) => element.getAttribute("role") === "button");
    if (again) again.focus({ preventScroll: true });
    else home();
  }

  // ---- sizes

  /** The column of facts takes room from the picture only when there is something in it, or when there is room to spare. */
  function arrange() {
    const alone = stage.boxes.length === 1;
    const [first, ...others] = stage.boxes.map((box) => natural(box));
    const spare = body.clientWidth - 280 >= first;
    const nothing = Object.keys(stage.scene.facts).length === 0 && stage.opens.size === 0;
    details.root.hidden = details.root.dataset.filled === "false" && (nothing || !alone || !spare || large.on());
    side.hidden = alone && details.root.hidden;
    hint.hidden = nothing || !details.root.hidden;
    side.toggleAttribute("data-panes", !alone);
    side.style.setProperty("--natural", `${others.reduce((sum, width) => sum + width + 28, -10)}px`);
  }

  /** The pictures have another size. A picture has none until it is on the page. */
  function settle() {
    arrange();
    sizePictures(stage.boxes, large.on());
    light.settle();
    rest();
  }
  const sizes = globalThis.ResizeObserver && new ResizeObserver(settle);

  // ---- joined

  const head = html("div", { class: "head" }, crumbs.root, field.root, large.button);
  root.append(html("div", { class: "top" }, head, bar.root), ...words.roots, asking.root, body, legend, html("div", { class: "foot" }, tables.root, hint));
  walkByKeys(body, () => stage);
  body.addEventListener("click", ({ target, detail }) => {
    if (!/** @type {Element} */ (target).closest(".pane")) return;
    if (detail === 2 && selected !== null) open(selected);
    else if (detail < 2) choose(stage.keyOf(target)); // the second click of two may meet another element: the column has come
  });
  for (const name of ["pointerover", "focusin"]) body.addEventListener(name, ({ target }) => point(stage.keyOf(target)));
  for (const name of ["pointerleave", "focusout"]) body.addEventListener(name, () => point(null));
  listenToKeys(root, {
    ArrowRight: () => step(1),
    ArrowLeft: () => step(-1),
    PageDown: () => step(10),
    PageUp: () => step(-10),
    Home: () => step(-stage.last),
    End: () => step(stage.last),
    " ": toggle,
    "/": () => field.focus(),
    Backspace: () => leave(outer.length - 1),
    Escape: () => (large.on() ? large.set(false) : outer.length ? leave(outer.length - 1) : choose(null)),
    Enter({ target }) {
      const key = stage.keyOf(target) ?? (target === root ? selected : null);
      if (key !== null && key === selected) open(key);
      else choose(key);
    },
  });

  const listeners = {
    "change:scene": renew,
    "change:frame"() {
      const whole = outer[0]?.stage ?? stage;
      if (whole.scene !== model.get("scene")) return; // the frame of a new scene, which comes with it: see renew
      traits.read("frame", whole.reel.at, (at) => (outer.length ? whole.reel.go(at) : go(at)));
    },
    "change:selected": () => traits.read("selected", selected, choose),
    "change:predict": () => (makeRoom(), light.tagSteps()),
    "change:projector": () => large.set(Boolean(model.get("projector"))),
  };
  for (const [event, listener] of Object.entries(listeners)) model.on(event, listener);
  signal.addEventListener("abort", () => {
    clearTimeout(timer);
    sizes?.disconnect();
    tables.end();
    for (const [event, listener] of Object.entries(listeners)) model.off(event, listener);
    root.remove();
  });

  el.append(root);
  present(stage);
  go(model.get("frame"));
  select(model.get("selected"));
  large.set(Boolean(model.get("projector")));
  tellPainted(model);
}
