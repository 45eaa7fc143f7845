/** What a player promises: undo equals replay, clean pictures, keys, links between players, and nothing left behind. */

import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { PLAYER, random, randomScene, show, window } from "./page.js";

const { byKey, parsePicture } = await import(`${PLAYER}/pictures.js`);
const { film } = await import(`${PLAYER}/film.js`);
const { initialize } = (await import(`${PLAYER}/notebook.js`)).default;

const draw = (scene) => scene.panes.map((pane) => parsePicture(pane.svg));
const markup = (pictures) => pictures.map((picture) => picture.innerHTML).join();

test("What anywidget runs is the default export, since a render by name is deprecated", async () => {
  for (const [name, parts] of [["widget", ["render"]], ["loader", ["render"]], ["notebook", ["initialize"]]]) {
    const module = await import(`${PLAYER}/${name}.js`);
    assert.deepEqual(Object.keys(module.default), parts);
    assert.ok(!("render" in module));
  }
});

test("After any scrub the pictures are the same as after a replay from the start", () => {
  for (let seed = 1; seed <= 40; seed++) {
    const scene = randomScene(seed);
    const next = random(seed * 97);
    const scrubbed = draw(scene);
    const reel = film(byKey(scrubbed), scene.frames);
    for (let jump = 0; jump < 12; jump++) {
      const target = Math.floor(next() * scene.frames.length);
      reel.go(target);
      const replayed = draw(scene);
      film(byKey(replayed), scene.frames).go(target);
      assert.equal(reel.at, target);
      assert.equal(markup(scrubbed), markup(replayed), `seed ${seed}, frame ${target}`);
    }
  }
});

test("Going back before the first frame leaves the pictures as they were drawn", () => {
  const scene = randomScene(7);
  const pictures = draw(scene);
  const drawn = markup(pictures);
  const reel = film(byKey(pictures), scene.frames);
  reel.go(scene.frames.length - 1);
  assert.notEqual(markup(pictures), drawn);
  reel.go(-1);
  assert.equal(markup(pictures), drawn);
});

test("A text inside an inner element is written by the inner element's key only", () => {
  const inner = '<g data-op="inner"><text data-slot="value">-</text></g>';
  const picture = parsePicture(`<svg xmlns="http://www.w3.org/2000/svg"><g data-op="outer"><text data-slot="value">-</text>${inner}</g></svg>`);
  film(byKey([picture]), [{ changes: [["outer", null, { value: "OUT" }]] }]).go(0);
  assert.deepEqual([...picture.querySelectorAll("text")].map((text) => text.textContent), ["OUT", "-"]);
});

test("A picture loses everything that could run or load something", () => {
  const picture = parsePicture(`<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" onload="run()">
    <script>run()</script><style>@import "http://outside"</style><foreignObject><b xmlns="http://www.w3.org/1999/xhtml">x</b></foreignObject>
    <g data-op="n1" ONCLICK="run()" onmouseover="run()" style="background:image-set('http://outside' 1x)"><text>kept</text></g>
    <a href="java&#10;script:run()"><text>gone</text></a><use xlink:href="http://outside#x"/><image href="http://outside/i.png"/>
    <rect fill="url(http://outside)" mask="u\\72l(http://outside)" data-note=" java&#9;script:run()"/>
    <set attributeName="onclick" to="run()"/><iframe xmlns="http://www.w3.org/1999/xhtml" src="http://outside"/></svg>`);
  const kept = picture.outerHTML;
  for (const word of ["run()", "outside", "script", "foreignObject", "iframe", "style"]) assert.ok(!kept.includes(word), `${word} in ${kept}`);
  assert.equal(picture.querySelector("[data-op=n1] text").textContent, "kept");
});

