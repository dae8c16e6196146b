/**
 * Takes in what others have stored, and what the service makes of all speakers, and asks where both sides
 * changed the same.
 */

import { ApiError, request } from "../core/api.js";
import { t } from "../core/text.js";
import { toast } from "../core/toasts.js";
import { batch, signal } from "../vendor/ui.js";
import { merge, resolved } from "./conflict.js";
import { applyChanges, changesBetween, isSame, separated } from "./edits_rules.js";
import { fetchSegments, storedOf } from "./saving_request.js";

/** @typedef {import("./types.js").Segment} Segment */
/** @typedef {import("./types.js").Conflict} Conflict */
/** @typedef {ReturnType<typeof createMerging>} Merging */

/**
 * @param {string} job
 * @param {import("./session_document.js").Document} document
 * @param {import("./saving_version.js").Version} version
 * @param {() => void} onResolved The user has chosen.
 */
export function createMerging(job, document, version, onResolved) {
  const conflict = signal(/** @type {Conflict | null} */ (null));

  /**
   * Take in what the service has.
   * @param {"theirs" | null} [name] Of the step; null: others have stored it.
   * @returns {Promise<boolean>} Whether nothing needs a choice.
   */
  async function takeTheirs(name = null) {
    const stored = await fetchSegments(job, { etag: version.etag() });
    if (!stored || version.isOwn(stored)) return true;
    const [base, mine] = [document.base.peek(), document.segments.peek()];
    return mergeWith(version.accept(stored), base, mine, name);
  }

  /**
   * Take in what the service has made of all speakers, below what was corrected meanwhile.
   * @param {import("./saving_request.js").Stored} stored
   */
  function takeAnswer(stored) {
    const [base, mine] = [document.base.peek(), document.segments.peek()];
    return mergeWith(version.accept(stored), base, mine, "speaker");
  }

  /**
   * @param {readonly Segment[]} theirs
   * @param {readonly Segment[]} base
   * @param {readonly Segment[]} mine
   * @param {"theirs" | "speaker" | null} name Of the step; null: others have stored it.
   */
  function mergeWith(theirs, base, mine, name) {
    const outcome = merge(base, mine, theirs);
    batch(() => {
      // Until there is a choice, the draft and the screen have mine. Speakers who became one may have talked at once.
      const isChanged = document.merged(theirs, separated(resolved(outcome, new Map())), name);
      if (isChanged && !name) toast(t("saving.merged"));
      if (outcome.parts.length) conflict.value = { parts: outcome.parts, resolve };
    });
    return !outcome.parts.length;
  }

  /** @param {ReadonlyMap<string, "mine" | "theirs">} choices */
  function resolve(choices) {
    const theirs = conflict.peek()?.parts.filter((part) => choices.get(part.id) === "theirs") ?? [];
    const changes = theirs.flatMap((part) => changesBetween(part.mine, part.theirs));
    batch(() => {
      conflict.value = null;
      document.edit("theirs", (segments) => applyChanges(segments, changes, "after"), null);
    });
    onResolved();
  }

  return {
    conflict,
    takeTheirs,
    takeAnswer,
    /**
     * Put changes of another base upon what the service has.
     * @param {readonly Segment[]} base
     * @param {readonly Segment[]} mine
     */
    mergeMine: (base, mine) => mergeWith(document.base.peek(), base, mine, "theirs"),
  };
}

/**
 * @typedef {{names: Record<string, string>} | {num_speakers?: number}} SpeakersBody
 *   `names`: other names for speakers; two with one name become one. Else they are found again.
 */

const WAIT_MS = 600_000; // it takes a second, or minutes where the voices of hours were never compared
const MOST_ATTEMPTS = 5; // one after the other, while others save, too

/**
 * @param {string} job
 * @param {import("./session_document.js").Document} document
 * @param {import("./saving_version.js").Version} version
 * @param {Merging} merging
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
