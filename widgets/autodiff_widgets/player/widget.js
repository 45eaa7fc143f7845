/** What anywidget calls. */

import { saveWhatIsShown } from "./notebook.js";
import { buildPlayer } from "./player.js";

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