test("Ids inside a picture are its own, and references follow them", () => {
  const text = '<svg xmlns="http://www.w3.org/2000/svg"><marker id="tip"/><path marker-end="url(#tip)" fill="url(\'#tip\')"/></svg>';
  const [one, two] = [parsePicture(text), parsePicture(text)];
  const id = one.querySelector("marker").id;
  assert.notEqual(id, two.querySelector("marker").id);
  assert.equal(one.querySelector("path").getAttribute("marker-end"), `url(#${id})`);
  assert.equal(one.querySelector("path").getAttribute("fill"), `url('#${id}')`);
});

test("A pane that is no SVG is refused with what was seen", () => {
  assert.throws(() => parsePicture("<p>hello</p>"), /needs an SVG document, got "<p>hello/);
});

test("A picture ends where a tag of HTML ends it, and nothing of HTML is in it", () => {
  const picture = parsePicture('<svg viewBox="0 0 9 9"><g data-op="n1"><title>a<b>c</b></title></g><img src="outside"><g data-op="n2"/></svg>');
  assert.equal(picture.outerHTML, '<svg viewBox="0 0 9 9"><g data-op="n1"><title>a</title></g></svg>');
});

test("Arrow keys, page keys, Home and End move the frame, and stay inside", () => {
  const { press, counter, model } = show(randomScene(1));
  const walk = [["ArrowLeft", 0], ["ArrowRight", 1], ["PageDown", 11], ["ArrowLeft", 10], ["PageUp", 0], ["End", 39], ["ArrowRight", 39], ["Home", 0]];
  for (const [key, at] of walk) {
    assert.ok(press(key).defaultPrevented);
    assert.equal(counter(), `${at} / 39`, key);
    assert.equal(model.get("frame"), at);
  }
});

test("Keys that the player does not use, and keys with a modifier, are left to the page", () => {
  const { el, press } = show(randomScene(1));
  assert.ok(!press("a").defaultPrevented);
  assert.ok(!press(" ", el.querySelector("button")).defaultPrevented);
  assert.ok(!press("ArrowRight", el.querySelector("select")).defaultPrevented);
});

test("Buttons and scrubber show the same frames as the keys", () => {
  const { el, click, counter } = show(randomScene(2));
  click("button.last");
  assert.equal(counter(), "39 / 39");
  assert.equal(el.querySelector("button.forward").getAttribute("aria-disabled"), "true");
  click("button.back");
  assert.equal(counter(), "38 / 39");
  const scrubber = el.querySelector("input[type=range]");
  scrubber.value = "5";
  scrubber.dispatchEvent(new window.Event("input"));
  assert.equal(el.querySelector(".caption").textContent, "step 5");
  click("button.first");
  assert.equal(scrubber.value, "0");
});

test("A name between backquotes in a caption is shown as code, and nothing in it is markup", () => {
  const scene = randomScene(2, 2, 1);
  scene.frames[0].caption = "Now `<b>w` of `n1` runs.";
  const caption = show(scene).el.querySelector(".caption");
  assert.deepEqual([...caption.querySelectorAll("code")].map((code) => code.textContent), ["<b>w", "n1"]);
  assert.equal(caption.textContent, "Now <b>w of n1 runs.");
});

test("Playing steps by itself, a step by hand stops it, and the end stops it too", () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const { press, counter, el } = show(randomScene(3, 4, 4));
  press(" ");
  mock.timers.tick(1000);
  assert.equal(counter(), "1 / 3");
  press("ArrowLeft");
  mock.timers.tick(5000);
  assert.equal(counter(), "0 / 3");
  press(" ");
  for (let i = 0; i < 5; i++) mock.timers.tick(1000);
  assert.equal(counter(), "3 / 3");
  assert.equal(el.querySelector("button.play").getAttribute("aria-label"), "Play (Space)");
  press(" ");
  assert.equal(counter(), "0 / 3", "playing from the end begins again");
});

test("Frames are saved at most ten times a second, and never to a dead kernel", () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const { press, model } = show(randomScene(4));
  for (let i = 0; i < 30; i++) press("ArrowRight");
  assert.equal(model.saves, 0);
  mock.timers.tick(100);
  assert.equal(model.saves, 1);
  for (const kernel of [{ status: "dead" }, { status: "restarting" }, null]) {
    model.widget_manager = { kernel };
    press("ArrowRight");
    mock.timers.tick(1000);
    assert.equal(model.saves, 1);
  }
  assert.equal(model.get("frame"), 33);
  model.widget_manager = { kernel: { status: "busy" } };
  press("ArrowRight");
  mock.timers.tick(1000);
  assert.equal(model.saves, 2);
});

