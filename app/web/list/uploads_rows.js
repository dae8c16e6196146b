/** Rows of uploads: new ones, and those of an earlier page. */

import { signal } from "../vendor/ui.js";

/** @import { StoredUpload, UploadRow } from "./uploads_types.js" */

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
    isRecorded: false,
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
