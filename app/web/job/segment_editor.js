/** A segment while it is edited: its text, with its times and its speaker below. */

import { parseClock, preciseClock } from "../core/format.js";
import { Icon } from "../core/icons.js";
import { offerTerm } from "../core/terms.js";
import { t } from "../core/text.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "../vendor/ui.js";
import { caretIn } from "./carets.js";
import { setSpeaker, setText, setTimes } from "./edits.js";
import { MOST_SPEAKER_CHARS } from "./edits_rules.js";
import { editNeighbour, joinWithNext, joinWithPrevious, splitSegment } from "./segment_actions.js";
import { otherLanguage } from "./types.js";
import { caretAfterChange } from "./words.js";

/** @typedef {import("./segment_actions.js").Screen} Screen */
/** @typedef {import("./types.js").Segment} Segment */
/** @typedef {import("./transcript_view.js").Editing} Editing */

/** @param {{screen: Screen, segment: Segment, editing: Editing}} props */
export function SegmentEditor({ screen, segment, editing }) {
  // The fields below the text are in sight, too.
  useLayoutEffect(() => screen.view.list.reveal(segment.id), [editing]);
  return html`
    <${TextField} screen=${screen} segment=${segment} editing=${editing} />
    <div class="segment-fields">
      <${TimeFields} screen=${screen} segment=${segment} isWanted=${editing.field === "start"} />
      <${SpeakerField} screen=${screen} segment=${segment} isWanted=${editing.field === "speaker"} />
      <button class="button quiet" onClick=${() => splitSegment(screen, segment.id, caretOf(segment))}
        title="Ctrl + Enter" aria-label=${t("edit.splitHere")}><${Icon} name="cut" /><span>${t("edit.splitHere")}</span></button>
      <button class="button" tabindex="0" onClick=${screen.view.leave}><${Icon} name="check" />${t("edit.done")}</button>
    </div>
  `;
}

/**
 * The caret in a segment's text. The button that asks has taken the focus, but not the caret.
 * @param {Segment} segment
 */
function caretOf({ id }) {
  const field = document.querySelector(`[data-key="${CSS.escape(id)}"] textarea`);
  return caretIn(/** @type {HTMLElement} */ (field)).start;
}

/** @param {{screen: Screen, segment: Segment, editing: Editing}} props */
function TextField({ screen, segment, editing }) {
  const job = screen.session.job.value;
  const field = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  useLayoutEffect(
    () => showText(/** @type {HTMLTextAreaElement} */ (field.current), segment.text),
    [segment.text],
  );
  useLayoutEffect(() => {
    if (editing.field !== "text" || !field.current) return;
    const { start, end } = editing.selection ?? { start: segment.text.length, end: segment.text.length };
    field.current.focus({ preventScroll: true });
    field.current.setSelectionRange(start, end);
  }, [editing]);
  useEffect(() => () => offerTerm(segment, screen.session.segments.peek()), [segment.id]);
  /** @param {Event} event */
  const write = (event) => {
    const { value } = /** @type {HTMLTextAreaElement} */ (event.target);
    screen.session.edit("text", (segments) => setText(segments, segment.id, value), segment.id);
    // What the correction left out, such as line breaks, does not come back with a change of the segment.
    const kept = screen.session.segments.peek().find(({ id }) => id === segment.id);
    if (kept && field.current) showText(field.current, kept.text);
  };
  return html`<textarea class="segment-text" data-anchor ref=${field} dir="auto" rows="1" spellcheck=${true}
    lang=${otherLanguage(job, segment) ?? job?.language ?? undefined} aria-label=${t("edit.text")} onInput=${write}
    onKeyDown=${(/** @type {KeyboardEvent} */ event) => press(event, screen, segment) || cross(event, screen, segment)} />`;
}

/**
 * Up and down go on in the neighbouring segment, where there is no line of this one.
 * @param {KeyboardEvent} event
 * @param {Screen} screen
 * @param {Segment} segment
 */