test("Selecting in one player selects in every player of the same link, and only there", () => {
  const [one, two, other] = [show(randomScene(5)), show(randomScene(6)), show(randomScene(6), { link: "apart" })];
  one.click('[data-op="n2"] rect');
  for (const { el, model } of [one, two]) {
    assert.equal(model.get("selected"), "n2");
    assert.equal(el.querySelectorAll("[data-selected]").length, 2, "node and row");
    assert.match(el.querySelector(".details").textContent, /n2.*shape.*\(2, 3\)/);
  }
  assert.equal(other.model.get("selected"), null);
  two.press("Escape");
  assert.equal(one.model.get("selected"), null);
  assert.equal(one.el.querySelectorAll("[data-selected]").length, 0);
  other.click('[data-op="n1"] rect');
  assert.equal(one.model.get("selected"), null);
});

test("A picture is one Tab stop; arrows walk its elements and Enter selects", () => {
  const { el, press, model } = show(randomScene(7));
  const stops = [...el.querySelectorAll(".pane")].map((pane) => pane.querySelectorAll('[role=button][tabindex="0"]').length);
  assert.deepEqual(stops, [1, 1]);
  const first = el.querySelector('[data-op="n0"]');
  assert.equal(first.getAttribute("aria-label"), "n0");
  assert.equal(first.getAttribute("aria-description"), "op n0, shape (2, 3)");
  first.focus();
  press("ArrowDown", first);
  assert.equal(document.activeElement.getAttribute("data-op"), "n1");
  press("Enter", document.activeElement);
  assert.equal(model.get("selected"), "n1");
  assert.equal(el.querySelector('[tabindex="0"][data-op]').getAttribute("data-op"), "n1");
});

test("A trait set from Python moves the player and tells the page", () => {
  const [one, two] = [show(randomScene(8)), show(randomScene(9))];
  one.model.set("frame", 12);
  one.model.set("selected", "n3");
  assert.equal(one.counter(), "12 / 39");
  assert.equal(two.model.get("selected"), "n3");
  assert.equal(two.counter(), "0 / 39");
});

test("The kernel's late echo of an older frame does not take the reader back", () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const player = show(randomScene(3, 8, 9));
  player.press("ArrowRight");
  mock.timers.tick(100); // frame 1 is sent
  player.press("ArrowRight");
  player.model.set("frame", 1); // its echo arrives when the reader is at 2
  assert.equal(player.counter(), "2 / 8");
  assert.equal(player.model.get("frame"), 2);
  mock.timers.tick(100);
  player.model.set("frame", 5); // nothing waits to be sent: this is Python's own wish
  assert.equal(player.counter(), "5 / 8");
});

test("A new scene takes the place of the old one", () => {
  const { el, model } = show(randomScene(10));
  model.set("scene", randomScene(11, 3, 5));
  assert.equal(el.querySelectorAll(".autodiff-player").length, 1);
  assert.equal(el.querySelector(".title").textContent, "scene 11");
});

test("After cleanup nothing is left: no element, no listener, no timer that steps or saves", () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const [gone, here] = [show(randomScene(12)), show(randomScene(13))];
  gone.press("ArrowRight"); // a report waits
  gone.press(" ");
  gone.cleanup();
  assert.equal(gone.el.childElementCount, 0);
  assert.equal(gone.model.listening, 0);
  here.click('[data-op="n1"] rect');
  mock.timers.tick(5000);
  assert.equal(gone.model.get("selected"), null);
  assert.equal(gone.model.get("frame"), 1);
  assert.equal(gone.model.saves, 0);
});

