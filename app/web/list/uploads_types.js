/** The types of uploads. */

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
 * @property {boolean} isRecorded From the microphone: there is no other copy.
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

export {};
