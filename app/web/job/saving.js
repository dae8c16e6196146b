/**
 * Saves the corrections of a session.
 *
 * Each save is a revision. Corrections are saved some seconds after the last edit, when the page is hidden or left,
 * before an export and on request; the draft in the browser keeps them meanwhile. Those made while the job runs are
 * saved when it ends.
 */

import { ApiError } from "../core/api.js";
import { t } from "../core/text.js";
import { batch, computed, effect, signal } from "../vendor/ui.js";
import { createMerging, createSpeakers } from "./saving_merge.js";
import { isGone, mayPassLater, putSegments } from "./saving_request.js";
import { createVersion } from "./saving_version.js";

/** @typedef {import("./types.js").Segment} Segment */
/** @typedef {import("./types.js").SaveState} SaveState */
/** @typedef {import("./types.js").Refusal} Refusal */
/**
 * @template T
 * @typedef {import("../vendor/ui.js").Signal<T>} Signal
 */

const IDLE_MS = 4000;
const FIRST_PAUSE_MS = 2000;
const LONGEST_PAUSE_MS = 60_000;
const MOST_ATTEMPTS = 5; // one after the other, while others save, too

/** @typedef {ReturnType<typeof createSaving>} Saving */

/**
 * @param {string} job
 * @param {import("./session_document.js").Document} document
 * @param {Signal<boolean>} complete Whether the service takes corrections.
 * @param {(error: ApiError) => void} onGone The job is deleted.
 */
export function createSaving(job, document, complete, onGone) {
  const version = createVersion(document);
  const merging = createMerging(job, document, version, () => save());
  const { conflict, takeTheirs, mergeMine } = merging;
  const speakers = createSpeakers(job, document, version, merging);
  const isSaving = signal(false);
  const refusal = signal(/** @type {Refusal | null} */ (null));
  const delay = signal(/** @type {string | null} */ (null));
  let pause = FIRST_PAUSE_MS;
  let isClosed = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  /** @type {Promise<unknown>} */
  let last = Promise.resolve();

  const dirty = computed(() => document.changes.value.length > 0);
  const saveState = computed(() => {
    if (conflict.value) return "conflict";
    if (refusal.value) return "refused";
    if (isSaving.value) return "saving";
    if (!dirty.value) return "saved";
    return delay.value === null ? "unsaved" : "offline";
  });

  /** @param {number} ms */
  function schedule(ms) {
    clearTimeout(timer);
    timer = isClosed ? undefined : setTimeout(() => save(), ms);
  }

  const stopWatching = effect(() => {
    void document.edits.value;
    refusal.value = null;
    if (dirty.value && complete.value) schedule(IDLE_MS);
  });

  /**
   * One request at a time.
   * @template T
   * @param {() => Promise<T>} act
   * @returns {Promise<T>}
   */
  function alone(act) {
    const result = last.then(act);
    last = result.catch(() => {});
    return result;
  }

  /**
   * @param {boolean} [isLeaving] The page may be gone before the answer.
   * @returns {Promise<boolean>} Whether the service has everything.
   */
  function save(isLeaving = false) {
    return alone(async () => {
      await saveNow(isLeaving);
      return !dirty.peek();
    });
  }

  /** @param {boolean} isLeaving */
  async function saveNow(isLeaving) {
    clearTimeout(timer);
    let attempts = 0;
    while (dirty.peek() && complete.peek() && !conflict.peek()) {
      if (!(await attempt(isLeaving))) break;
      if (++attempts < MOST_ATTEMPTS) continue;
      retryLater();
      break;
    }
  }

  /** @param {import("./saving_merge.js").SpeakersBody} body */
  function correctSpeakers(body) {
    return alone(async () => {
      await saveNow(false);
      // What was typed meanwhile may still be unsaved.
      if (["conflict", "refused", "offline"].includes(saveState.peek())) throw new Error(t("saving.unsaved"));
      await speakers.correct(body);
    });
  }

  /**
   * @param {boolean} isLeaving
   * @returns {Promise<boolean>} Whether another attempt makes sense at once.
   */
  async function attempt(isLeaving) {
    const sent = document.segments.peek().filter((segment) => segment.text.trim());
    isSaving.value = true;
    try {
      const stored = await putSegments(job, speakers.bodyOf(sent), version.etag(), isLeaving);
      batch(() => {
        version.take(sent, stored);
        delay.value = null;
      });
      pause = FIRST_PAUSE_MS;
      if (dirty.peek()) schedule(IDLE_MS);
      return false;
    } catch (error) {
      return await failed(error, sent);
    } finally {
      isSaving.value = false;
    }
  }

  /**
   * @param {unknown} error
   * @param {readonly Segment[]} sent
   * @returns {Promise<boolean>} Whether another attempt makes sense at once.
   */
  async function failed(error, sent) {
    if (error instanceof ApiError && error.status === 412) {
      return takeTheirs().catch((other) => failed(other, sent));
    }
    if (mayPassLater(error)) {
      const answer = error instanceof ApiError && error.status ? error : null;
      version.missAnswer(sent);
      delay.value = answer?.message ?? "";
      retryLater(answer?.retryAfter);
      return false;
    }
    const refused = /** @type {ApiError} */ (error);
    if (refused.code === "revision_not_found") {
      speakers.forget();
      return true;
    }
    if (isGone(refused)) onGone(refused);
    const place = /^segments\[(\d+)\]$/.exec(refused.param ?? "");
    refusal.value = { id: place ? (sent[Number(place[1])]?.id ?? null) : null, message: refused.message };
    return false;
  }

  /** @param {number | null} [wanted] seconds */
  function retryLater(wanted) {
    schedule(wanted ? wanted * 1000 : pause);
    pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
  }

  /** A look for news has failed: the next one may not. @param {unknown} error */
  function missed(error) {
    if (isGone(error)) onGone(error);
  }

  return {
    version,
    refusal,
    delay,
    conflict,
    dirty,
    saveState: /** @type {import("../vendor/ui.js").ReadonlySignal<SaveState>} */ (saveState),
    mergeMine,
    alone,
    save: () => save(),
    correctSpeakers,
    saveLeaving: () => save(true),
    /** Take in what the service has. @param {"theirs"} [name] Of the step; by default, others have stored it. */
    reload: (name) =>
      alone(async () => {
        if (complete.peek() && !conflict.peek()) await takeTheirs(name).catch(missed);
      }),
    /** Save what is left, and end. */
    close() {
      isClosed = true;
      const left = save(true);
      clearTimeout(timer);
      stopWatching();
      return left;
    },
  };
}
