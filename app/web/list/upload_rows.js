/** Rows of uploads: new ones, and those of an earlier page; and how fast they go. */

import { signal } from "../vendor/ui.js";

/**
 * @typedef {"waiting" | "sending" | "submitting" | "delayed" | "paused" | "failed" | "fileNeeded"} UploadState
 * `waiting`: for its turn. `submitting`: all bytes have arrived, and the job is made. `delayed`: an attempt failed,
 * and the next one begins by itself. `fileNeeded`: the browser has lost the file; the user can choose it again.
 */

/**
 * @typedef {object} StoredUpload What outlives the page.
 * @property {string} id Also the key that keeps the job from being made twice.
 * @property {number} order Rows are sorted by it.
 * @property {string} tab The tab that works on it.
 * @property {string} name
 * @property {number} size bytes
 * @property {number} lastModified Unix time, ms
 * @property {string} source The URL of the recording; empty: a file is uploaded.
 * @property {Record<string, unknown>} options Of the job, as the API names them.
 * @property {string} uploadId The service's name for the upload; empty: not begun.
 * @property {boolean} isComplete All bytes have arrived, or there are none to send.
 * @property {boolean} isPaused
 */

/**
 * @typedef {object} UploadRow
 * @property {StoredUpload} stored
 * @property {Blob | null} file
 * @property {boolean} isKept The browser has stored the file: it survives a closed tab.
 * @property {UploadState} state
 * @property {string} message Why it failed, or is delayed; empty otherwise.
 * @property {boolean} isRefused The service would not take it: it is never sent.
 * @property {boolean} isRestarted Bytes had to be sent again.
 * @property {number} attempts Failed ones, one after the other.
 * @property {number} retryAt Unix time, ms; of a delayed one
 * @property {import("../vendor/ui.js").Signal<UploadProgress>} progress
 */

/**
 * @typedef {object} UploadProgress
 * @property {number} sent bytes
 * @property {number} rate bytes per second; 0: not known yet
 */

/**
 * @typedef {object} Transport How uploads reach the service. Everything is rejected with ApiError.
 * @property {(row: UploadRow, handlers: SendHandlers) => Promise<void>} send Resolved when all bytes have arrived.
 * @property {(row: UploadRow) => Promise<number>} offset How many bytes have arrived.
 * @property {(row: UploadRow, signal: AbortSignal) => Promise<unknown>} submit Make the job.
 * @property {(uploadId: string) => Promise<unknown>} discard
 */

/**
 * @typedef {object} SendHandlers
 * @property {(uploadId: string) => void} onBegin
 * @property {(sent: number) => void} onProgress
 * @property {AbortSignal} signal
 */

/**
 * @typedef {object} UploadStorage
 * @property {(stored: StoredUpload) => Promise<void>} put
 * @property {(id: string, file: Blob) => Promise<boolean>} putFile Whether the browser keeps the file.
 * @property {(id: string) => Promise<void>} remove
 */

const MOST_BYTES = 1_000_000_000; // of one file
const MOST_BYTES_IN_ALL = 4_000_000_000;

/**
 * @param {Partial<StoredUpload> & {name: string}} about
 * @param {{options: Record<string, unknown>, tab: string, file?: File | null}} how
 * @returns {UploadRow}
 */
export function newRow(about, { options, tab, file = null }) {
  const stored = {
    id: randomId(),
    order: nextOrder(),
    tab,
    size: 0,
    lastModified: 0,
    source: "",
    options,
    uploadId: "",
    isComplete: false,
    isPaused: false,
    ...about,
  };
  return { ...restoredRow(stored, file), isKept: false };
}

/**
 * @param {StoredUpload} stored
 * @param {Blob | null} file
 * @returns {UploadRow}
 */
export function restoredRow(stored, file) {
  return {
    stored,
    file,
    isKept: file !== null,
    isRefused: false,
    isRestarted: false,
    state: stored.isPaused ? "paused" : "waiting",
    message: "",
    attempts: 0,
    retryAt: 0,
    progress: signal({ sent: stored.isComplete ? stored.size : 0, rate: 0 }),
  };
}

/**
 * Whether the browser may copy one more file. Its storage is also for unsaved corrections.
 * @param {UploadRow[]} rows
 * @param {number} size bytes
 */
export function mayKeep(rows, size) {
  const kept = rows.filter(({ isKept }) => isKept).reduce((sum, { stored }) => sum + stored.size, 0);
  return size <= MOST_BYTES && kept + size <= MOST_BYTES_IN_ALL;
}

let lastOrder = 0;

/** Ascending, also for rows of the same moment. */
function nextOrder() {
  lastOrder = Math.max(lastOrder + 1, Date.now());
  return lastOrder;
}

function randomId() {
  // `crypto.randomUUID` exists in secure contexts only.
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
    byte.toString(16).padStart(2, "0"),
  ).join("");
}

const HALF_LIFE_MS = 3000;
const SHORTEST_MS = 250;

/**
 * A function that takes how many bytes have been sent, and returns the present rate.
 * @param {() => number} [now] ms
 * @returns {(sent: number) => number} Bytes per second; 0 until it is known.
 */
export function rateMeter(now = Date.now) {
  /** @type {{sent: number, at: number} | null} */
  let last = null;
  let rate = 0;
  return (sent) => {
    const at = now();
    if (!last || sent < last.sent) {
      last = { sent, at };
      return rate;
    }
    const ms = at - last.at;
    if (ms < SHORTEST_MS) return rate;
    const present = ((sent - last.sent) / ms) * 1000;
    const weight = rate ? 1 - 0.5 ** (ms / HALF_LIFE_MS) : 1;
    rate += (present - rate) * weight;
    last = { sent, at };
    return rate;
  };
}
