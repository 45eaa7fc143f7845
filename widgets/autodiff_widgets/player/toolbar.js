/** Buttons, scrubber, counter and speed. */

import { dress, html, pushButton, svg } from "./elements.js";

// Those that look forwards are mirrored by player.css.
const ICONS = {
  first: "M5 4h2.5v16H5zM20 4v16L8.5 12z",
  back: "M14 4h2.5v16H14zM12 4v16L3 12z",
  play: "M6 3.5v17L20 12z",
  pause: "M5 4h5v16H5zM14 4h5v16h-5z",
};

/** @param {keyof ICONS} name */
const icon = (name) => svg("svg", { viewBox: "0 0 24 24", "aria-hidden": "true" }, svg("path", { d: ICONS[name] }));

/** @param {{go(index: number): void, step(by: number): void, toggle(): void}} player */
export function toolbar(player) {
  /** @type {(name: string, picture: keyof ICONS, label: string, act: () => void) => HTMLButtonElement} */
  const button = (name, picture, label, act) => pushButton({ title: label, "aria-label": label, class: name }, icon(picture), act);
  const first = button("first", "first", "First step (Home)", () => player.go(0));
  const back = button("back", "back", "Step back (←)", () => player.step(-1));
  const play = button("play", "play", "Play (Space)", () => player.toggle());
  const forward = button("forward", "back", "Step forward (→)", () => player.step(1));
  const end = button("last", "first", "Last step (End)", () => player.go(Infinity));
  const scrubber = html("input", { type: "range", min: "0", value: "0", "aria-label": "Step" });
  scrubber.addEventListener("input", () => player.go(Number(scrubber.value)));
  const counter = html("output", { class: "counter" });
  const speeds = ["0.5", "1", "2", "5", "20"].map((times) => html("option", { value: times }, `${times}×`));
  const speed = html("select", { "aria-label": "Speed" }, ...speeds);
  speed.value = "1";
  const root = html("div", { class: "toolbar" }, first, back, play, forward, end, scrubber, counter, speed);
  return {
    root,
    /** Steps a second. */
    get pace() {
      return Number(speed.value);
    },
    /** @type {(at: number, last: number, playing: boolean) => void} */
    show(at, last, playing) {
      root.hidden = last === 0;
      scrubber.max = String(last);
      scrubber.value = String(at);
      scrubber.setAttribute("aria-valuetext", `step ${at} of ${last}`);
      counter.value = `${at} / ${last}`;
      // Not `disabled`: a disabled button loses the focus, and with it the keyboard.
      for (const node of [first, back]) node.setAttribute("aria-disabled", String(at === 0));
      for (const node of [forward, end]) node.setAttribute("aria-disabled", String(at === last));
      const label = playing ? "Pause (Space)" : "Play (Space)";
      if (play.title === label) return;
      play.replaceChildren();
      dress(play, { title: label, "aria-label": label }, [icon(playing ? "pause" : "play")]);
    },
  };
}
