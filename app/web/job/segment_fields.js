/** Fields for the times and the speaker of a segment. */

import { parseClock, preciseClock } from "../core/format.js";
import { t } from "../core/text.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "../vendor/ui.js";
import { setSpeaker, setTimes } from "./edits.js";
import { MOST_SPEAKER_CHARS } from "./edits_segment.js";

/** @typedef {import("./segment_actions.js").Screen} Screen */
/** @typedef {import("./types.js").Segment} Segment */

const STEP_S = 0.1;
const LONG_STEP_S = 1;

/** Give a field the keyboard. @param {HTMLInputElement | null} field */
function take(field) {
  field?.focus({ preventScroll: true });
  field?.select();
}

/** @param {{screen: Screen, segment: Segment, isWanted: boolean}} props */
export function TimeFields({ screen, segment, isWanted }) {
  const { session, playback } = screen;
  const limit = () => playback.duration.peek() || session.job.peek()?.duration || undefined;
  /** @param {readonly Segment[]} segments */
  const own = (segments) => segments.find(({ id }) => id === segment.id) ?? segment;
  /** @param {number} start @param {number} end */
  const change = (start, end) => {
    session.edit("times", (segments) => setTimes(segments, segment.id, start, end, limit()), segment.id);
    return own(session.segments.peek());
  };
  useEffect(() => {
    playback.showRegion(segment, {
      onChange: ({ start, end }, isDone) =>
        isDone ? change(start, end) : own(setTimes(session.segments.peek(), segment.id, start, end, limit())),
    });
  }, [segment.id, segment.start, segment.end]);
  useEffect(() => () => playback.showRegion(null), [segment.id]);
  return html`
    <${TimeField} label=${t("edit.start")} seconds=${segment.start} isWanted=${isWanted} leave=${screen.view.leave}
      change=${(/** @type {number} */ start) => change(start, Math.max(segment.end, start)).start} />
    <${TimeField} label=${t("edit.end")} seconds=${segment.end} isWanted=${false} leave=${screen.view.leave}
      change=${(/** @type {number} */ end) => change(Math.min(segment.start, end), end).end} />
  `;
}

/**
 * @param {{label: string, seconds: number, isWanted: boolean, leave: () => void, change: (seconds: number) => number}} props
 *   `change` returns the time that was possible between the neighbours.
 */
function TimeField({ label, seconds, isWanted, leave, change }) {
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  const [isWrong, setWrong] = useState(false);
  useLayoutEffect(() => {
    if (field.current) field.current.value = preciseClock(seconds);
    setWrong(false);
  }, [seconds]);
  useLayoutEffect(() => {
    if (isWanted) take(field.current);
  }, [isWanted]);

  /** @param {number} wanted */
  const set = (wanted) => {
    const possible = change(wanted);
    if (field.current) field.current.value = preciseClock(possible);
  };
  const commit = () => {
    const { value } = /** @type {HTMLInputElement} */ (field.current);
    const wanted = parseClock(value);
    setWrong(wanted === null);
    // The field shows hundredths, and the segment has milliseconds.
    if (wanted !== null && value.trim() !== preciseClock(seconds)) set(wanted);
    return wanted !== null;
  };
  /** @param {KeyboardEvent} event */
  const press = (event) => {
    const direction = { ArrowUp: 1, ArrowDown: -1 }[event.key] ?? 0;
    if (event.key === "Enter") {
      event.preventDefault();
      if (commit()) leave();
    } else if (event.key === "Escape") {
      event.preventDefault();
      leave();
    } else if (direction && !event.altKey) {
      event.preventDefault();
      const from = parseClock(/** @type {HTMLInputElement} */ (event.target).value) ?? seconds;
      set(Math.max(0, from + direction * (event.shiftKey ? LONG_STEP_S : STEP_S)));
    }
  };
  return html`<label class="segment-field"><span>${label}</span>
    <input class="input numbers" ref=${field} inputmode="decimal" autocomplete="off" spellcheck=${false}
      aria-invalid=${isWrong} title=${isWrong ? t("edit.noTime") : t("edit.timeKeys")} onChange=${commit} onKeyDown=${press} />
  </label>
  ${isWrong && html`<small class="segment-wrong" role="alert">${t("edit.noTime")}</small>`}`;
}

/** @param {{screen: Screen, segment: Segment, isWanted: boolean}} props */
export function SpeakerField({ screen, segment, isWanted }) {
  const { session, view } = screen;
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  useLayoutEffect(() => {
    if (isWanted) take(field.current);
  }, [isWanted]);
  /** @param {Event} event */
  const change = (event) => {
    const { value } = /** @type {HTMLInputElement} */ (event.target);
    session.edit("speaker", (segments) => setSpeaker(segments, segment.id, value), segment.id);
  };
  /** @param {KeyboardEvent} event */
  const press = (event) => {
    if (event.key !== "Enter" && event.key !== "Escape") return;
    event.preventDefault();
    if (event.key === "Enter") change(event);
    view.leave();
  };
  return html`<label class="segment-field"><span>${t("edit.speaker")}</span>
    <input class="input" ref=${field} dir="auto" list="speaker-names" autocomplete="off" maxlength=${MOST_SPEAKER_CHARS}
      value=${segment.speaker ?? ""} onChange=${change} onKeyDown=${press} />
  </label>`;
}
