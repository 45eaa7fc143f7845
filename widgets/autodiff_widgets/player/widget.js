/** What anywidget calls. */

import { saveWhatIsShown } from "./notebook.js";
import { unpackedModel } from "./packed.js";
import { buildPlayer } from "./player.js";

/** Show a view's model in an element; returns what takes it away. @param {{model: Model, el: HTMLElement}} view */
async function render({ model, el }) {
  const life = new AbortController();
  buildPlayer(el, await unpackedModel(model, life.signal), life.signal);
  return () => life.abort();
}

/** Runs when the widget is there that holds this text for all views: before any of them is drawn. @param {{model: Model}} widget */
function initialize({ model }) {
  saveWhatIsShown(model.widget_manager);
}

export default { initialize, render }; // anywidget warns of a `render` that is exported by name
