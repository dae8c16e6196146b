/** Corrections of all speakers at once, which the service makes: it renames them, or finds them again. */

import { ApiError, request } from "../core/api.js";
import { changesBetween, isSame } from "./edits_changes.js";
import { storedOf } from "./saving_request.js";

/** @typedef {import("./types.js").Segment} Segment */
/**
 * @typedef {{names: Record<string, string>} | {num_speakers?: number}} SpeakersBody
 *   `names`: other names for speakers; two with one name become one. Else they are found again.
 */

const WAIT_MS = 60_000; // it takes a second, or a few where hours were spoken
const MOST_ATTEMPTS = 5; // one after the other, while others save, too

/**
 * @param {string} job
 * @param {import("./session_document.js").Document} document
 * @param {import("./saving_version.js").Version} version
 * @param {import("./saving_merge.js").Merging} merging
 */
export function createSpeakers(job, document, version, merging) {
  /** What the newest such correction changed. @type {{revision: number, segments: readonly Segment[]} | null} */
  let before = null;

  /**
   * Everything is saved before.
   * @param {SpeakersBody} body
   * @returns {Promise<void>} Rejected if the service refuses, or cannot be reached.
   */
  async function correct(body) {
    for (let attempt = 1; ; attempt++) {
      const last = { revision: version.revision.peek(), segments: document.base.peek() };
      try {
        const stored = await post(body);
        merging.takeAnswer(stored);
        before = last;
        return;
      } catch (error) {
        const isOld = error instanceof ApiError && error.status === 412;
        if (!isOld || attempt === MOST_ATTEMPTS || !(await merging.takeTheirs())) throw error;
      }
    }
  }

  /** @param {SpeakersBody} body */
  async function post(body) {
    const response = await request(`/v1/jobs/${job}/speakers`, {
      method: "POST",
      headers: { "If-Match": version.etag() },
      json: body,
      signal: AbortSignal.timeout(WAIT_MS),
    });
    return storedOf(response);
  }

  /**
   * What a save sends. Where a correction of all speakers is undone, the revision before it comes back as it was:
   * as segments, all of its speakers would count as chosen by someone, and none would be found again.
   * @param {readonly Segment[]} segments
   */
  function bodyOf(segments) {
    const isUndone = before && !changesBetween(before.segments, segments, isSame).length;
    return isUndone ? { revision: before?.revision } : { segments: segments.map(version.bodyOf) };
  }

  /** The service has that revision no longer. */
  function forget() {
    before = null;
  }

  return { correct, bodyOf, forget };
}
