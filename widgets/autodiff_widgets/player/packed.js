/** What Python sends packed: JSON, compressed, as text. */

const PACKED = ["scene", "inner"]; // traits

/** What a packed text holds. @param {string} text @returns {Promise<any>} */
export function unpack(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const json = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(json).json();
}

/**
 * A widget's model, in which packed traits are read unpacked. That takes a moment, so a change is told when it can be
 * read, with all that changes meanwhile; of several scenes the newest is enough.
 * @param {Model} model @param {AbortSignal} signal @returns {Promise<Model>}
 */
export async function unpackedModel(model, signal) {
  /** @type {Record<string, any>[]} */
  const [texts, values] = [{}, {}];
  const waiting = new Set();
  const later = new Map();
  let busy = false;
  const late = () => PACKED.filter((name) => texts[name] !== model.get(name));
  const catchUp = async () => {
    busy = true;
    try {
      while (late().length && !signal.aborted) {
        for (const name of late()) values[name] = await unpack((texts[name] = model.get(name)));
      }
    } finally {
      busy = false;
    }
    const due = [...waiting];
    waiting.clear();
    if (!signal.aborted) for (const listener of due) listener();
  };
  /** @param {() => void} listener */
  const tell = (listener) => {
    if (!busy && !late().length) return listener();
    waiting.add(listener);
    if (!busy) catchUp();
  };
  await catchUp();
  return {
    ...model,
    get: (name) => (PACKED.includes(name) ? values[name] : model.get(name)),
    on(event, listener) {
      later.set(listener, () => tell(listener));
      model.on(event, later.get(listener));
    },
    off: (event, listener) => model.off(event, later.get(listener)),
  };
}
