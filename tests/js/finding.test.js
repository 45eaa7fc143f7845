/** Finding one's way: where a value comes from, what is said of it, search, and what runs now and next. */

import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { PLAYER, random, randomScene, show, window } from "./page.js";

const { lineage } = await import(`${PLAYER}/sources.js`);

/** a → c, b → c, c → d, with edges; e stands apart. */
function diamond(extra = {}) {
  const keys = ["a", "b", "c", "d", "e", "a>c.0", "b>c.1", "c>d.0"];
  const shape = (key) => (key.includes(">") ? `<path class="edge" data-op="${key}"/>` : `<g class="node" data-op="${key}"><rect/><text class="label">${key}</text></g>`);
  const svg = `<svg xmlns="http://www.w3.org/2000/svg">${keys.map(shape).join("")}</svg>`;
  const facts = Object.fromEntries(keys.slice(0, 5).map((key, i) => [key, [["op", `op ${key}`], ["shape", `(${i},)`]]]));
  const frames = ["a", "c", "d", null].map((focus, i) => ({ caption: `step ${i}`, changes: focus ? [[focus, "active"]] : [], focus, source: null }));
  return { title: "diamond", panes: [{ svg, label: "" }], frames, facts, legend: [], sources: { c: ["a", "b"], d: ["c"] }, ...extra };
}
const near = (el) => Object.fromEntries([...el.querySelectorAll("[data-near]")].map((e) => [e.dataset.op, e.dataset.near]));
const over = (el, key, type = "pointerover") => el.querySelector(`[data-op="${key}"]`).dispatchEvent(new MouseEvent(type, { bubbles: true }));

test("Selecting marks what an element was computed from, and what was computed from it, with the edges between", () => {
  const { el, click, press } = show(diamond());
  click('[data-op="c"]');
  assert.deepEqual(near(el), { a: "source", b: "source", "a>c.0": "source", "b>c.1": "source", d: "descendant", "c>d.0": "descendant" });
  assert.ok(el.querySelector(".pane[data-calm]"));
  assert.match(el.querySelector(".details").textContent, /2 that lead to it \(solid\), 1 that follow from it \(dashed\)/);
  click('[data-op="d"]');
  assert.deepEqual(near(el), { c: "source", "c>d.0": "source", a: "ancestor", b: "ancestor", "a>c.0": "ancestor", "b>c.1": "ancestor" });
  click('[data-op="e"]');
  assert.deepEqual(near(el), {});
  press("Escape");
  assert.equal(el.querySelector("[data-calm]"), null);
});

test("What shows the selected thing itself is not near it", () => {
  const parts = ["n1~in", "n1~op", "n1~out", "n2"].map((key) => `<g class="node" data-op="${key}"><rect/></g>`);
  const svg = `<svg xmlns="http://www.w3.org/2000/svg">${parts.join("")}</svg>`;
  const sources = { "n1~op": ["n1~in"], "n1~out": ["n1~op"], n2: ["n1~out"] };
  const { el, model } = show(diamond({ panes: [{ svg, label: "" }], sources }));
  model.set("selected", "n1");
  assert.deepEqual(near(el), {});
  model.set("selected", "n2");
  assert.deepEqual(near(el), { "n1~out": "source", "n1~op": "ancestor", "n1~in": "ancestor" });
});

test("A picture that shows nothing of it stays as bright as it is", () => {
  const list = { svg: '<svg xmlns="http://www.w3.org/2000/svg"><g class="row" data-op="queue.0"><text>a</text></g></svg>', label: "" };
  const { el, click } = show(diamond({ panes: [...diamond().panes, list] }));
  click('[data-op="c"]');
  assert.deepEqual([...el.querySelectorAll(".pane")].map((pane) => pane.hasAttribute("data-calm")), [true, false]);
});

test("Where a scene names no sources, the edges of its pictures tell them", () => {
  const { el, click } = show(diamond({ sources: undefined }));
  click('[data-op="c"]');
  assert.deepEqual(near(el), { a: "source", b: "source", "a>c.0": "source", "b>c.1": "source", d: "descendant", "c>d.0": "descendant" });
});

