/** One paragraph of the text: who speaks, when, and the segments as running text, each of which is edited in place. */

import { IconButton } from "../core/controls.js";
import { clock } from "../core/format.js";
import { Icon } from "../core/icons.js";
import { hasSound } from "../core/me.js";
import { t } from "../core/text.js";
import { html, useLayoutEffect, useRef, useState } from "../vendor/ui.js";
import { caretIn, offsetIn, placeCaret } from "./carets.js";
import { setText } from "./edits.js";
import { change } from "./edits_rules.js";
import { languageName } from "./job_facts.js";
import { editNeighbour } from "./segment_actions.js";
import { press, SpeakerField, TimeFields, useRegion } from "./segment_editor.js";
import { SegmentText } from "./segment_text.js";
import { SpeakerMenu } from "./speaker_menu.js";
import { isRecorded, otherLanguage } from "./types.js";
import { caretAfterChange } from "./words.js";

/** @typedef {import("./segment_actions.js").Screen} Screen */
/** @typedef {import("./types.js").Segment} Segment */
/** @typedef {import("./transcript_view.js").Editing} Editing */

/**
 * @typedef {object} ParagraphProps
 * @property {Screen} screen
 * @property {import("./transcript_rows.js").Paragraph} row
 * @property {number} count Of all paragraphs.
 * @property {number} space Above the paragraph, in pixels.
 * @property {string | null} current The segment that Tab goes to, if it is here.
 * @property {ReadonlySet<string>} selected
 * @property {Editing | null} editing If it is here.
 */

/** @param {ParagraphProps} props */
export function Paragraph({ screen, row, count, space, current, selected, editing }) {
  const { segments, heading, position } = row;
  const { session, view } = screen;
  const [{ id, start }] = segments;
  const time = clock(start);
  const tabindex = current ? 0 : -1;
  const job = session.job.value;
  const other = otherLanguage(job, segments[0]);
  const { colourOf } = view;
  const edited = segments.find((segment) => segment.id === editing?.id);
  return html`<li class="paragraph" data-key=${row.key} style=${{ marginTop: `${space}px` }} aria-posinset=${position + 1} aria-setsize=${count}>
    <div class="paragraph-head">
      ${
        heading &&
        html`<div class="segment-speaker" dir="auto"><${SpeakerMenu} screen=${screen} name=${heading} colour=${colourOf(heading)}
          tabindex=${tabindex} part=${() => new Set(segments.map((segment) => segment.id))} /></div>`
      }
      <button class="segment-time numbers" tabindex=${tabindex} data-play=${start} disabled=${!hasSound.value || (job && isRecorded(job))} aria-label=${t("transcript.playFrom", { time })}>${time}</button>
    </div>
    <div class="paragraph-body">
      ${other && html`<span class="segment-language small muted">${languageName(other)}</span>`}
      <p class="paragraph-text" data-anchor dir="auto" lang=${other ?? job?.language ?? undefined}>
        ${segments.map(
          // The space between two belongs to the later one: a selection that begins outside of what gets the focus ends.
          (segment, index) =>
            segment.spoken
              ? html`<${Spoken} key=${segment.id} segment=${segment} />`
              : html`<span key=${segment.id} class="segment" data-key=${segment.id} tabindex=${segment.id === current ? 0 : -1}
            data-selected=${selected.has(segment.id)}>${index > 0 && " "}${
              segment === edited
                ? html`<${InlineField} screen=${screen} segment=${segment} editing=${editing} />`
                : html`<${SegmentText} segment=${segment} colourOf=${colourOf} />`
            }</span>`,
        )}
      </p>
      ${edited && editing && editing.field !== "text" && html`<${Fields} screen=${screen} segment=${edited} editing=${editing} />`}
    </div>
    ${
      session.editable.value &&
      !segments[0].spoken &&
      html`<${IconButton} class="paragraph-edit" icon="edit" label=${t("edit.edit")} tabindex=${tabindex} data-edit=${current ?? id} />`
    }
  </li>`;
}

/** Words of a live recording: others may come in their place while they are grey. @param {{segment: Segment}} props */
export function Spoken({ segment: { spoken, text } }) {
  return html`<span class="spoken" data-spoken=${spoken}> ${text}</span>`;
}

/** @param {{screen: Screen, segment: Segment, editing: Editing}} props */
function Fields({ screen, segment, editing }) {
  const place = screen.view.placeOf(segment.id);
  useRegion(screen, /** @type {NonNullable<typeof place>} */ (place), editing.field === "start");
  return html`<div class="toolbar segment-fields">
    ${editing.field === "start" && html`<${TimeFields} screen=${screen} place=${place} isWanted=${true} />`}
    ${editing.field === "speaker" && html`<${SpeakerField} screen=${screen} segment=${segment} isWanted=${true} />`}
    <button class="button" tabindex="0" onClick=${screen.view.leave}><${Icon} name="check" />${t("edit.done")}</button>
  </div>`;
}

