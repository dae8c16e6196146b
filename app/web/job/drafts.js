/** Unsaved corrections, kept by the browser until the service has them, and those of closed tabs. */

import { sharedLink } from "../core/shared_link.js";
import { t } from "../core/text.js";
import { toast } from "../core/toasts.js";
import { effect, signal } from "../vendor/ui.js";
import { withOpenParts } from "./conflict.js";
import { applyChanges, isSame, newId } from "./edits_rules.js";
import { downloadCopy } from "./saving_status.js";
import { keptWords } from "./words.js";

/** @typedef {import("./types.js").Segment} Segment */
/** @typedef {import("./session_document.js").Document} Document */
/** @typedef {import("./edits_rules.js").Change} Change */

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

/**
 * Put the drafts of closed tabs upon the transcript. Where two of them have changed the same segment, the newer one
 * counts, and the other one is offered as a text.
 * @param {Document} document
 * @param {import("./saving.js").Saving} saving
 * @param {DraftKeeper} drafts
 */
export async function restore(document, saving, drafts) {
  const found = await drafts.read();
  if (!found.length) return;
  const base = document.base.peek();
  /** @type {Map<string, import("./edits_rules.js").Change>} */
  const changes = new Map();
  for (const draft of found) {
    const older = draft.changes.filter((change) => changes.has(change.id));
    document.lose(older.filter((change) => !isSame(change.after, changes.get(change.id)?.after)));
    document.offer(draft.lost);
    for (const change of draft.changes) if (!changes.has(change.id)) changes.set(change.id, change);
  }
  const mine = withWords([...changes.values()], base, keptWords);
  if (found.every((draft) => draft.revision === saving.version.revision.peek())) document.receive(base, mine);
  else saving.mergeMine(applyChanges(base, mine, "before"), applyChanges(base, mine, "after"));
  if (saving.dirty.peek()) toast(t("saving.restored"));
  if (await drafts.write()) await removeAll(found);
}

/** @param {readonly Draft[]} found */
async function removeAll(found) {
  for (const draft of found) await removeDraft(draft.key);
}

/**
 * The job is deleted: its corrections can be had as a text. The drafts of closed tabs stay until then.
 * @param {Document} document
 * @param {DraftKeeper} drafts
 */
export async function offerCopy(document, drafts) {
  const mine = document.changes.peek().length ? document.segments.peek() : [];
  const found = await drafts.read();
  const theirs = found.flatMap(({ changes, lost }) => [...changes.map(({ after }) => after), ...lost]);
  const texts = /** @type {Segment[]} */ ([...mine, ...document.lost.peek(), ...theirs.filter(Boolean)]);
  if (!texts.some(({ text }) => text.trim())) return;
  const run = () => {
    downloadCopy(texts);
    removeAll(found);
  };
  toast(t(sharedLink ? "saving.linkEnded" : "saving.gone"), {
    isError: true,
    action: { label: t("saving.copy"), run },
  });
}

/**
 * @typedef {object} Draft
 * @property {string} key Of one tab and job.
 * @property {string} job
 * @property {number} revision That the changes begin from; UNSETTLED: from several, since parts need a choice.
 * @property {readonly Change[]} changes With the ids of the service, and without words.
 * @property {readonly Segment[]} lost Corrected segments without a place in the transcript.
 * @property {number} at Unix time in ms.
 */

const [DATABASE, STORE] = ["whisperfleet", "drafts"];
const KEPT_MS = 90 * 24 * 3600 * 1000; // the job may have been deleted elsewhere
export const UNSETTLED = -1;

/** @type {Promise<IDBDatabase> | null} */
let opening = null;
/** @type {IDBDatabase | null} */
let database = null;

