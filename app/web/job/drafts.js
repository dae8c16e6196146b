/** Unsaved corrections, kept by the browser until the service has them. */

/** @typedef {import("./types.js").Segment} Segment */
/** @typedef {import("./edits_changes.js").Change} Change */

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

/** @param {Draft} draft */
export async function writeDraft(draft) {
  return (await transact("readwrite", (store) => store.put(draft))) !== null;
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
 * @param {typeof import("./edits_words.js").keptWords} keptWords
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
