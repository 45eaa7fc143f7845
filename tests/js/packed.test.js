/** What a view does before it has a player: it finds the one of its notebook, and reads what was sent packed. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { PLAYER, makeModel, player, randomScene } from "./page.js";

const loader = (await import(`${PLAYER}/loader.js`)).default;
const { unpackedModel } = await import(`${PLAYER}/packed.js`);

const pack = (data) => gzipSync(JSON.stringify(data)).toString("base64");
const packedModel = (scene, state) => makeModel(pack(scene), { inner: pack({}), ...state });

/** Waits until something is so; the test's own limit ends it. */
async function until(isSo) {
  while (!isSo()) await new Promise(setImmediate);
}

/** A player on the page, from a model as Python sends it. */
async function shown(model, render = player.default.render) {
  const el = document.body.appendChild(document.createElement("div"));
  return { el, cleanup: await render({ model, el }), counter: () => el.querySelector(".counter").value };
}

test("A packed scene is played as what it holds, and an inside that comes later is opened", { timeout: 30_000 }, async () => {
  const scene = { ...randomScene(1), opens: ["n1"] };
  const model = packedModel({ ...scene, title: "“π” </script>" }, { selected: "n1" });
  const { el, cleanup } = await shown(Object.assign(model, { widget_manager: {} }));
  assert.equal(el.querySelector(".title").textContent, "“π” </script>");
  el.querySelector(".autodiff-player").dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
  model.set("inner", pack({ n1: randomScene(2) }));
  await until(() => el.querySelector(".title").textContent.endsWith("scene 2"));
  cleanup();
  assert.equal(model.listening, 0);
});

test("A frame that comes with a new scene is shown in it, in whatever order the two are told", { timeout: 30_000 }, async () => {
  for (const order of [["frame", "scene"], ["scene", "frame"]]) {
    const model = packedModel(randomScene(1, 3, 5));
    const { counter, cleanup } = await shown(model);
    const sent = { scene: pack(randomScene(1, 3, 20)), frame: 15 };
    model.setTogether(Object.fromEntries(order.map((name) => [name, sent[name]])));
    await until(() => counter().endsWith(" / 19"));
    assert.deepEqual([counter(), model.get("frame")], ["15 / 19", 15]);
    cleanup();
  }
});

test("Of scenes that come faster than they are unpacked the newest is shown, once, and none when the view is gone", { timeout: 30_000 }, async () => {
  const model = packedModel(randomScene(1, 3, 5));
  const life = new AbortController();
  const read = await unpackedModel(model, life.signal);
  const seen = [];
  read.on("change:scene", () => seen.push(read.get("scene").frames.length));
  for (const length of [6, 7, 8]) model.set("scene", pack(randomScene(1, 3, length)));
  assert.equal(read.get("scene").frames.length, 5);
  await until(() => seen.length);
  const other = await unpackedModel(model, new AbortController().signal);
  let heard = false;
  other.on("change:scene", () => (heard = true));
  model.set("scene", pack(randomScene(1, 3, 9)));
  life.abort();
  await until(() => heard);
  assert.deepEqual(seen, [8]);
});

test("What changes without a scene is told at once", { timeout: 30_000 }, async () => {
  const model = packedModel(randomScene(1));
  const { counter, cleanup } = await shown(model);
  model.set("frame", 3);
  assert.equal(counter(), "3 / 39");
  cleanup();
});

/** A manager that has the widget which holds a player; Node imports no blobs, so their text becomes a data: address. */
function managerWith(t, text) {
  t.mock.method(globalThis, "Blob", function Blob([part]) {
    this.part = part;
  });
  t.mock.method(URL, "createObjectURL", ({ part }) => `data:text/javascript,${encodeURIComponent(part)}`);
  t.mock.method(URL, "revokeObjectURL", () => {});
  return { get_model: async (id) => (id === "p1" ? { get: (name) => (name === "player" ? text : undefined) } : Promise.reject(new Error("none"))) };
}

test("All views of a page import the player of their notebook once, and another text is another player", { timeout: 30_000 }, async (t) => {
  const text = "globalThis.imported = (globalThis.imported ?? 0) + 1; export default { render: ({ el }) => ((el.textContent = 'played'), 'cleanup') };";
  const view = (manager) => shown({ get: () => "IPY_MODEL_p1", widget_manager: manager }, loader.render);
  const manager = managerWith(t, text);
  const views = await Promise.all([view(manager), view(manager), view(manager)]);
  assert.deepEqual(views.map(({ el, cleanup }) => [el.textContent, cleanup]), Array(3).fill(["played", "cleanup"]));
  assert.equal(globalThis.imported, 1);
  await view(managerWith(t, `${text}//`));
  assert.equal(globalThis.imported, 2);
});

test("Where there is no player to be had, the view says so and what to do", { timeout: 30_000 }, async (t) => {
  const warn = t.mock.method(console, "warn", () => {});
  for (const [manager, id] of [[undefined, "p1"], [{}, "p1"], [managerWith(t, "export default 1;"), "p2"], [managerWith(t, "not a module"), "p1"]]) {
    const { el } = await shown({ get: () => `IPY_MODEL_${id}`, widget_manager: manager }, loader.render);
    assert.match(el.textContent, /Run its cell again\..*save_html/);
  }
  assert.equal(warn.mock.callCount(), 4);
});
