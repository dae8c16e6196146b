/** The requests that read and store a transcript. */

import { ApiError, request } from "../core/api.js";
import { mayPass, sleep } from "../core/events.js";

/** @typedef {import("./types.js").Segment} Segment */
/** @typedef {{segments: readonly Segment[], revision: number, complete: boolean, etag: string}} Stored */

const FIRST_PAUSE_MS = 2000;
const LONGEST_PAUSE_MS = 60_000;
const PUT_MS = 300_000; // even 32 MB over a slow line take less
const MOST_KEEPALIVE_BYTES = 60_000; // browsers allow 64 KiB for all such requests together

/**
 * @param {string} job
 * @param {{signal?: AbortSignal, etag?: string}} [options] `etag`: of what the page has.
 * @returns {Promise<Stored | null>} null: the service has nothing else.
 */
export async function fetchSegments(job, { signal, etag } = {}) {
  /** @type {Record<string, string>} */
  const headers = etag ? { "If-None-Match": etag } : {};
  const response = await request(`/v1/jobs/${job}/segments`, { signal, headers, cache: "no-store" });
  return response.status === 304 ? null : storedOf(response);
}

/**
 * @param {string} job
 * @param {object} content The segments, or the revision that comes back.
 * @param {string} etag Of what it corrects.
 * @param {boolean} isLeaving The page may be gone before the answer.
 * @returns {Promise<Stored>}
 */
export async function putSegments(job, content, etag, isLeaving) {
  const body = JSON.stringify(content);
  const isSmall = isLeaving && new Blob([body]).size <= MOST_KEEPALIVE_BYTES;
  const headers = { "Content-Type": "application/json", "If-Match": etag };
  const signal = AbortSignal.timeout(PUT_MS);
  return storedOf(
    await request(`/v1/jobs/${job}/segments`, { method: "PUT", headers, body, keepalive: isSmall, signal }),
  );
}

/** @param {Response} response @returns {Promise<Stored>} */
export async function storedOf(response) {
  return { ...(await response.json()), etag: response.headers.get("ETag") ?? "" };
}

/**
 * Whether the same request may succeed later.
 * @param {unknown} error Anything but an ApiError: the connection broke off in the answer, or no answer came.
 */
export function mayPassLater(error) {
  return !(error instanceof ApiError) || mayPass(error);
}

/**
 * Whether the job is deleted, or the shared link to it has ended.
 * @param {unknown} error
 * @returns {error is ApiError}
 */
export function isGone(error) {
  return error instanceof ApiError && (error.status === 404 || error.code === "shared_link_ended");
}

/**
 * Repeat a request with growing pauses while the service is away.
 * @template T
 * @param {() => Promise<T>} act
 * @param {AbortSignal} signal
 * @param {(isConnected: boolean) => void} onConnection
 * @returns {Promise<T>} Rejected if the service refuses, or `signal` aborts.
 */
export async function patiently(act, signal, onConnection) {
  for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
    try {
      const result = await act();
      onConnection(true);
      return result;
    } catch (error) {
      if (signal.aborted || !mayPassLater(error)) throw error;
      onConnection(false);
      const wanted = error instanceof ApiError ? error.retryAfter : null;
      await sleep(wanted ? wanted * 1000 : pause, signal);
      if (signal.aborted) throw error;
    }
  }
}
