/** A subtitle while it is edited: its text, with its times and its speaker below; and the fields that the text shares. */

import { IconButton } from "../core/controls.js";
import { parseClock, preciseClock } from "../core/format.js";
import { Icon } from "../core/icons.js";
import { offerTerm } from "../core/terms.js";
import { t } from "../core/text.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "../vendor/ui.js";
import { caretIn } from "./carets.js";
import { allowedSpan, retime } from "./cue_actions.js";
import { fieldOf, setCueText } from "./cue_rows.js";
import { setSpeakers } from "./edits.js";
import { MOST_SPEAKER_CHARS } from "./edits_rules.js";
import { editNeighbour, joinWithNext, joinWithPrevious, splitAt } from "./segment_actions.js";
import { otherLanguage } from "./types.js";
import { caretAfterChange } from "./words.js";

/** @typedef {import("./segment_actions.js").Screen} Screen */
/** @typedef {import("./types.js").Segment} Segment */
/** @typedef {import("./transcript_view.js").Editing} Editing */
/** @typedef {import("./cue_rows.js").CueRow} CueRow */

/** @param {{screen: Screen, row: CueRow, editing: Editing}} props */
export function CueEditor({ screen, row, editing }) {
  const field = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  // The fields below the text are in sight, too.
  useLayoutEffect(() => screen.view.list.reveal(row.key), [editing, row.key]);
  const split = () => {
    const { id, at } = fieldOf(row).placeOf(field.current?.selectionStart ?? 0); // the button has the focus, but not the caret
    splitAt(screen, id, at);
  };
  return html`
    <${TextField} screen=${screen} row=${row} editing=${editing} field=${field} />
    <div class="toolbar segment-fields">
      <${TimeFields} screen=${screen} place=${row} isWanted=${editing.field === "start"} />
      <${SpeakerField} screen=${screen} segment=${row.parts[0].segment} isWanted=${editing.field === "speaker"} />
      <${IconButton} icon="cut" label=${t("edit.splitHere")} title=${`${t("edit.splitHere")} (${t("edit.control")} + Enter)`} onClick=${split} />
      <button class="button" tabindex="0" onClick=${screen.view.leave}><${Icon} name="check" />${t("edit.done")}</button>
    </div>
  `;
}

/** @param {{screen: Screen, row: CueRow, editing: Editing, field: import("../vendor/ui.js").RefObject<HTMLTextAreaElement>}} props */
function TextField({ screen, row, editing, field }) {
  const job = screen.session.job.value;
  const [{ segment }] = row.parts;
  const { text, offsetOf, placeOf } = fieldOf(row);
  const shown = useRef(row);
  useLayoutEffect(() => {
    const element = /** @type {HTMLTextAreaElement} */ (field.current);
    const caret = fieldOf(shown.current).placeOf(element.selectionStart);
    const isSame = row.parts.some(({ segment: now }) =>
      shown.current.parts.some((part) => part.segment === now),
    );
    showText(element, text, isSame ? offsetOf(caret.id, caret.at) : undefined);
    shown.current = row;
  }, [row]);
  useLayoutEffect(() => {
    const { id, at, selection, isWritten } = editing;
    if (editing.field !== "text" || !field.current) return;
    const caret = isWritten ? offsetOf(id, at + 1) : text.length; // what was written may be in another subtitle now
    const isSelected = selection && !isWritten;
    field.current.focus({ preventScroll: true });
    field.current.setSelectionRange(
      isSelected ? offsetOf(id, selection.start) : caret,
      isSelected ? offsetOf(id, selection.end) : caret,
    );
  }, [editing, row.key]);
  useEffect(() => () => offerTerm(segment, screen.session.segments.peek()), [segment.id]);
  /** @param {Event} event */
  const write = (event) => {
    const { value } = /** @type {HTMLTextAreaElement} */ (event.target);
    const caret = caretIn(/** @type {HTMLTextAreaElement} */ (event.target)).start;
    screen.session.edit("text", (segments) => setCueText(segments, row, value), segment.id);
    const now = screen.view.cues.row(row.key);
    if (!now) return;
    // What the correction left out, such as line breaks, does not come back with a change of the segment.
    if (field.current) showText(field.current, fieldOf(now).text);
    // Of the character before the caret: it is of this subtitle, also where the next one begins.
    Object.assign(editing, fieldOf(now).placeOf(Math.max(0, caret - 1)), { isWritten: true });
  };
  return html`<textarea class="segment-text" data-anchor ref=${field} dir="auto" rows="1" spellcheck=${true}
    lang=${otherLanguage(job, segment) ?? job?.language ?? undefined} aria-label=${t("edit.text")} onInput=${write}
    onKeyDown=${(/** @type {KeyboardEvent} */ event) => press(event, screen, row.key, text.length, placeOf) || cross(event, screen, row.key)} />`;
}

/**
 * Up and down go on in the neighbouring subtitle, where there is no line of this one.
 * @param {KeyboardEvent} event
 * @param {Screen} screen
 * @param {string} own Its key.
 */
function cross({ key, altKey, ctrlKey, metaKey, shiftKey, target, isComposing }, screen, own) {
  const direction = { ArrowUp: /** @type {const} */ (-1), ArrowDown: /** @type {const} */ (1) }[key];
  if (!direction || altKey || ctrlKey || metaKey || shiftKey || isComposing) return;
  const before = caretIn(/** @type {HTMLElement} */ (target));
  setTimeout(() => {
    const { start, end } = caretIn(/** @type {HTMLElement} */ (target)); // as the browser has moved it
    const isSame = start === before.start && end === before.end;
    if (isSame && document.activeElement === target) editNeighbour(screen, own, direction);
  });
}

