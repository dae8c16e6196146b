/** Event streams over `fetch`: the browser's own EventSource cannot send a key. */

import { ApiError, request } from "./api.js";
import { eventParser } from "./event_parser.js";
import { noteAnswer } from "./health.js";

const FIRST_PAUSE_MS = 1000;
const LONGEST_PAUSE_MS = 30_000;
const SILENCE_MS = 45_000; // of a dead connection: the service sends something every 10 s
const WATCH_MS = 5000;

/**
 * Follow a stream until `onEvent` returns true, or `signal` aborts. Connects again after the connection is lost.
 * @param {string} path
 * @param {object} handlers
 * @param {(event: import("./event_parser.js").ServerEvent) => boolean | void} handlers.onEvent
 *   Returns true after the last event.
 * @param {(isConnected: boolean) => void} [handlers.onConnection]
 * @param {AbortSignal} handlers.signal
 * @param {string} [handlers.lastId] Only events after this one come. Default: all.
 * @returns {Promise<void>} Rejected with ApiError if the service refuses: the job may be deleted.
 */
export async function follow(path, { onEvent, onConnection = () => {}, signal, lastId = "" }) {
  let pause = FIRST_PAUSE_MS;
  while (!signal.aborted) {
    try {
      const headers = { Accept: "text/event-stream", ...(lastId && { "Last-Event-ID": lastId }) };
      const response = await request(path, { headers, signal, cache: "no-store" });
      onConnection(true);
      if (response.status === 204) return; // all has been sent
      pause = FIRST_PAUSE_MS;
      let isLast = false;
      const parse = eventParser((event) => {
        lastId = event.id;
        isLast = onEvent(event) === true || isLast;
      }, lastId);
      await read(response, parse, () => isLast);
      if (isLast) return;
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ApiError && !mayPass(error)) throw error;
      if (error instanceof ApiError && error.retryAfter) pause = error.retryAfter * 1000;
    }
    onConnection(false);
    // All pages would connect at once after a restart of the service.
    await sleep(pause * (0.75 + Math.random() / 2), signal);
    pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
  }
}

/**
 * @param {Response} response
 * @param {(part: string) => void} parse
 * @param {() => boolean} isDone
 */
async function read(response, parse, isDone) {
  const reader = /** @type {ReadableStream<Uint8Array>} */ (response.body).getReader();
  const decoder = new TextDecoder();
  let readAt = Date.now();
  // By the clock: timers stand still while the machine sleeps.
  const watch = setInterval(() => {
    if (Date.now() - readAt > SILENCE_MS) reader.cancel().catch(() => {});
  }, WATCH_MS);
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      readAt = Date.now();
      noteAnswer();
      parse(decoder.decode(value, { stream: true }));
      if (isDone()) return void reader.cancel();
    }
  } finally {
    clearInterval(watch);
  }
}

/** Whether the same request may succeed later. @param {ApiError} error */
export function mayPass(error) {
  return error.status === 0 || error.status === 429 || error.status >= 500;
}

/**
 * @param {number} ms
 * @param {AbortSignal} signal
 * @returns {Promise<void>} Resolved early if `signal` aborts.
 */
export function sleep(ms, signal) {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end);
  });
}
