/** What anywidget calls. */

import { saveWhatIsShown } from "./notebook.js";
import { buildPlayer } from "./player.js";

/** Show a widget's model in an element; returns what takes it away. @param {{model: Model, el: HTMLElement}} view */
function render({ model, el }) {
  const life = new AbortController();
  buildPlayer(el, model, life.signal);
  return () => life.abort();
}

/** Runs once for each widget, also where JupyterLab does not draw its cell yet. @param {{model: Model}} widget */
function initialize({ model }) {
  saveWhatIsShown(model.widget_manager);
}

export default { initialize, render }; // anywidget warns of a `render` that is exported by name
