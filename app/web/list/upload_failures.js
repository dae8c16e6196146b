/** What follows from an error in the upload of a recording, or in the submission of its job. */

/** @import { StoredUpload, UploadRow } from "./upload_rows.js" */

/**
 * @typedef {object} Failure An ApiError, or one of a test.
 * @property {number} status 0: the service cannot be reached.
 * @property {string | null} [code]
 * @property {number | null} [retryAfter] seconds
 */

const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 30_000;
const MOST_RENEWALS = 3; // one after the other
const WORTH_MENTIONING = 1_000_000; // bytes
const PASSING = new Set([0, 408, 423, 425, 429, 460, 500, 502, 503, 504]);

/** Of a 409 or 429. Others of a 409 mean that another request has the upload, or that it stalled. */
const FINAL = ["upload_used", "idempotency_key_reused", "insufficient_quota"];

/** Whether the same may succeed later. @param {Failure} error */
function mayPass({ status, code }) {
  return (PASSING.has(status) || status === 409) && !FINAL.includes(code ?? "");
}

/** The service has no such upload any more. @param {Failure} error */
function isGone({ status, code }) {
  return (status === 404 && code !== "model_not_found") || status === 410;
}

/** @param {number} attempts */
function pauseMs(attempts) {
  return Math.min(FIRST_PAUSE_MS * 2 ** attempts, LONGEST_PAUSE_MS);
}

/**
 * How a row changes after a failed attempt.
 * @param {UploadRow} row
 * @param {any} error ApiError, or anything else that was thrown
 * @returns {{row: Partial<UploadRow>, stored?: Partial<StoredUpload>}}
 */
export function changesAfter({ stored, attempts, progress }, error) {
  const { message } = error;
  if (error.name === "NotReadableError") return { row: { state: "fileNeeded", file: null, message: "" } };
  if (typeof error.status !== "number") return { row: { state: "failed", message } };
  const again = { attempts: attempts + 1 };
  const isShort = error.code === "upload_incomplete"; // bytes are missing
  if (!isShort && mayPass(error)) {
    const ms = (error.retryAfter ?? 0) * 1000 || pauseMs(attempts);
    return { row: { ...again, state: "delayed", message, retryAt: Date.now() + ms } };
  }
  const canRenew = (isShort || isGone(error)) && stored.uploadId && attempts < MOST_RENEWALS;
  if (!canRenew) return { row: { state: "failed", message } };
  if (isShort) return { row: { ...again, state: "waiting" }, stored: { isComplete: false } };
  const isRestarted = progress.value.sent >= WORTH_MENTIONING;
  return { row: { ...again, state: "waiting", isRestarted }, stored: { uploadId: "", isComplete: false } };
}
