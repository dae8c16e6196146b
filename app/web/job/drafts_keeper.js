/** Keeps the draft of one open job up to date, and finds those of closed tabs. */

import { effect, signal } from "../vendor/ui.js";
import { withOpenParts } from "./conflict.js";
import { keptChanges, readDrafts, removeDraft, UNSETTLED, writeDraft } from "./drafts.js";
import { newId } from "./edits_segment.js";

const PAUSE_MS = 300; // after an edit, until it is written
const CLOSING_MS = 2000; // until a page that is being closed has released its locks

/** Keys of this page whose session is closed: their locks are released a moment later. */
const closed = new Set();

/** @typedef {ReturnType<typeof keepDraft>} DraftKeeper */

/**
 * @param {string} job
 * @param {import("./session_document.js").Document} document
 * @param {import("./saving.js").Saving} saving
 */
export function keepDraft(job, document, { conflict, version }) {
  const key = `${job}/${newId()}`;
  const release = holdLock(lockName(key));
  const isFailing = signal(false);
  let isWritten = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;

  /** @returns {Promise<boolean>} Whether the browser has it all. */
  async function write() {
    clearTimeout(timer);
    timer = undefined;
    const [changes, lost, parts] = [document.changes.peek(), document.lost.peek(), conflict.peek()?.parts];
    if (changes.length || lost.length || parts) {
      isWritten = true;
      const content = parts ? withOpenParts(changes, parts, document.segments.peek()) : changes;
      const revision = parts ? UNSETTLED : version.revision.peek();
      const kept = { changes: keptChanges(content, version.idOf), lost: lost.map(withoutWords) };
      isFailing.value = !(await writeDraft({ key, job, revision, ...kept, at: Date.now() }));
    } else if (isWritten) {
      isWritten = false;
      await removeDraft(key);
    }
    return !isFailing.peek();
  }

  const flush = () => {
    if (timer !== undefined) write();
  };
  const stop = effect(() => {
    void conflict.value;
    const isNeeded = document.changes.value.length > 0 || document.lost.value.length > 0;
    if (isNeeded || isWritten) timer ??= setTimeout(write, PAUSE_MS);
  });
  addEventListener("pagehide", flush);

  return {
    /** The browser does not keep the draft: it stores nothing, or has no space left. */
    isFailing,
    /** Write the newest state now. */
    write,
    /** The drafts of closed tabs. */
    read: () =>
      readDrafts(job, async (other) => {
        if (closed.has(other)) return false;
        return other === key || (await isHeld(lockName(other)));
      }),
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

/** @param {import("./types.js").Segment} segment */
function withoutWords(segment) {
  return { ...segment, words: [] };
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
