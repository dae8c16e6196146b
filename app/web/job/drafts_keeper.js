/** Keeps the draft of one open job up to date, and finds those of closed tabs. */

import { effect } from "../vendor/ui.js";
import { keptChanges, readDrafts, removeDraft, writeDraft } from "./drafts.js";
import { newId } from "./edits_segment.js";

const PAUSE_MS = 300; // after an edit, until it is written
const CLOSING_MS = 2000; // until a page that is being closed has released its locks

/** Keys of this page whose session is closed: their locks are released a moment later. */
const closed = new Set();

/** @typedef {ReturnType<typeof keepDraft>} DraftKeeper */

/**
 * @param {string} job
 * @param {import("./session_document.js").Document} document
 * @param {{revision: () => number, idOf: (id: string) => string}} version
 */
export function keepDraft(job, document, { revision, idOf }) {
  const key = `${job}/${newId()}`;
  const release = holdLock(lockName(key));
  let isWritten = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;

  function write() {
    clearTimeout(timer);
    timer = undefined;
    const changes = document.changes.peek();
    if (changes.length) {
      isWritten = true;
      return writeDraft({
        key,
        job,
        revision: revision(),
        changes: keptChanges(changes, idOf),
        at: Date.now(),
      });
    }
    if (!isWritten) return;
    isWritten = false;
    return removeDraft(key);
  }

  const flush = () => {
    if (timer !== undefined) write();
  };
  const stop = effect(() => {
    const isDirty = document.changes.value.length > 0;
    if (isDirty || isWritten) timer ??= setTimeout(write, PAUSE_MS);
  });
  addEventListener("pagehide", flush);

  return {
    /** Write the newest state now. */
    write,
    /** The drafts of closed tabs. */
    read: () => readDrafts(job, async (other) => !closed.has(other) && (await isHeld(lockName(other)))),
    /** Ends it. The draft stays as it is. */
    close() {
      stop();
      flush();
      removeEventListener("pagehide", flush);
      release();
      closed.add(key);
    },
  };
}

/** @param {string} key */
function lockName(key) {
  return `whisperfleet.draft.${key}`;
}

/**
 * Hold a lock until the page is closed. Browsers have locks only in secure contexts; without them, a second tab
 * takes in the draft of the first one, and what both save is merged.
 * @param {string} name
 * @returns {() => void} Releases it.
 */
function holdLock(name) {
  /** @type {() => void} */
  let release = () => {};
  const released = new Promise((resolve) => {
    release = () => resolve(undefined);
  });
  navigator.locks?.request(name, () => released).catch(() => {}); // refused while the page goes away
  return release;
}

/**
 * Whether another tab holds a lock, and not only for the moment that its end takes.
 * @param {string} name
 */
async function isHeld(name) {
  const options = { signal: AbortSignal.timeout(CLOSING_MS) };
  return Boolean(await navigator.locks?.request(name, options, () => false).catch(() => true));
}
