/** Transcribing the recording, or a part of it, again: what is asked for, its progress and its end. */

import { request, requestJson } from "../core/api.js";
import { follow } from "../core/events.js";
import { sharedLink } from "../core/shared_link.js";
import { errorText, t } from "../core/text.js";
import { toast } from "../core/toasts.js";
import { whoOf } from "../list/options.js";
import { computed, effect, signal } from "../vendor/ui.js";
import { isActive } from "./types.js";

/** @typedef {import("./types.js").Job} Job */
/** @typedef {{start?: number, end?: number}} Part Seconds. Empty: all of the recording. */
/** @typedef {Part & Record<string, unknown>} Body Of the request. */
/** @typedef {{message: string, body: Body | null}} Failure `body`: what to ask for again, on top of the corrections. */
/** @typedef {ReturnType<typeof createAgain>} Again */

/** @param {import("./types.js").Session} session */
export function createAgain(session) {
  const ending = new AbortController();
  /** What the dialog asks about. @type {import("../vendor/ui.js").Signal<Part | null>} */
  const asked = signal(null);
  /** What runs. @type {import("../vendor/ui.js").Signal<Job | null>} */
  const child = signal(null);
  /** @type {import("../vendor/ui.js").Signal<Failure | null>} */
  const failure = signal(null);
  const offered = computed(
    () =>
      !sharedLink && session.complete.value && !child.value && Boolean(session.job.value?.audio_expires_at),
  );

  /** Rejected where the service refuses it. @param {Body} body */
  async function start(body) {
    failure.value = null;
    if (!(await session.save())) return; // the state of the corrections says why
    child.value = await requestJson(`/v1/jobs/${session.id}/again`, { method: "POST", json: body });
    asked.value = null;
    watch(body);
  }

  /** @param {Body} [body] Absent: an earlier page has sent it. */
  async function watch(body) {
    const { id } = /** @type {Job} */ (child.peek());
    try {
      await follow(`/v1/jobs/${id}/events`, {
        signal: ending.signal,
        onEvent: ({ type, data }) => {
          if (type === "job.segments") return false;
          const followed = JSON.parse(data);
          child.value = followed;
          return !isActive(followed);
        },
      });
    } catch {
      // It is deleted.
    }
    if (ending.signal.aborted) return;
    const ended = child.peek();
    child.value = null;
    if (ended?.status === "succeeded") {
      await session.reload();
      toast(t("again.done"));
    } else if (ended?.error) {
      const isConflict = ended.error.code === "revision_changed";
      const message = isConflict ? t("again.conflict") : errorText(ended.error);
      failure.value = { message, body: isConflict ? (body ?? partOf(ended, session.job.peek())) : null };
    }
  }

  async function resume() {
    const { data } = await requestJson(`/v1/jobs?parent=${session.id}&limit=1`, { signal: ending.signal });
    if (!data.length || !isActive(data[0]) || child.peek()) return;
    child.value = data[0];
    watch();
  }

  const stop = effect(() => {
    if (session.complete.value && !sharedLink) resume().catch(() => {}); // it is shown when the page is loaded again
  });

  return {
    asked,
    child,
    failure,
    offered,
    start,
    /** Rejected where that fails. */
    cancel: () => request(`/v1/jobs/${child.peek()?.id}`, { method: "DELETE" }),
    close() {
      ending.abort();
      stop();
    },
  };
}

/**
 * The part that a job has transcribed again.
 * @param {Job} child
 * @param {Job | null} parent
 * @returns {Part}
 */
function partOf({ options }, parent) {
  const { start, end } = options;
  const isAll = start === parent?.options.start && end === parent?.options.end;
  return isAll ? {} : { start: Number(start ?? 0), ...(end != null && { end: Number(end) }) };
}

/**
 * The time of the selected segments, if no other one is between them.
 * @param {readonly import("./types.js").Segment[]} segments In order.
 * @param {ReadonlySet<string>} ids
 * @returns {Required<Part> | null}
 */
export function partOfSelection(segments, ids) {
  const first = segments.findIndex(({ id }) => ids.has(id));
  const chosen = first < 0 ? [] : segments.slice(first, first + ids.size);
  if (!chosen.length || !chosen.every(({ id }) => ids.has(id))) return null;
  return { start: chosen[0].start, end: Math.max(...chosen.map(({ end }) => end)) };
}

/**
 * What a request says: what differs from before.
 * @param {Job} job
 * @param {Part} part
 * @param {{language: string, model: string, prompt: string, hotwords: string, who: string, count: number, keep: boolean}} chosen
 *   `who`: "voices", "channels" or empty. `count`: of speakers; 0: as the voices say.
 * @returns {Body}
 */
export function bodyOf({ language, languages, model, options }, part, chosen) {
  const who = whoOf(options);
  const isOther = chosen.language !== "" && chosen.language !== language;
  return {
    ...part,
    ...((isOther || (languages && chosen.language)) && { language: chosen.language }),
    ...(chosen.model && chosen.model !== model && { model: chosen.model }),
    ...(chosen.prompt !== (options.prompt ?? "") && { prompt: chosen.prompt || null }),
    ...(chosen.hotwords !== (options.hotwords ?? "") && { hotwords: chosen.hotwords || null }),
    ...(chosen.who !== who && {
      diarize: chosen.who === "voices",
      channels: chosen.who === "channels" ? "separate" : "mix",
    }),
    ...(chosen.who === "voices" && chosen.count && { num_speakers: chosen.count }),
    keep_corrections: chosen.keep && !isOther,
  };
}
