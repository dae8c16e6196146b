/**
 * Saves the corrections of a session.
 *
 * Each save is a revision, and the service keeps the newest 20. So corrections are saved after a minute without an
 * edit, when the page is hidden or left, before an export and on request; the draft in the browser keeps them
 * meanwhile. Those made while the job runs are saved when it ends.
 */

import { ApiError } from "../core/api.js";
import { mayPass } from "../core/events.js";
import { t } from "../core/text.js";
import { toast } from "../core/toasts.js";
import { batch, computed, effect, signal } from "../vendor/ui.js";
import { merge, resolved } from "./conflict.js";
import { applyChanges, changesBetween, isSame } from "./edits_changes.js";
import { fetchSegments, putSegments } from "./saving_request.js";
import { createIds } from "./session_ids.js";

/** @typedef {import("./types.js").Segment} Segment */
/** @typedef {import("./session_types.js").SaveState} SaveState */
/** @typedef {import("./session_types.js").Refusal} Refusal */
/** @typedef {import("./session_types.js").Conflict} Conflict */
/** @typedef {import("./saving_request.js").Stored} Stored */
/**
 * @template T
 * @typedef {import("../vendor/ui.js").Signal<T>} Signal
 */

const IDLE_MS = 60_000;
const FIRST_PAUSE_MS = 2000;
const LONGEST_PAUSE_MS = 60_000;
const MOST_ATTEMPTS = 5; // while others save, too

/** @typedef {ReturnType<typeof createSaving>} Saving */

/**
 * @param {string} job
 * @param {import("./session_document.js").Document} document
 * @param {Signal<boolean>} complete Whether the service takes corrections.
 * @param {(error: ApiError) => void} onGone The job is deleted.
 */
export function createSaving(job, document, complete, onGone) {
  const ids = createIds();
  const [revision, isSaving, isOffline] = [signal(0), signal(false), signal(false)];
  /** @type {Signal<Refusal | null>} */
  const refusal = signal(null);
  /** @type {Signal<Conflict | null>} */
  const conflict = signal(null);
  let etag = "";
  /** @type {Set<string>} */
  let known = new Set(); // ids of the service
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
    return isOffline.value ? "offline" : "unsaved";
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
   * The service's segments, with the page's ids.
   * @param {Stored} stored
   */
  function accept(stored) {
    etag = stored.etag;
    revision.value = stored.revision;
    known = new Set(stored.segments.map((segment) => segment.id));
    return ids.received(stored.segments);
  }

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
      clearTimeout(timer);
      for (let attempts = 0; attempts < MOST_ATTEMPTS && dirty.peek(); attempts++) {
        if (!complete.peek() || conflict.peek() || !(await attempt(isLeaving))) break;
      }
      return !dirty.peek();
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
      take(sent, await putSegments(job, sent.map(bodyOf), etag, isLeaving));
      if (dirty.peek()) schedule(IDLE_MS);
      return false;
    } catch (error) {
      return failed(error, sent);
    } finally {
      isSaving.value = false;
    }
  }

  /**
   * @param {readonly Segment[]} sent
   * @param {Stored} stored
   */
  function take(sent, stored) {
    const added = sent.filter((segment) => !known.has(ids.sent(segment.id)));
    const kept = new Set(sent.map((segment) => ids.sent(segment.id)).filter((id) => known.has(id)));
    batch(() => {
      ids.learn(added, stored.segments, kept);
      document.stored(sent, accept(stored));
      isOffline.value = false;
    });
    pause = FIRST_PAUSE_MS;
  }

  /** @param {Segment} segment */
  function bodyOf({ id, start, end, text, speaker }) {
    const sent = ids.sent(id);
    return { ...(known.has(sent) && { id: sent }), start, end, text: text.trim(), speaker };
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
    // Other errors: the connection broke off in the answer.
    if (!(error instanceof ApiError) || mayPass(error)) {
      isOffline.value = true;
      schedule((error instanceof ApiError && error.retryAfter ? error.retryAfter : 0) * 1000 || pause);
      pause = Math.min(pause * 2, LONGEST_PAUSE_MS);
      return false;
    }
    if (error.status === 404) onGone(error);
    const place = /^segments\[(\d+)\]$/.exec(error.param ?? "");
    refusal.value = { id: place ? (sent[Number(place[1])]?.id ?? null) : null, message: error.message };
    return false;
  }

  /**
   * Merge what someone else has stored.
   * @returns {Promise<boolean>} Whether nothing needs a choice.
   */
  async function takeTheirs() {
    const stored = await fetchSegments(job, { etag });
    if (!stored) return true;
    const [base, mine] = [document.base.peek(), document.segments.peek()];
    return mergeWith(accept(stored), base, mine);
  }

  /**
   * @param {readonly Segment[]} theirs
   * @param {readonly Segment[]} base
   * @param {readonly Segment[]} mine
   */
  function mergeWith(theirs, base, mine) {
    const outcome = merge(base, mine, theirs);
    const isMixed =
      changesBetween(base, mine, isSame).length > 0 && changesBetween(mine, theirs, isSame).length > 0;
    // Until there is a choice, the draft and the screen have mine.
    document.merged(theirs, resolved(outcome, new Map()));
    if (outcome.parts.length) conflict.value = { parts: outcome.parts, resolve };
    else if (isMixed) toast(t("saving.merged"));
    return !outcome.parts.length;
  }

  /** A look for news has failed: the next one may not. @param {unknown} error */
  function missed(error) {
    if (error instanceof ApiError && error.status === 404) onGone(error);
  }

  /** @param {ReadonlyMap<string, "mine" | "theirs">} choices */
  function resolve(choices) {
    const theirs = conflict.peek()?.parts.filter((part) => choices.get(part.id) === "theirs") ?? [];
    const changes = theirs.flatMap((part) => changesBetween(part.mine, part.theirs));
    batch(() => {
      conflict.value = null;
      document.edit("theirs", (segments) => applyChanges(segments, changes, "after"), null);
    });
    save();
  }

  return {
    ids,
    revision,
    refusal,
    conflict,
    dirty,
    saveState: /** @type {import("../vendor/ui.js").ReadonlySignal<SaveState>} */ (saveState),
    accept,
    save: () => save(),
    saveLeaving: () => save(true),
    /**
     * Put changes of another base upon what the service has.
     * @param {readonly Segment[]} base
     * @param {readonly Segment[]} mine
     */
    mergeMine: (base, mine) => mergeWith(document.base.peek(), base, mine),
    /** The number of the event that brought the newest text: the ETag ends with it while the job runs. */
    lastEvent: () => /^(?:W\/)?"\d+\.(\d+)"$/.exec(etag)?.[1] ?? "",
    /** Take in what the service has. */
    reload: () =>
      alone(async () => {
        if (complete.peek() && !conflict.peek()) await takeTheirs().catch(missed);
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
