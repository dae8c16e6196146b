/** Asynchronous steps one after the other. A step that waits already is not added again. */

/** @typedef {(isCurrent: () => boolean) => Promise<void>} Step Not rejected. `isCurrent`: it is not forgotten. */

export function inTurns() {
  /** @type {Map<string, Promise<void>>} */
  let waiting = new Map();
  let last = Promise.resolve();

  return {
    /**
     * @param {string} name
     * @param {Step} step
     * @returns {Promise<void>} Resolved when a step of this name has ended that began after this call.
     */
    add(name, step) {
      const known = waiting.get(name);
      if (known) return known;
      const mine = waiting;
      last = last.then(() => {
        mine.delete(name);
        return mine === waiting ? step(() => mine === waiting) : undefined;
      });
      waiting.set(name, last);
      return last;
    },

    /** Wait for none of the steps so far. */
    forget() {
      waiting = new Map();
      last = Promise.resolve();
    },
  };
}
