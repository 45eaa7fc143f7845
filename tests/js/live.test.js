/** A scene that changes under the reader's hands, the projector, and the text twin as tables. */

import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { randomScene, show, window } from "./page.js";

/** The first frames of a scene, drawn with the nodes that they have so far. */
function grown(length) {
  const whole = randomScene(20, 4 + Math.floor(length / 4), length);
  return { ...whole, title: "growing", opens: ["n1"], sources: { n1: ["n0"] } };
}

test("While a scene grows the reader keeps frame, selection, focus, place and what is open", () => {
  const { el, model, press, click, counter } = show(grown(12), { projector: true });
  const player = el.querySelector(".autodiff-player");
  const box = el.querySelector(".pane");
  for (let i = 0; i < 3; i++) press("ArrowRight");
  click('[data-op="n1"]');
  box.scrollTop = 21;
  el.querySelector('[data-op="n2"]').focus();
  el.querySelector(".twin").open = true;
  for (const length of [16, 20, 40]) model.set("scene", grown(length));
  assert.equal(el.querySelector(".autodiff-player"), player, "the player is not built anew");
  assert.deepEqual([counter(), model.get("selected"), box.scrollTop], ["3 / 39", "n1", 21]);
  assert.equal(el.querySelector(".pane"), box);
  assert.equal(document.activeElement.dataset.op, "n2");
  assert.equal(el.querySelectorAll("[data-selected]").length, 2);
  assert.equal(el.querySelector('[data-near="source"]').dataset.op, "n0");
  assert.ok(player.hasAttribute("data-projector") && el.querySelector(".twin").open);
});

test("Who looks at the last frame sees the newest", () => {
  const { model, press, counter } = show(grown(5));
  press("End");
  model.set("scene", grown(9));
  assert.deepEqual([counter(), model.get("frame")], ["8 / 8", 8]);
  model.set("scene", grown(3));
  assert.equal(counter(), "2 / 2");
});

test("A frame that Python sets with a new scene is shown", () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const { model, press, counter } = show(grown(5));
  press("End");
  mock.timers.tick(100); // the step is told, so what comes now is no echo
  model.setTogether({ frame: 0, scene: grown(9) });
  assert.equal(counter(), "0 / 8");
});

test("A focus outside of the pictures is not moved by a new scene", () => {
  const { el, model } = show(grown(5));
  const outside = document.body.appendChild(document.createElement("button"));
  for (const element of [outside, el.querySelector("[type=search]"), el.querySelector("select")]) {
    element.focus();
    model.set("scene", grown(8));
    assert.equal(document.activeElement, element);
  }
});

test("The picture of a changed scene is as if it had been shown from the start", () => {
  const plain = (el) => [...el.querySelectorAll(".pane svg")].map((svg) => svg.outerHTML.replace(/ tabindex="-?\d"/g, "")).join();
  for (let seed = 1; seed <= 12; seed++) {
    const [before, after] = [randomScene(seed), randomScene(seed + (seed % 2 ? 0 : 50), 8, 25)];
    const changed = show(before, { frame: seed, link: `a${seed}` });
    changed.click('[data-op="n1"]');
    changed.press("Escape");
    changed.model.set("scene", after);
    const fresh = show(after, { frame: seed, link: `b${seed}` });
    assert.equal(plain(changed.el), plain(fresh.el), `seed ${seed}`);
  }
});

test("A picture that is the same is not drawn again", () => {
  const scene = randomScene(6);
  const { el, model, press } = show(scene);
  press("End");
  const svg = el.querySelector(".pane svg");
  model.set("scene", { ...scene, title: "again" });
  assert.equal(el.querySelector(".pane svg"), svg);
  assert.equal(el.querySelector(".title").textContent, "again");
});

test("An inner scene stays while the outer one grows, and closes where its element is gone", () => {
  const { el, model, press, click } = show(grown(8), { inner: { n1: randomScene(7) } });
  click('[data-op="n1"]');
  press("Enter");
  model.set("scene", grown(12));
  assert.equal(el.querySelector(".title").textContent, "growingscene 7");
  press("Backspace");
  assert.match(el.querySelector(".counter").value, / 11$/);
  press("Enter");
  assert.equal(el.querySelector(".title").textContent, "growingscene 7");
  model.set("scene", { ...grown(9), opens: [] });
  assert.equal(el.querySelector(".title").textContent, "growing");
});