/** A manager like JupyterLab's: it saves the models that have a kernel, each with the ids of the models that it refers to. */
function makeManager(refers, cells) {
  const models = new Map(Object.keys(refers).map((id) => [id, { id, _comm_live: true, get comm_live() { return this._comm_live; } }]));
  const live = () => [...models.values()].filter((model) => model.comm_live);
  return {
    _modelsSync: models,
    context: { model: { toJSON: () => ({ cells, metadata: { widgets: Object.keys(refers) } }) } },
    get_state_sync: () => ({ version_major: 2, state: Object.fromEntries(live().map(({ id }) => [id, { refers: refers[id] }])) }),
  };
}

test("A notebook is saved with the widgets that it shows, whether their kernel lives or not, and with no other", () => {
  const refers = { view: ["IPY_MODEL_layout"], layout: [], box: ["IPY_MODEL_inner"], inner: ["IPY_MODEL_layout2"], layout2: [], old: ["IPY_MODEL_layout3"], layout3: [] };
  const manager = makeManager(refers, [{ outputs: [{ data: { model_id: "view" } }, { data: { model_id: "box" } }] }]);
  for (const id of ["view", "layout", "old"]) manager._modelsSync.get(id)._comm_live = false;
  initialize({ model: { widget_manager: manager } });
  initialize({ model: { widget_manager: manager } });
  const { version_major, state } = manager.get_state_sync({ drop_defaults: true });
  assert.deepEqual(Object.keys(state).sort(), ["box", "inner", "layout", "layout2", "view"]);
  assert.equal(version_major, 2);
  assert.deepEqual([...manager._modelsSync.values()].filter((model) => model.comm_live).map((model) => model.id), ["box", "inner", "layout2", "layout3"]);
});

test("A notebook's manager that is built otherwise is left alone", () => {
  for (const manager of [undefined, null, {}, { get_state_sync: () => 1 }]) initialize({ model: { widget_manager: manager } });
});

test("A new scene keeps the keyboard where it was", () => {
  const { el, model, press, counter } = show(randomScene(5));
  el.querySelector("button.forward").focus();
  model.set("scene", randomScene(6));
  assert.equal(document.activeElement, el.querySelector("button.forward"));
  el.querySelector('[data-op="n2"]').focus();
  model.set("scene", randomScene(7));
  assert.equal(document.activeElement, el.querySelector('[data-op="n2"]'));
  model.set("scene", randomScene(8, 2));
  assert.equal(document.activeElement, el.querySelector(".autodiff-player"));
  press("ArrowRight", document.activeElement);
  assert.match(counter(), /^1 /);
});

// ---- families of keys

test("What shows the same thing in several places is selected together, and keeps states of its own", () => {
  const bar = (key) => `<g class="bar" data-op="${key}"><rect/></g>`;
  const keys = ["n1", "n1~a", "n1~a~2", "n1~b", "n10"];
  const svg = `<svg xmlns="http://www.w3.org/2000/svg">${keys.map(bar).join("")}</svg>`;
  const frames = [{ caption: "all", changes: [["n1~a", "active"]], focus: null, source: null }];
  const facts = Object.fromEntries(keys.slice(0, 2).map((key) => [key, [["task", key]]]));
  const { el, click } = show({ title: "", panes: [{ svg, label: "" }], frames, facts, legend: [] });
  const having = (attribute) => [...el.querySelectorAll(`[${attribute}]`)].map((e) => e.dataset.op);
  assert.deepEqual(having("data-s"), ["n1~a"]);
  click('[data-op="n1"]');
  assert.deepEqual(having("data-selected"), keys.slice(0, 4));
  click('[data-op="n1~a"]');
  assert.deepEqual(having("data-selected"), ["n1", "n1~a", "n1~a~2"]);
  assert.match(el.querySelector(".details").textContent, /n1~a/);
});

