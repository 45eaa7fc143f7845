/** The module of every view: it gets the player from the widget that holds it for all views of a notebook. */

const LOST =
  "The player of this picture is missing. Run its cell again. If that does not help, this program cannot show it: view.save_html('picture.html') " +
  "writes a page that any browser shows, and view.text() tells it in words.";

/** The module in a text, which is imported once for all views of a page. @param {string} text @returns {Promise<any>} */
function moduleIn(text) {
  /** @type {{autodiffPlayers?: Map<string, Promise<any>>}} */
  const page = /** @type {any} */ (globalThis);
  const players = (page.autodiffPlayers ??= new Map());
  if (!players.has(text)) {
    const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
    players.set(text, import(url).finally(() => URL.revokeObjectURL(url)));
  }
  return /** @type {Promise<any>} */ (players.get(text));
}

/** @param {Model} model @returns {Promise<any>} */
async function playerOf(model) {
  const holder = await model.widget_manager.get_model(model.get("_player").replace("IPY_MODEL_", ""));
  return (await moduleIn(holder.get("player"))).default;
}

/** @param {{model: Model, el: HTMLElement}} view */
async function render(view) {
  const player = await playerOf(view.model).catch((error) => console.warn(LOST, error));
  if (player) return player.render(view);
  view.el.textContent = LOST;
}

export default { render };
