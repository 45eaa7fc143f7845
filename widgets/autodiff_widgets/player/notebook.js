/** What JupyterLab saves of a notebook's widgets: the module of the widget that holds the player. */

/**
 * The part of a notebook's widget state that its cells show, and whatever these refer to in turn.
 * @template T @param {Record<string, T>} state by model id @param {string} cells as JSON @returns {Record<string, T>}
 */
export function shownState(state, cells) {
  const shown = new Set();
  /** @param {string} text */
  const visit = (text) => {
    for (const id of Object.keys(state)) {
      if (shown.has(id) || !text.includes(id)) continue;
      shown.add(id);
      visit(JSON.stringify(state[id]));
    }
  };
  visit(cells);
  return Object.fromEntries(Object.entries(state).filter(([id]) => shown.has(id)));
}

/**
 * Let JupyterLab save what the notebook shows. By itself it saves the widgets that have a kernel: so it forgets a picture
 * when a reopened notebook is saved before its cells ran again, and it keeps each picture of a cell that ran ten times.
 * Its manager has no option for that. Where a later JupyterLab is built otherwise, it saves as it does by itself.
 * @param {any} manager
 */
export function saveWhatIsShown(manager) {
  const { get_state_sync: save, _modelsSync: models, context } = manager ?? {};
  if (!save || !models || !context?.model?.toJSON || save.keepsPictures) return;
  /** @param {object} options */
  const saveShown = (options) => {
    const left = [...models.values()].filter((model) => !model.comm_live); // their kernel has gone
    for (const model of left) model._comm_live = true; // not by its setter, which would tell the page
    try {
      const all = save.call(manager, options);
      return { ...all, state: shownState(all.state, JSON.stringify(context.model.toJSON().cells)) };
    } finally {
      for (const model of left) model._comm_live = false;
    }
  };
  manager.get_state_sync = Object.assign(saveShown, { keepsPictures: true });
}

/** Runs when that widget is there, also where JupyterLab draws no cell yet. @param {{model: Model}} widget */
function initialize({ model }) {
  saveWhatIsShown(model.widget_manager);
}

export default { initialize };