test("A live view is told which picture was painted, and another view nothing", async () => {
  const [live, other] = [show(grown(5), { sent: 3 }), show(grown(5))];
  live.model.setTogether({ sent: 4, scene: grown(6) });
  other.model.set("scene", grown(6));
  await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 20)));
  assert.equal(live.model.get("painted"), 4);
  assert.equal(other.model.get("painted"), undefined);
});

// ---- projector

test("The projector is a trait, a button and Escape, and Escape then closes nothing else", () => {
  const { el, model, press, click } = show(randomScene(5));
  const root = el.querySelector(".autodiff-player");
  click('[data-op="n1"]');
  click(".project");
  assert.ok(root.hasAttribute("data-projector") && model.get("projector"));
  press("Escape");
  assert.ok(!root.hasAttribute("data-projector") && !model.get("projector"));
  assert.equal(model.get("selected"), "n1");
  model.set("projector", true);
  assert.equal(el.querySelector(".project").getAttribute("aria-pressed"), "true");
  model.set("projector", false);
  assert.ok(!root.hasAttribute("data-projector"));
});

test("A screen that is refused is replaced by the window, and leaving the screen leaves the projector", async () => {
  const { el, click } = show(randomScene(5));
  const root = el.querySelector(".autodiff-player");
  root.requestFullscreen = () => Promise.reject(new Error("no click"));
  root.showPopover = mock.fn();
  click(".project");
  await new Promise(setImmediate);
  assert.equal(root.showPopover.mock.callCount(), 1);
  click(".project");
  root.requestFullscreen = () => Promise.resolve();
  click(".project");
  root.matches = () => false; // jsdom knows no :popover-open
  document.dispatchEvent(new window.Event("fullscreenchange"));
  assert.ok(!root.hasAttribute("data-projector"));
});

// ---- the text twin

function opened(scene) {
  const shown = show(scene);
  const fold = shown.el.querySelector(".twin");
  assert.equal(fold.querySelector("table"), null, "nothing is built before it is opened");
  fold.open = true;
  fold.dispatchEvent(new window.Event("toggle"));
  return { ...shown, tables: [...fold.querySelectorAll("table")], fold };
}

test("The twin has every fact under its element, and every step, with the current one marked", () => {
  const scene = randomScene(8);
  const { tables, press } = opened(scene);
  const [elements, steps] = tables;
  assert.deepEqual([...elements.querySelectorAll("thead th")].map((th) => th.scope), ["col", "col", "col"]);
  const groups = [...elements.tBodies].map((body) => [body.querySelector("[scope=rowgroup]").textContent, [...body.rows].map((row) => [row.querySelector("[scope=row]").textContent, row.querySelector("td").textContent])]);
  assert.deepEqual(groups, Object.entries(scene.facts));
  assert.deepEqual([...steps.tBodies[0].rows].map((row) => row.querySelector("td").textContent), scene.frames.map((frame) => frame.caption));
  const current = () => [...steps.querySelectorAll("[aria-current=step]")].map((row) => row.querySelector("th").textContent);
  assert.deepEqual(current(), ["0"]);
  press("PageDown");
  assert.deepEqual(current(), ["10"]);
});

test("A large twin is built in parts, and the parts are all of it", () => {
  const { tables, fold, click } = opened(randomScene(9, 700, 5));
  const bodies = () => tables[0].tBodies.length;
  assert.equal(bodies(), 300);
  assert.match(fold.querySelector("button").textContent, /400 of 700/);
  click(".tables button");
  click(".tables button");
  assert.equal(bodies(), 700);
  assert.ok(fold.querySelector("button").hidden);
});

test("The twin of a growing scene follows it, a few times a second", () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const { fold, model, press } = opened(grown(8));
  press("End");
  for (const length of [9, 10, 11]) model.set("scene", grown(length));
  mock.timers.tick(300);
  const rows = fold.querySelectorAll("table")[1].tBodies[0].rows;
  assert.equal(rows.length, 11);
  assert.equal(rows[10].getAttribute("aria-current"), "step");
});