function open() {
  opening ??= new Promise((resolve, reject) => {
    const request = indexedDB.open(DATABASE, 1);
    request.onupgradeneeded = () =>
      request.result.createObjectStore(STORE, { keyPath: "key" }).createIndex("job", "job");
    request.onsuccess = () => {
      database = request.result;
      database.onclose = forget; // as when the user removes the data of the site
      removeOld(database);
      resolve(database);
    };
    request.onerror = () => reject(request.error);
  });
  opening.catch(forget);
  return opening;
}

function forget() {
  opening = null;
  database = null;
}

/** Remove the drafts that nobody came back to. @param {IDBDatabase} opened */
function removeOld(opened) {
  const request = opened.transaction(STORE, "readwrite").objectStore(STORE).openCursor();
  request.onsuccess = () => {
    const cursor = request.result;
    if (!cursor) return;
    if (Date.now() - cursor.value.at > KEPT_MS) cursor.delete();
    cursor.continue();
  };
}

/**
 * @template T
 * @param {IDBTransactionMode} mode
 * @param {(store: IDBObjectStore) => IDBRequest<T>} act
 * @returns {Promise<T | null>} null: the browser stores nothing, as in some private windows, or has no space left.
 */
async function transact(mode, act) {
  try {
    // A page that is being closed waits for nothing: all is sent at once, and committed.
    const transaction = (database ?? (await open())).transaction(STORE, mode, { durability: "strict" });
    const request = act(transaction.objectStore(STORE));
    if (mode === "readwrite") transaction.commit();
    return await new Promise((resolve, reject) => {
      transaction.oncomplete = () => resolve(request.result);
      transaction.onabort = () => reject(transaction.error);
    });
  } catch {
    return null;
  }
}

let isForgotten = false;

/** Remove all drafts. Until the page is loaded again, it keeps no other ones. */
export async function forgetDrafts() {
  isForgotten = true;
  await transact("readwrite", (store) => store.clear());
}

/** @param {Draft} draft */
export async function writeDraft(draft) {
  return isForgotten || (await transact("readwrite", (store) => store.put(draft))) !== null;
}

/** @param {string} key */
export async function removeDraft(key) {
  await transact("readwrite", (store) => store.delete(key));
}

/**
 * The drafts of a job that no open tab works on, newest first.
 * @param {string} job
 * @param {(key: string) => Promise<boolean>} isOpen Whether another tab has the draft.
 * @returns {Promise<Draft[]>}
 */
export async function readDrafts(job, isOpen) {
  /** @type {Draft[]} */
  const all = (await transact("readonly", (store) => store.index("job").getAll(job))) ?? [];
  const elsewhere = await Promise.all(all.map(({ key }) => isOpen(key)));
  return all.filter((_, index) => !elsewhere[index]).sort((one, other) => other.at - one.at);
}

/** Remove all drafts of a deleted job. @param {string} job */
export async function removeDrafts(job) {
  const keys = (await transact("readonly", (store) => store.index("job").getAllKeys(job))) ?? [];
  for (const key of keys) await removeDraft(String(key));
}

/**
 * What is kept of changes: the service knows the words.
 * @param {readonly Change[]} changes
 * @param {(id: string) => string} idOf
 * @returns {Change[]}
 */
export function keptChanges(changes, idOf) {
  return changes.map(({ id, before, after }) => ({
    id: idOf(id),
    before: before && { ...before, id: idOf(id), words: [] },
    after: after && { ...after, id: idOf(id), words: [] },
  }));
}

/**
 * Kept changes with the words that the service still has for them.
 * @param {readonly Change[]} changes
 * @param {readonly Segment[]} segments
 * @param {typeof import("./words.js").keptWords} keptWords
 * @returns {Change[]}
 */
export function withWords(changes, segments, keptWords) {
  const known = new Map(segments.map((segment) => [segment.id, segment]));
  return changes.map((change) => {
    const segment = known.get(change.id);
    if (!segment || !change.after) return change;
    return { ...change, after: { ...change.after, words: keptWords(segment, change.after.text) } };
  });
}
