/** What a player tells: the other players of its page, and Python. */

/**
 * Join the players of the page that share a link name; returns the function that tells them of a selection. The bus
 * hangs on globalThis because notebooks on one page may each have a player of their own.
 * @param {() => string} link @param {(element: string | null) => void} hear @param {AbortSignal} signal
 */
export function joinPage(link, hear, signal) {
  /** @type {{autodiffBus?: EventTarget}} */
  const page = /** @type {any} */ (globalThis);
  const bus = (page.autodiffBus ??= new EventTarget());
  const listener = (/** @type {any} */ { detail }) => detail.link === link() && hear(detail.key);
  bus.addEventListener("select", listener, { signal });
  return (/** @type {string | null} */ key) => bus.dispatchEvent(new CustomEvent("select", { detail: { link: link(), key } }));
}

/**
 * Traits to and from Python: written at most ten times a second, and not to a dead kernel, where each try logs an error.
 * @param {Model} model @param {AbortSignal} signal
 */
export function reporter(model, signal) {
  /** @type {Timer} */
  let timer;
  const send = () => {
    timer = undefined;
    const manager = model.widget_manager ?? {};
    // JupyterLab's manager has a kernel, which is null once it is gone; others do not say.
    if (!("kernel" in manager) || /^(idle|busy|starting)$/.test(manager.kernel?.status)) model.save_changes();
  };
  signal.addEventListener("abort", () => clearTimeout(timer));
  return {
    /** @type {(name: string, value: unknown) => void} */
    write(name, value) {
      if (model.get(name) === value) return;
      model.set(name, value);
      timer ??= setTimeout(send, 100);
    },
    /**
     * Act on a trait that changed in the model. While a newer value waits to be written, what the kernel says is its
     * echo of an older one: the reader has gone on, and must not be taken back.
     * @template T @param {string} name @param {T} mine @param {(value: T) => void} act
     */
    read(name, mine, act) {
      const value = model.get(name);
      if (value === mine) return;
      if (timer) model.set(name, mine);
      else act(value);
    },
  };
}

/** A live view sends its next picture when this one was painted. @param {Model} model */
export function tellPainted(model) {
  const sent = model.get("sent");
  if (!sent) return;
  requestAnimationFrame(() =>
    setTimeout(() => {
      model.set("painted", sent);
      model.save_changes();
    }),
  );
}