test("Ancestors and descendants are those of every path, on drawn graphs", () => {
  for (let seed = 1; seed <= 30; seed++) {
    const next = random(seed);
    const sources = {};
    for (let i = 1; i < 30; i++) sources[`n${i}`] = Array.from({ length: Math.floor(next() * 3) }, () => `n${Math.floor(next() * i)}`);
    const reaches = (from, to) => from === to || (sources[to] ?? []).some((one) => reaches(from, one));
    const kin = lineage(sources);
    for (let at = 0; at < 30; at++) {
      const found = kin.near(`n${at}`);
      for (let other = 0; other < 30; other++) {
        const [a, b] = [`n${other}`, `n${at}`];
        const truth = a === b ? undefined : (sources[b] ?? []).includes(a) ? "source" : reaches(a, b) ? "ancestor" : reaches(b, a) ? "descendant" : undefined;
        assert.equal(found.get(a), truth, `seed ${seed}: ${a} for ${b}`);
      }
    }
  }
});

test("Pointing says the note and lights the direct sources, and leaving brings the selection's back", () => {
  const { el, click } = show(diamond({ notes: { d: "d = `c` + 1" } }));
  click('[data-op="c"]');
  const before = near(el);
  over(el, "d");
  assert.deepEqual(near(el), { c: "source" });
  assert.equal(el.querySelector(".note").textContent, "d = c + 1");
  assert.equal(el.querySelector(".note code").textContent, "c");
  over(el, "e"); // of which nothing is said
  assert.deepEqual([near(el), el.querySelector(".note").textContent], [before, ""]);
  el.querySelector('[data-op="d"]').focus();
  assert.deepEqual(near(el), { c: "source" }, "the keyboard points too");
  el.querySelector(".autodiff-player").focus();
  assert.deepEqual(near(el), before);
});

test("Search finds labels and facts, counts, goes round both ways and marks what it found", () => {
  const { el, press, model } = show(diamond());
  press("/");
  const field = el.querySelector("[type=search]");
  assert.equal(document.activeElement, field);
  const type = (text) => {
    field.value = text;
    field.dispatchEvent(new window.Event("input", { bubbles: true }));
    return el.querySelector(".found").value;
  };
  const enter = (shiftKey) => field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", shiftKey, bubbles: true }));
  assert.equal(type("OP"), "5");
  assert.equal(type("op b"), "1");
  assert.equal(type("nowhere"), "nothing found");
  enter(false);
  assert.equal(model.get("selected"), null);
  assert.equal(type("op"), "5");
  assert.equal(el.querySelectorAll("[data-match]").length, 5);
  const walk = [[false, "1 of 5", "a"], [false, "2 of 5", "b"], [true, "1 of 5", "a"], [true, "5 of 5", "e"], [false, "1 of 5", "a"]];
  for (const [back, count, key] of walk) {
    enter(back);
    assert.deepEqual([el.querySelector(".found").value, model.get("selected")], [count, key]);
  }
  field.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
  assert.equal(el.querySelectorAll("[data-match]").length, 0);
  assert.equal(document.activeElement, el.querySelector(".autodiff-player"));
  assert.equal(model.get("selected"), "a", "Escape leaves the field, not the selection");
});

test("What is typed into the search field steps nothing", () => {
  const { el, press, counter } = show(diamond());
  for (const key of [" ", "ArrowRight", "End", "Backspace", "/"]) assert.ok(!press(key, el.querySelector("[type=search]")).defaultPrevented);
  assert.equal(counter(), "0 / 3");
});

/** jsdom lays nothing out: give every shape a box. */
function laidOut(t) {
  window.SVGElement.prototype.getBBox = () => ({ x: 10, y: 20, width: 120, height: 50 });
  t.after(() => delete window.SVGElement.prototype.getBBox);
}

test("What just ran and what runs next bear a sign and a word, and the key explains them", (t) => {
  laidOut(t);
  const { el, press } = show(diamond());
  const tags = () => Object.fromEntries([...el.querySelectorAll(".pane .tag")].map((tag) => [tag.parentElement.dataset.op, tag.textContent]));
  assert.deepEqual(tags(), { a: "just ran", c: "runs next" });
  press("ArrowRight");
  assert.deepEqual(tags(), { c: "just ran", d: "runs next" });
  press("End");
  assert.deepEqual(tags(), {});
  assert.match(el.querySelector(".legend").textContent, /just ran.*runs next/);
  assert.ok([...el.querySelectorAll(".pane .tag")].every((tag) => tag.querySelector("path")));
});

