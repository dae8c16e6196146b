/** One job on the screen: its state, and its transcript as it grows. */

import { signal } from "../vendor/ui.js";
import { requestJson } from "../core/api.js";
import { follow } from "../core/events.js";
import { isActive } from "./types.js";

/** @typedef {import("./types.js").Job} Job */
/** @typedef {import("./types.js").Segment} Segment */
/** @typedef {import("./session_types.js").Session} Session The whole of it: see there. */

/**
 * @param {string} id
 * @returns {Session}
 */
export function openSession(id) {
  const ending = new AbortController();
  /** @type {Session} */
  const session = {
    id,
    job: signal(null),
    segments: signal([]),
    complete: signal(false),
    error: signal(null),
    close: () => ending.abort(),
  };
  load(session, ending.signal).catch((error) => {
    if (!ending.signal.aborted) session.error.value = error;
  });
  return session;
}

/**
 * @param {Session} session
 * @param {AbortSignal} signal
 */
async function load(session, signal) {
  session.job.value = await requestJson(`/v1/jobs/${session.id}`, { signal });
  if (session.job.value && isActive(session.job.value)) await followJob(session, signal);
  await loadSegments(session, signal);
}

/**
 * @param {Session} session
 * @param {AbortSignal} signal
 */
async function loadSegments(session, signal) {
  const document = await requestJson(`/v1/jobs/${session.id}/segments`, { signal });
  session.segments.value = document.segments;
  session.complete.value = document.complete;
}

/**
 * @param {Session} session
 * @param {AbortSignal} signal
 */
async function followJob(session, signal) {
  await follow(`/v1/jobs/${session.id}/events`, {
    signal,
    onEvent: ({ type, data }) => {
      const content = JSON.parse(data);
      if (type === "job.segments") {
        const kept = session.segments.value.filter((segment) => segment.start < content.from);
        session.segments.value = [...kept, ...content.segments];
        return false;
      }
      // TODO-owner: see the format of the other events, and take state and progress from them.
      return false;
    },
  });
}