test("A selection brings into sight what shows it in each picture, itself or what is akin to it", () => {
  const pane = (...keys) => {
    const rows = keys.map((key) => `<g class="row" data-op="${key}"><rect/></g>`).join("");
    return { svg: `<svg xmlns="http://www.w3.org/2000/svg">${rows}</svg>`, label: "" };
  };
  const panes = [pane("n1~a", "n1", "n2"), pane("n2~b", "n1~b"), pane("n2")];
  const frames = [{ caption: "all", changes: [], focus: null, source: null }];
  const { el, click } = show({ title: "", panes, frames, facts: { n1: [["task", "n1"]] }, legend: [] });
  const scrolled = [];
  const far = { left: 900, right: 910, top: 900, bottom: 910 };
  el.querySelectorAll(".pane").forEach((box, number) => {
    box.getBoundingClientRect = () => ({ left: 0, right: 100, top: 0, bottom: 100, width: 100, height: 100 });
    box.scrollBy = () => scrolled.push(number);
    for (const row of box.querySelectorAll(".row")) {
      row.getBoundingClientRect = () => (["n1", "n1~b"].includes(row.dataset.op) ? far : { left: 0, right: 9, top: 0, bottom: 9 });
    }
  });
  click('[data-op="n1"]');
  assert.deepEqual(scrolled, [0, 1]);
});

// ---- questions

function asking(seed = 3) {
  const scene = randomScene(seed, 4, 5);
  const choices = [["n1", "one"], ["n2", "two"]];
  for (const number of [1, 3]) scene.frames[number].question = { text: `Which is \`${number}\`?`, choices, right: "n2" };
  return scene;
}
const buttons = (el) => [...el.querySelectorAll(".answers button")];
const said = (el) => el.querySelector(".caption").textContent;

test("A question is asked only where the reader wants to predict, and only when going one step forwards", () => {
  const silent = show(asking());
  silent.press("ArrowRight");
  assert.equal(silent.counter(), "1 / 4");
  const { el, press, counter } = show(asking(), { predict: true });
  press("End");
  assert.equal(counter(), "4 / 4");
  press("Home");
  press("ArrowRight");
  assert.deepEqual([counter(), said(el)], ["0 / 4", "Which is 1?"]);
  assert.deepEqual(buttons(el).map((button) => button.textContent), ["one", "two", "Skip"]);
  assert.equal(document.activeElement, buttons(el)[0]);
});

test("An answer shows the step with a verdict and counts; it is not asked again", () => {
  const { el, press, click, counter } = show(asking(), { predict: true });
  press("ArrowRight");
  buttons(el)[1].click();
  assert.equal(counter(), "1 / 4");
  assert.match(said(el), /^Right! \(1 of 1 right\)\s+step 1$/);
  assert.deepEqual(buttons(el), []);
  press("ArrowRight");
  press("ArrowRight");
  click('.node[data-op="n1"]'); // an element of the picture answers as well
  assert.equal(counter(), "3 / 4");
  assert.match(said(el), /^No, it is two\. \(1 of 2 right\)/);
  press("Home");
  press("ArrowRight");
  assert.deepEqual([counter(), said(el)], ["1 / 4", "step 1"]);
});

test("A question is skipped by its button or by a second step, and going elsewhere takes it back", () => {
  const { el, press, counter } = show(asking(), { predict: true });
  press("ArrowRight");
  press("ArrowRight", document.activeElement);
  assert.deepEqual([counter(), said(el)], ["1 / 4", "step 1"]);
  assert.equal(document.activeElement, el.querySelector(".autodiff-player")); // the next key comes here
  press("ArrowRight");
  press("ArrowRight");
  buttons(el)[2].click();
  assert.match(said(el), /^It is two\.\s+step 3$/);
  press("Home");
  press("ArrowRight");
  press("End");
  assert.deepEqual(buttons(el), []);
});

test("Playing stops at a question", () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const { el, press, counter } = show(asking(), { predict: true });
  press(" ");
  mock.timers.tick(10_000);
  assert.deepEqual([counter(), said(el)], ["0 / 4", "Which is 1?"]);
  buttons(el)[0].click();
  mock.timers.tick(10_000);
  assert.equal(counter(), "1 / 4");
});
