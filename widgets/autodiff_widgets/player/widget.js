/** What shows a view: what its loader calls. */

import { unpackedModel } from "./packed.js";
import { buildPlayer } from "./player.js";

/** Show a view's model in an element; returns what takes it away. @param {{model: Model, el: HTMLElement}} view */
async function render({ model, el }) {
  const life = new AbortController();
  buildPlayer(el, await unpackedModel(model, life.signal), life.signal);
  return () => life.abort();
}

export default { render };
