/** What `GET /v1/workers/events` sends. Times in Unix seconds of the server. */

/**
 * @typedef {object} Share A job's, or a request's, part of a batch.
 * @property {string} job
 * @property {"job" | "request"} kind
 * @property {number} clips
 *
 * @typedef {object} Block A batch that has ended.
 * @property {number} id Counts up.
 * @property {number} slot
 * @property {Share[]} jobs
 * @property {number} start
 * @property {number} end
 * @property {number} clips
 * @property {number} audio_s
 * @property {"ok" | "failed" | "requeued"} outcome
 *
 * @typedef {object} GpuFigures
 * @property {number | null} memory_used Bytes.
 * @property {number | null} memory_total Bytes.
 * @property {number | null} utilisation 0 to 1.
 *
 * @typedef {"loading" | "idle" | "busy" | "restarting" | "asleep" | "draining" | "failed"} WorkerState
 *
 * @typedef {object} Worker A row of `GET /v1/workers`, as far as the page shows it.
 * @property {number} slot
 * @property {string | null} node_name Of a cluster's node.
 * @property {string | null} actor
 * @property {string} device
 * @property {string | null} visible_devices
 * @property {string | null} model
 * @property {string | null} compute_type
 * @property {WorkerState} state
 * @property {number} restarts
 * @property {number} clips
 * @property {number} audio_s
 * @property {string | null} error
 * @property {GpuFigures | null} gpu
 * @property {(Share & {since: number})[]} working What it does now.
 *
 * @typedef {object} Queue What waits, and what is live.
 * @property {number} clips For a worker.
 * @property {number} oldest_s How long the oldest clip has waited.
 * @property {number | null} jobs That have not begun. null: not known now.
 * @property {number} streams Live, and open.
 */

export {};