/**
 * Spaces that are being typed at its ends stay.
 * @param {HTMLTextAreaElement} field
 * @param {string} text
 * @param {number} [place] Of the caret, if it is known.
 */
function showText(field, text, place) {
  const { value, selectionStart, selectionEnd } = field;
  if (value === "" || plain(value) !== plain(text)) {
    const caret = place ?? (value === "" ? text.length : caretAfterChange(value, text));
    field.value = text;
    if (document.activeElement === field) field.setSelectionRange(caret, caret);
  } else if (value !== text && value.length === text.length) {
    field.value = text; // its lines break elsewhere now
    field.setSelectionRange(selectionStart, selectionEnd);
  }
  if (CSS.supports("field-sizing", "content")) return;
  field.style.height = "auto";
  field.style.height = `${field.scrollHeight}px`;
}

/** @param {string} text */
function plain(text) {
  return text.replace(/\s/g, " ").trim();
}

/**
 * The keys of a field with text.
 * @param {KeyboardEvent} event
 * @param {Screen} screen
 * @param {string} own The key of what is edited.
 * @param {number} length Of its text.
 * @param {(offset: number) => {id: string, at: number}} placeOf Whose text an offset in the field is of.
 * @returns {boolean} Whether the key is one of them.
 */
export function press(event, screen, own, length, placeOf) {
  if (event.isComposing) return false; // Enter chooses a character
  const { start, end } = caretIn(/** @type {HTMLElement} */ (event.target));
  const isPlain = !event.altKey && !event.ctrlKey && !event.metaKey && !event.shiftKey;
  const { id, at } = placeOf(start);
  /** @type {(() => void) | undefined} */
  let action;
  if (event.key === "Enter")
    action = event.ctrlKey || event.metaKey ? () => splitAt(screen, id, at) : screen.view.leave;
  else if (event.key === "Escape") action = screen.view.leave;
  else if (event.altKey && event.key === "ArrowDown") action = () => editNeighbour(screen, own, 1);
  else if (event.altKey && event.key === "ArrowUp") action = () => editNeighbour(screen, own, -1);
  else if (event.key === "Backspace" && isPlain && start === end && end === 0)
    action = () => joinWithPrevious(screen, own);
  else if (event.key === "Delete" && isPlain && start === end && end === length)
    action = () => joinWithNext(screen, own);
  if (!action) return false;
  event.preventDefault();
  action();
  return true;
}

const STEP_S = 0.1;
const LONG_STEP_S = 1;

/** @param {{screen: Screen, place: import("./transcript_view.js").Place, isWanted: boolean}} props */
export function TimeFields({ screen, place, isWanted }) {
  const { key, start, end } = place;
  /** @param {"start" | "end"} edge @param {number} seconds */
  const change = (edge, seconds) => {
    const wanted =
      edge === "start"
        ? { start: seconds, end: Math.max(end, seconds) }
        : { start: Math.min(start, seconds), end: seconds };
    return (retime(screen, key, wanted) ?? place)[edge];
  };
  return html`
    <${TimeField} label=${t("edit.start")} seconds=${start} isWanted=${isWanted} leave=${screen.view.leave}
      change=${(/** @type {number} */ seconds) => change("start", seconds)} />
    <${TimeField} label=${t("edit.end")} seconds=${end} isWanted=${false} leave=${screen.view.leave}
      change=${(/** @type {number} */ seconds) => change("end", seconds)} />
  `;
}

/**
 * The edges can be dragged on the waveform.
 * @param {Screen} screen
 * @param {import("./transcript_view.js").Place} place
 * @param {boolean} isShown
 */
export function useRegion(screen, { key, start, end }, isShown) {
  const { region } = screen.playback;
  useEffect(() => {
    /** @type {import("./playback.js").Region["drag"]} */
    const drag = (span, isDone) => {
      const allowed = allowedSpan(screen, key, span);
      return isDone ? retime(screen, key, allowed) : allowed;
    };
    if (isShown) region.value = { key, start, end, drag };
  }, [key, start, end, isShown]);
  useEffect(
    () => () => {
      if (region.peek()?.key === key) region.value = null;
    },
    [key, isShown],
  );
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
  return html`<label class="segment-field small muted"><span>${label}</span>
    <input class="input numbers" ref=${field} inputmode="decimal" autocomplete="off" spellcheck=${false}
      aria-invalid=${isWrong} title=${isWrong ? t("edit.noTime") : t("edit.timeKeys")} onChange=${commit} onKeyDown=${press} />
  </label>
  ${isWrong && html`<small class="wrong" role="alert">${t("edit.noTime")}</small>`}`;
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
    session.edit("speaker", (segments) => setSpeakers(segments, new Set([segment.id]), value), segment.id);
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
  return html`<label class="segment-field small muted"><span>${t("edit.speaker")}</span>
    <input class="input" ref=${field} dir="auto" list="speaker-names" autocomplete="off" maxlength=${MOST_SPEAKER_CHARS}
      value=${isWanted ? "" : (segment.speaker ?? "")} placeholder=${segment.speaker ?? ""}
      onBlur=${leave} onKeyDown=${press} />
  </label>`;
}
