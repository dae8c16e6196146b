/** The shapes of what the service answers about jobs. */

/**
 * @typedef {{word: string, start: number, end: number, probability: number, speaker?: string}} Word Times in seconds.
 *   `speaker`: where the service knows it. It may be another one than that of the segment.
 */

/**
 * @typedef {object} Segment A segment of a transcript. Values are never changed: a correction makes new ones.
 * @property {string} id Of this page only if it begins with `new-`; else of the service.
 * @property {number} start seconds
 * @property {number} end seconds
 * @property {string} text
 * @property {string | null} speaker Of its first words.
 * @property {readonly Word[]} words Empty where the words' times are unknown, as after a correction until it is saved.
 */

/**
 * @typedef {object} Progress
 * @property {string} stage
 * @property {number} done_s
 * @property {number | null} total_s
 * @property {number} clips_done
 * @property {number | null} clips_total
 * @property {number | null} realtime_factor
 */

/** @typedef {"queued" | "running" | "succeeded" | "failed" | "cancelled"} Status */

/**
 * @typedef {object} Job
 * @property {string} id
 * @property {Status} status
 * @property {string} created_at
 * @property {string | null} started_at
 * @property {string | null} finished_at
 * @property {string | null} filename
 * @property {string | null} url
 * @property {number | null} duration seconds
 * @property {unknown[] | null} audio_tracks null until the recording is decoded
 * @property {string | null} language
 * @property {string} model
 * @property {Record<string, unknown>} options
 * @property {Progress} progress
 * @property {{message: string, code: string | null} | null} error
 * @property {{start: number, end: number}[]} failed_spans
 * @property {number} revision 0: the transcript is the original.
 * @property {string | null} excerpt The beginning of the text.
 * @property {string[] | null} speakers
 * @property {string | null} expires_at null: it stays, or is not done.
 * @property {string | null} audio_expires_at The same for the recording.
 */

/** @param {Job} job */
export function isActive(job) {
  return job.status === "queued" || job.status === "running";
}

/** Whether the service has the recording. Only one from a URL may be missing. @param {Job} job */
export function hasArrived(job) {
  return job.url === null || job.filename !== null;
}

/** Whether the service could not decode the recording. @param {Job} job */
export function isUndecodable(job) {
  return job.status === "failed" && job.audio_tracks === null;
}

/** @param {Job} job */
export function nameOf(job) {
  return job.filename ?? job.url ?? job.id;
}
