/** The text of a segment while it is edited, with its times and its speaker below. */

import { Icon } from "../core/icons.js";
import { t } from "../core/text.js";
import { html, useLayoutEffect, useRef } from "../vendor/ui.js";
import { setText } from "./edits.js";
import { editNeighbour, joinWithNext, joinWithPrevious, splitSegment } from "./segment_actions.js";
import { SpeakerField, TimeFields } from "./segment_fields.js";
import { caretAfterChange } from "./segment_text.js";

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
        title="Ctrl + Enter"><${Icon} name="cut" />${t("edit.splitHere")}</button>
      <button class="button" onClick=${screen.view.leave}><${Icon} name="check" />${t("edit.done")}</button>
    </div>
  `;
}

/**
 * The caret in a segment's text. The button that asks has taken the focus, but not the caret.
 * @param {Segment} segment
 */
function caretOf({ id }) {
  const field = document.querySelector(`[data-key="${CSS.escape(id)}"] textarea`);
  return /** @type {HTMLTextAreaElement} */ (field).selectionStart;
}

/** @param {{screen: Screen, segment: Segment, editing: Editing}} props */
function TextField({ screen, segment, editing }) {
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
  /** @param {Event} event */
  const write = (event) => {
    const { value } = /** @type {HTMLTextAreaElement} */ (event.target);
    screen.session.edit("text", (segments) => setText(segments, segment.id, value), segment.id);
    // What the correction left out, such as line breaks, does not come back with a change of the segment.
    const kept = screen.session.segments.peek().find(({ id }) => id === segment.id);
    if (kept && field.current) showText(field.current, kept.text);
  };
  return html`<textarea class="segment-text" ref=${field} dir="auto" rows="1" spellcheck=${true}
    lang=${screen.session.job.value?.language ?? undefined} aria-label=${t("edit.text")} onInput=${write}
    onKeyDown=${(/** @type {KeyboardEvent} */ event) => press(event, screen, segment)} />`;
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
 * @param {KeyboardEvent} event
 * @param {Screen} screen
 * @param {Segment} segment
 */
function press(event, screen, { id, text }) {
  if (event.isComposing) return; // Enter chooses a character
  const { selectionStart, selectionEnd } = /** @type {HTMLTextAreaElement} */ (event.target);
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
  if (!action) return;
  event.preventDefault();
  action();
}
