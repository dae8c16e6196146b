/** What outlives the page: the uploads of this browser, in IndexedDB, and which of its tabs works on which. */

import { address } from "../core/service.js";

/** @import { StoredUpload, UploadStorage } from "./upload_rows.js" */

const NAME = `uploads to ${address("/")}`; // a proxy may have several services at one origin

/** @type {Promise<IDBDatabase> | null} */
let opening = null;

/** @returns {Promise<IDBDatabase>} */
function open() {
  opening ??= new Promise((resolve, reject) => {
    const request = indexedDB.open(NAME, 1);
    request.onupgradeneeded = () => {
      request.result.createObjectStore("uploads", { keyPath: "id" });
      request.result.createObjectStore("files");
    };
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  return opening;
}

/**
 * @template T
 * @param {IDBTransactionMode} mode
 * @param {(uploads: IDBObjectStore, files: IDBObjectStore) => IDBRequest<T>} act
 * @returns {Promise<T>} The result of the last request, once all is stored.
 */
async function transact(mode, act) {
  const transaction = (await open()).transaction(["uploads", "files"], mode);
  return new Promise((resolve, reject) => {
    const request = act(transaction.objectStore("uploads"), transaction.objectStore("files"));
    transaction.oncomplete = () => resolve(request.result);
    transaction.onabort = () => reject(transaction.error);
  });
}

/** @type {UploadStorage} */
export const uploadStorage = {
  async put(stored) {
    await transact("readwrite", (uploads) => uploads.put(stored)).catch(() => {});
  },

  async putFile(id, file) {
    return transact("readwrite", (_, files) => files.put(file, id)).then(
      () => true,
      () => false,
    );
  },

  async remove(id) {
    await transact("readwrite", (uploads, files) => {
      files.delete(id);
      return uploads.delete(id);
    }).catch(() => {});
  },
};

/** Among the files: those of uploads have names. */
const allSound = () => IDBKeyRange.upperBound(Number.POSITIVE_INFINITY);

/** Sound of a recording that the service does not have yet. */
export const soundStorage = {
  /** @param {import("./live_stream.js").Unsent} sound Behind what is stored. */
  async put(sound) {
    await transact("readwrite", (_, files) => files.put(sound, sound.first)).catch(() => {});
  },

  /** @returns {Promise<import("./live_stream.js").Unsent>} */
  async all() {
    const stored = await transact("readonly", (_, files) => files.getAll(allSound())).catch(() => []);
    return { first: stored[0]?.first ?? 0, parts: stored.flatMap(({ parts }) => parts) };
  },

  async clear() {
    await transact("readwrite", (_, files) => files.delete(allSound())).catch(() => {});
  },
};

/** Remove all of them. */
export async function forgetUploads() {
  await transact("readwrite", (uploads, files) => {
    files.clear();
    return uploads.clear();
  }).catch(() => {});
}

/** @returns {Promise<StoredUpload[]>} */
export function storedUploads() {
  return transact("readonly", (uploads) => uploads.getAll()).catch(() => []);
}

/**
 * @param {string} id
 * @returns {Promise<Blob | null>} null if the browser has not kept it.
 */
export async function storedFile(id) {
  const file = await transact("readonly", (_, files) => files.get(id)).catch(() => null);
  return file ?? null;
}

/**
 * Take over an upload of a tab that is gone. Only one of several tabs succeeds.
 * @param {StoredUpload} seen
 * @param {string} tab
 * @returns {Promise<boolean>}
 */
export async function claim(seen, tab) {
  let isClaimed = false;
  await transact("readwrite", (uploads) => {
    const request = uploads.get(seen.id);
    request.onsuccess = () => {
      if (request.result?.tab !== seen.tab) return;
      uploads.put({ ...request.result, tab });
      isClaimed = true;
    };
    return request;
  }).catch(() => {
    isClaimed = false;
  });
  return isClaimed;
}

const ANSWER_MS = 300;
const channel = new BroadcastChannel(`uploads to ${address("/")}`);

/** @type {(ids: string[]) => void} */
let onAnswer = () => {};

/**
 * Answer other tabs.
 * @param {() => string[]} held The uploads of this tab.
 */
export function answerTabs(held) {
  channel.onmessage = ({ data }) => {
    if (data.isQuestion) channel.postMessage({ isQuestion: false, ids: held() });
    else onAnswer(data.ids);
  };
}

/** @returns {Promise<Set<string>>} The uploads of all other open tabs. */
export async function heldElsewhere() {
  /** @type {Set<string>} */
  const held = new Set();
  onAnswer = (ids) => {
    for (const id of ids) held.add(id);
  };
  channel.postMessage({ isQuestion: true });
  await new Promise((resolve) => setTimeout(resolve, ANSWER_MS));
  return held;
}
