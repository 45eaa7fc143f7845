/** Insides: one level opens in the place of another, and closes to what was there. */

import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { randomScene, show } from "./page.js";

const KERNEL = { kernel: { status: "idle" } };
const opening = (seed, ...opens) => ({ ...randomScene(seed), opens });
const title = (el) => el.querySelector(".title").textContent;
const note = (el) => el.querySelector(".note").textContent;
const doubleClick = (el, key) => {
  for (const detail of [1, 2]) el.querySelector(`[data-op="${key}"]`).dispatchEvent(new MouseEvent("click", { bubbles: true, detail }));
};

test("An element opens by double click, by Enter on the selected one, and by the button in its details", () => {
  const inner = { n2: randomScene(2, 3, 5) };
  const ways = [
    ({ el }) => doubleClick(el, "n2"),
    ({ el, press }) => {
      press("Enter", el.querySelector('[data-op="n2"]'));
      assert.equal(title(el), "scene 1", "the first Enter selects");
      press("Enter", el.querySelector('[data-op="n2"]'));
    },
    ({ el, click }) => (click('[data-op="n2"]'), click(".details .open")),
    ({ press, click }) => (click('[data-op="n2"]'), press("Enter")),
  ];
  for (const open of ways) {
    const shown = show(opening(1, "n2"), { inner, link: String(Math.random()) });
    open(shown);
    assert.equal(title(shown.el), "scene 1scene 2");
    assert.equal(shown.counter(), "0 / 4");
    assert.equal(document.activeElement, shown.el.querySelector(".autodiff-player"), "the keyboard goes on working");
  }
});

test("What has no inside does not open, and offers no button", () => {
  const { el, click } = show(opening(1, "n2"), { inner: { n1: randomScene(2) } });
  doubleClick(el, "n1");
  assert.equal(title(el), "scene 1");
  assert.equal(el.querySelector(".details .open"), null);
  click('[data-op="n2"]');
  assert.ok(el.querySelector(".details .open"));
});

test("Levels nest, and each closes to its own frame, selection and place", () => {
  const inner = { n2: { ...randomScene(2, 5, 9), opens: ["n4"] }, n4: randomScene(3, 5, 7) };
  const { el, press, counter, model } = show(opening(1, "n2"), { inner });
  el.querySelector(".pane").scrollTop = 33;
  for (let i = 0; i < 5; i++) press("ArrowRight");
  const picture = el.querySelector(".pane").innerHTML;
  doubleClick(el, "n2");
  press("ArrowRight");
  doubleClick(el, "n4");
  press("End");
  assert.equal(title(el), "scene 1scene 2scene 3");
  assert.equal(counter(), "6 / 6");
  assert.equal(model.get("frame"), 5, "the frame is that of the outermost scene");
  press("Backspace");
  assert.deepEqual([title(el), counter(), model.get("selected")], ["scene 1scene 2", "1 / 8", "n4"]);
  press("Escape");
  assert.deepEqual([title(el), counter(), model.get("selected")], ["scene 1", "5 / 39", "n2"]);
  assert.equal(el.querySelector(".pane").scrollTop, 33);
  press("Escape");
  assert.equal(model.get("selected"), null);
  const plain = (text) => text.replace(/ (tabindex|data-selected)="[^"]*"/g, "");
  assert.equal(plain(el.querySelector(".pane").innerHTML), plain(picture));
});

test("The breadcrumb goes back over several levels at once", () => {
  const inner = { n2: { ...randomScene(2), opens: ["n4"] }, n4: randomScene(3) };
  const { el, click } = show(opening(1, "n2"), { inner });
  doubleClick(el, "n2");
  doubleClick(el, "n4");
  assert.equal(el.querySelector(".title [aria-current=page]").textContent, "scene 3");
  click(".title button");
  assert.equal(title(el), "scene 1");
});

test("What is not there yet is asked for, and shown when Python answers", () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const { el, model } = show(opening(1, "n2"));
  model.widget_manager = KERNEL;
  doubleClick(el, "n2");
  assert.match(note(el), /^Asking Python/);
  mock.timers.tick(100);
  assert.equal(model.get("opened"), "n2");
  assert.ok(model.saves > 0);
  model.set("inner", { n9: randomScene(9) }); // an answer to somebody else
  assert.equal(title(el), "scene 1");
  model.set("inner", { n2: randomScene(2) });
  assert.equal(title(el), "scene 1scene 2");
  assert.equal(note(el), "");
});

test("Where Python does not answer, a sentence says what to do; a late answer is still shown", () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const { el, model } = show(opening(1, "n2"));
  model.widget_manager = { kernel: null };
  doubleClick(el, "n2");
  mock.timers.tick(3000);
  assert.match(note(el), /kernel is busy or gone/);
  assert.equal(model.saves, 0, "a dead kernel is not written to");
  model.set("inner", { n2: randomScene(2) });
  assert.equal(title(el), "scene 1scene 2");
});

test("Who has gone on is not taken inside by a late answer, and can ask again", () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const { el, model, click } = show(opening(1, "n2"));
  model.widget_manager = KERNEL;
  doubleClick(el, "n2");
  click('[data-op="n1"]');
  assert.equal(note(el), "");
  model.set("inner", { n2: { error: "n2 has no rule" } });
  assert.deepEqual([title(el), note(el)], ["scene 1", ""]);
  doubleClick(el, "n2");
  assert.equal(note(el), "n2 has no rule");
});

test("A page without Python says that the inside was not saved with it", () => {
  const { el } = show(opening(1, "n2"));
  doubleClick(el, "n2");
  assert.match(note(el), /not saved with this page/);
});

test("A selection made in another player reaches an inner scene, and does not close it", () => {
  const inner = { n2: randomScene(2) };
  const [one, two] = [show(opening(1, "n2"), { inner }), show(randomScene(4))];
  doubleClick(one.el, "n2");
  two.click('[data-op="n3"]');
  assert.equal(title(one.el), "scene 1scene 2");
  assert.equal(one.el.querySelectorAll('[data-selected][data-op="n3"]').length, 2);
});