function cross({ key, altKey, ctrlKey, metaKey, shiftKey, target, isComposing }, screen, { id }) {
  const direction = { ArrowUp: /** @type {const} */ (-1), ArrowDown: /** @type {const} */ (1) }[key];
  if (!direction || altKey || ctrlKey || metaKey || shiftKey || isComposing) return;
  const before = caretIn(/** @type {HTMLElement} */ (target));
  setTimeout(() => {
    const { start, end } = caretIn(/** @type {HTMLElement} */ (target)); // as the browser has moved it
    const isSame = start === before.start && end === before.end;
    if (isSame && document.activeElement === target) editNeighbour(screen, id, direction);
  });
}

/**
 * @param {HTMLTextAreaElement} field
 * @param {string} text
 */
function showText(field, text) {
  if (field.value !== text) {
    const isFirst = field.value === "";
    const caret = isFirst ? text.length : caretAfterChange(field.value, text);
    field.value = text;
    if (document.activeElement === field) field.setSelectionRange(caret, caret);
  }
  if (CSS.supports("field-sizing", "content")) return;
  field.style.height = "auto";
  field.style.height = `${field.scrollHeight}px`;
}

/**
 * The keys of the text field.
 * @param {KeyboardEvent} event
 * @param {Screen} screen
 * @param {Segment} segment
 * @returns {boolean} Whether the key is one of them.
 */
export function press(event, screen, { id, text }) {
  if (event.isComposing) return false; // Enter chooses a character
  const { start: selectionStart, end: selectionEnd } = caretIn(/** @type {HTMLElement} */ (event.target));
  const isCaret = selectionStart === selectionEnd;
  const isPlain = !event.altKey && !event.ctrlKey && !event.metaKey && !event.shiftKey;
  /** @type {(() => void) | undefined} */
  let action;
  if (event.key === "Enter")
    action =
      event.ctrlKey || event.metaKey ? () => splitSegment(screen, id, selectionStart) : screen.view.leave;
  else if (event.key === "Escape") action = screen.view.leave;
  else if (event.altKey && event.key === "ArrowDown") action = () => editNeighbour(screen, id, 1);
  else if (event.altKey && event.key === "ArrowUp") action = () => editNeighbour(screen, id, -1);
  else if (event.key === "Backspace" && isPlain && isCaret && selectionEnd === 0)
    action = () => joinWithPrevious(screen, id);
  else if (event.key === "Delete" && isPlain && isCaret && selectionEnd === text.length)
    action = () => joinWithNext(screen, id);
  if (!action) return false;
  event.preventDefault();
  action();
  return true;
}

const STEP_S = 0.1;
const LONG_STEP_S = 1;

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
    if (!isWanted) return;
    field.current?.focus({ preventScroll: true });
    field.current?.select();
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

/**
 * Asked for by a command, it is empty, and takes a name by Enter or a way to its neighbours: who has typed blindly, and
 * clicks elsewhere, has changed nothing.
 * @param {{screen: Screen, segment: Segment, isWanted: boolean}} props
 */
export function SpeakerField({ screen, segment, isWanted }) {
  const { session, view } = screen;
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  useLayoutEffect(() => {
    if (!isWanted) return;
    field.current?.focus({ preventScroll: true });
    field.current?.scrollIntoView({ block: "nearest" });
  }, [isWanted, view.editing.value]);
  /** @param {Event} event */
  const change = (event) => {
    const { value } = /** @type {HTMLInputElement} */ (event.target);
    if (isWanted && !value.trim()) return;
    session.edit("speaker", (segments) => setSpeaker(segments, segment.id, value), segment.id);
  };
  /** @param {FocusEvent} event */
  const leave = (event) => {
    const next = /** @type {Element | null} */ (event.relatedTarget);
    if (!isWanted || next?.closest(".segment-fields")) change(event);
    else if (field.current) field.current.value = "";
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
      value=${isWanted ? "" : (segment.speaker ?? "")} placeholder=${segment.speaker ?? ""}
      onBlur=${leave} onKeyDown=${press} />
  </label>`;
}