test("What a step only speaks of is not said to run", (t) => {
  laidOut(t);
  const scene = diamond();
  for (const frame of scene.frames) frame.changes = [["a", "active"]];
  const { el, press } = show(scene);
  const words = () => [...el.querySelectorAll(".pane .tag")].map((tag) => tag.textContent);
  assert.deepEqual(words(), ["just ran", "next step"]);
  press("ArrowRight");
  assert.deepEqual(words(), ["this step", "next step"]);
});

test("Where a step runs nothing, nothing is said to run", (t) => {
  laidOut(t);
  const { el } = show({ ...diamond(), runs: false });
  assert.deepEqual([...el.querySelectorAll(".pane .tag")].map((tag) => tag.textContent), ["this step", "next step"]);
  assert.doesNotMatch(el.querySelector(".legend").textContent, /ran|runs/);
});

test("An input is there and does not run", (t) => {
  laidOut(t);
  const scene = diamond();
  scene.panes[0].svg = scene.panes[0].svg.replace(/class="node[^"]*" data-op="a"/, 'class="node input" data-op="a"');
  const { el } = show(scene);
  assert.equal(el.querySelector('.input[data-op="a"] .tag').textContent, "this step");
});

test("A reader who is asked what comes next is not shown it before", (t) => {
  laidOut(t);
  const scene = diamond();
  scene.frames[1].question = { text: "Which is next?", choices: [["c", "c"], ["d", "d"]], right: "c" };
  const { el, model } = show(scene, { predict: true });
  const words = () => [...el.querySelectorAll(".pane .tag")].map((tag) => tag.textContent);
  assert.deepEqual(words(), ["just ran"]);
  model.set("predict", false);
  assert.deepEqual(words(), ["just ran", "runs next"]);
});

test("The longest captions, questions and verdicts have room before they are shown", () => {
  const scene = diamond();
  scene.frames[1].question = { text: "Which is it? ".repeat(20), choices: [["c", "c"], ["d", "d"]], right: "c" };
  scene.frames[2].caption = "`code` is wide. ".repeat(10);
  const { el, model } = show(scene, { predict: true });
  const kept = () => [...el.querySelectorAll(".caption-room .room")].map((room) => room.textContent);
  assert.equal(kept()[0], scene.frames[1].question.text);
  assert.equal(kept()[1], scene.frames[2].caption.replaceAll("`", ""));
  assert.ok(el.querySelector(".answers").hasAttribute("data-kept"));
  model.set("predict", false);
  assert.ok(!kept().includes(scene.frames[1].question.text));
});

test("A step changes only what its frame says, however large the picture is", () => {
  const count = 2000;
  const scene = randomScene(3, count, 30);
  scene.sources = Object.fromEntries(Array.from({ length: count - 1 }, (_, i) => [`n${i + 1}`, [`n${i}`]]));
  const { el, click, press } = show(scene);
  click('[data-op="n5"]');
  const watched = new window.MutationObserver(() => {});
  watched.observe(el.querySelector(".body"), { attributes: true, childList: true, characterData: true, subtree: true });
  for (let i = 0; i < 20; i++) press("ArrowRight");
  const most = 20 * 6 * 8; // steps, changes a frame at most, places of a key and what it writes there
  assert.ok(watched.takeRecords().length <= most);
});

test("Captions are read aloud once each, and not while they fly by", () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const { el, press, model } = show(randomScene(4));
  const caption = el.querySelector(".caption");
  const watched = new window.MutationObserver(() => {});
  watched.observe(caption, { childList: true });
  model.set("scene", { ...model.get("scene") });
  assert.equal(watched.takeRecords().length, 0, "the same words are not said again");
  el.querySelector("select").value = "5";
  press(" ");
  mock.timers.tick(200);
  assert.equal(caption.getAttribute("aria-live"), "off");
  press(" ");
  assert.equal(caption.getAttribute("aria-live"), "polite");
  el.querySelector("select").value = "0.5";
  press(" ");
  mock.timers.tick(2000);
  assert.equal(caption.getAttribute("aria-live"), "polite");
});
