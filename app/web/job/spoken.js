/** What is said in a live recording, and is not in its transcript yet. */

import { signal } from "../vendor/ui.js";
import { tokensOf } from "./words.js";

/** @typedef {import("./types.js").Segment} Segment */
/** @typedef {{start: number, end: number | null, text: string}} Turn Seconds; `end` of its last word: null while the text may grow. */

/**
 * Of the job that this page records, or has recorded last: the latest turns, by the ids of their items.
 * @type {import("../vendor/ui.js").Signal<{job: string, turns: ReadonlyMap<string, Turn>}>}
 */
export const live = signal({ job: "", turns: new Map() });

const KEPT = 20; // turns: their text is in the transcript within seconds
const ROUNDING_S = 0.05;

/**
 * @param {ReadonlyMap<string, Turn>} before
 * @param {import("../list/live_stream.js").LiveEvent} event
 * @returns {ReadonlyMap<string, Turn>}
 */
export function heard(before, { type, item_id: id, startsAt = 0, ...event }) {
  const kind = type.replace(/.*\./, "");
  const { start, text } = before.get(id) ?? { start: 0, text: "" };
  const end = kind === "completed" ? startsAt + (event.words.at(-1)?.end ?? start) : null;
  /** @type {Record<string, () => Turn>} */
  const next = {
    speech_started: () => ({ start: startsAt + event.audio_start_ms / 1000, end, text: "" }),
    delta: () => ({ start, end, text: text + event.delta }),
    completed: () => ({ start, end, text: event.transcript }),
    failed: () => ({ start, end, text: "" }),
  };
  return kind in next ? new Map([...before, /** @type {const} */ ([id, next[kind]()])].slice(-KEPT)) : before;
}

/**
 * The turns as segments behind those of the transcript: what these have of a turn is left out.
 * @param {ReadonlyMap<string, Turn>} known
 * @param {readonly Segment[]} segments
 * @returns {readonly Segment[]}
 */
export function unwritten(known, segments) {
  const written = segments.at(-1)?.end ?? 0;
  return [...known].flatMap(([id, { start, end, text }]) => {
    if (end !== null && written >= end - ROUNDING_S) return [];
    const ofTurn = segments.slice(segments.findLastIndex((segment) => segment.start < start) + 1);
    const count = ofTurn.reduce((sum, segment) => sum + tokensOf(segment.text).length, 0);
    const rest = text.slice(tokensOf(text)[count]?.from ?? text.length);
    const from = Math.max(start, written);
    const spoken = end === null ? /** @type {const} */ ("open") : /** @type {const} */ ("final");
    return rest
      ? [{ id: `spoken-${id}`, start: from, end: end ?? from, text: rest, speaker: null, words: [], spoken }]
      : [];
  });
}
