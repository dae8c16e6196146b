/** What follows from an error in the upload of a recording, or in the submission of its job. */

/** @import { StoredUpload, UploadRow } from "./upload_rows.js" */

/**
 * @typedef {object} Failure An ApiError, or one of a test.
 * @property {number} status 0: the service cannot be reached.
 * @property {string | null} [code]
 * @property {number | null} [retryAfter] seconds
 *
 * @typedef {{next: "delay", ms: number}
 *   | {next: "renew"}
 *   | {next: "resend"}
 *   | {next: "fail"}} Reaction
 * `renew`: the service has no such upload any more. `resend`: bytes of it are missing.
 */

const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 30_000;
const MOST_RENEWALS = 3; // one after the other
const WORTH_MENTIONING = 1_000_000; // bytes
const PASSING = new Set([0, 408, 423, 425, 429, 460, 500, 502, 503, 504]);

/**
 * @param {Failure} error
 * @param {number} attempts How many have failed one after the other, without this one.
 * @returns {Reaction}
 */
function reactionTo(error, attempts) {
  if (error.status === 404 && error.code === "model_not_found") return { next: "fail" };
  if (error.status === 404 || error.status === 410) return { next: "renew" };
  if (error.code === "upload_incomplete") return { next: "resend" };
  const mayPass = PASSING.has(error.status) || error.status === 409;
  if (!mayPass || isFinal(error.code)) return { next: "fail" };
  return { next: "delay", ms: (error.retryAfter ?? 0) * 1000 || pauseMs(attempts) };
}

/**
 * @param {string | null} [code] Of a 409 or 429. Others of a 409 mean that another request has the upload, or
 * that it stalled.
 */
function isFinal(code) {
  return code === "upload_used" || code === "idempotency_key_reused" || code === "insufficient_quota";
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
  const reaction = reactionTo(error, attempts);
  const again = { attempts: attempts + 1 };
  if (reaction.next === "delay") {
    return { row: { ...again, state: "delayed", message, retryAt: Date.now() + reaction.ms } };
  }
  if (reaction.next === "fail" || !stored.uploadId || attempts >= MOST_RENEWALS) {
    return { row: { state: "failed", message } };
  }
  if (reaction.next === "resend")
    return { row: { ...again, state: "waiting" }, stored: { isComplete: false } };
  const isRestarted = progress.value.sent >= WORTH_MENTIONING;
  return { row: { ...again, state: "waiting", isRestarted }, stored: { uploadId: "", isComplete: false } };
}