/**
 * The text of a segment within its paragraph, while it is edited: nothing around it moves.
 * @param {{screen: Screen, segment: Segment, editing: Editing}} props
 */
function InlineField({ screen, segment, editing }) {
  const field = useRef(/** @type {HTMLElement | null} */ (null));
  /** @param {string} text */
  const show = (text) => {
    const element = /** @type {HTMLElement} */ (field.current);
    if (element.textContent === text) return;
    const caret = caretAfterChange(element.textContent ?? "", text);
    element.textContent = text;
    if (document.activeElement === element) placeCaret(element, caret, caret);
  };
  useLayoutEffect(() => show(segment.text), [segment.text]);
  useLayoutEffect(() => {
    const element = field.current;
    if (editing.field !== "text" || !element) return;
    const { start, end } = editing.selection ?? { start: segment.text.length, end: segment.text.length };
    element.focus({ preventScroll: true });
    placeCaret(element, start, end);
  }, [editing]);
  const write = () => {
    const value = field.current?.textContent ?? "";
    screen.session.edit("text", (segments) => setText(segments, segment.id, value), segment.id);
    const kept = screen.session.segments.peek().find(({ id }) => id === segment.id);
    if (kept) show(kept.text);
  };
  const [original] = useState(segment);
  const cancel = () => {
    const { text, words } = original;
    screen.session.edit(
      "text",
      (segments) =>
        change(segments, segment.id, (now) => (now.text === text ? now : { ...now, text, words })),
      segment.id,
    );
    screen.view.leave();
  };
  return html`<span class="segment-text" ref=${field} contenteditable="plaintext-only" role="textbox" spellcheck=${true}
    aria-label=${t("edit.text")} onInput=${write}
    onKeyDown=${(/** @type {KeyboardEvent} */ event) => press(event, screen, segment.id, segment.text.length, (at) => ({ id: segment.id, at })) || cross(event, screen, segment)} />
    <span class="touch-only">
      <button class="button primary" onClick=${screen.view.leave}>${t("edit.done")}</button>
      <button class="button" onClick=${cancel}>${t("cancel")}</button>
    </span>`;
}

/**
 * The arrows go on in the neighbouring segment, up and down to the line that is there: who writes sees one text.
 * @param {KeyboardEvent} event
 * @param {Screen} screen
 * @param {Segment} segment
 */
function cross(event, screen, { id, text }) {
  if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey || event.isComposing) return;
  const field = /** @type {HTMLElement} */ (event.target);
  const { start, end } = caretIn(field);
  const direction =
    event.key === "ArrowRight" && start === text.length ? 1 : event.key === "ArrowLeft" && end === 0 ? -1 : 0;
  if (direction) editNeighbour(screen, id, direction);
  else if (
    !/^Arrow(Up|Down)$/.test(event.key) ||
    !crossLine(field, screen, id, event.key === "ArrowDown" ? 1 : -1)
  )
    return;
  event.preventDefault();
}

/**
 * Edit what is above or below the caret, if it is of another segment.
 * @param {HTMLElement} field
 * @param {Screen} screen
 * @param {string} id
 * @param {1 | -1} direction
 * @returns {boolean} Whether it is.
 */
function crossLine(field, screen, id, direction) {
  const caret = getSelection()?.getRangeAt(0).getClientRects()[0];
  const box = field.getBoundingClientRect();
  const line = Number.parseFloat(getComputedStyle(field).lineHeight);
  const { left, top, bottom } = caret ?? box;
  const y = direction > 0 ? bottom + line / 2 : top - line / 2;
  const place = document.caretPositionFromPoint?.(left, y);
  const row = /** @type {HTMLElement | null | undefined} */ (
    place?.offsetNode.parentElement?.closest(".segment")
  );
  const other = row?.querySelector(".segment-text");
  if (place && other && row?.dataset.key && row.dataset.key !== id) {
    const at = other.contains(place.offsetNode) ? offsetIn(other, place.offsetNode, place.offset) : 0;
    screen.view.edit(row.dataset.key, { start: at, end: at });
    return true;
  }
  const isAtEdge = direction > 0 ? y > box.bottom : y < box.top;
  if (isAtEdge) editNeighbour(screen, id, direction); // the gap between paragraphs
  return isAtEdge;
}
