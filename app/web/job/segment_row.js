/** One segment of the list: its time, its text, and what can be done with it. */

import { clock } from "../core/format.js";
import { Icon } from "../core/icons.js";
import { t } from "../core/text.js";
import { html, useMemo } from "../vendor/ui.js";
import { SegmentEditor } from "./segment_editor.js";
import { SegmentMenu } from "./segment_menu.js";
import { isUnsure, piecesOf } from "./segment_words.js";

/** @typedef {import("./transcript_rows.js").SegmentRow} Row */

/**
 * @typedef {object} SegmentRowProps
 * @property {import("./segment_actions.js").Screen} screen
 * @property {Row} row
 * @property {number} count Of all segments.
 * @property {number} space Above the row, in pixels.
 * @property {boolean} isCurrent The segment that Tab goes to.
 * @property {boolean} isSelected
 * @property {import("./transcript_view.js").Editing | null} editing
 */

/** @param {SegmentRowProps} props */
export function SegmentRow({ screen, row, count, space, isCurrent, isSelected, editing }) {
  const { segment, heading, position } = row;
  const tabindex = isCurrent ? 0 : -1;
  const time = clock(segment.start);
  const canEdit = screen.session.editable.value;
  const colourOf = (/** @type {string | null} */ name) =>
    screen.view.speakers.value.find((speaker) => speaker.name === name)?.colour ?? "";
  const colour = colourOf(segment.speaker);
  return html`<li class=${`segment ${colour && "spoken"} ${colour}`} data-key=${segment.id} tabindex=${tabindex} style=${{ marginTop: `${space}px` }}
    data-current=${isCurrent} data-selected=${isSelected} aria-posinset=${position + 1} aria-setsize=${count}>
    <button class="segment-time numbers" tabindex=${tabindex} data-play="segment"
      aria-label=${t("transcript.playFrom", { time })}>${time}</button>
    <div class="segment-body">
      ${heading && html`<p class="segment-speaker" dir="auto"><span class=${`swatch ${colour}`} aria-hidden="true"></span>${heading}</p>`}
      ${
        editing
          ? html`<${SegmentEditor} screen=${screen} segment=${segment} editing=${editing} />`
          : html`<${SegmentText} segment=${segment} colourOf=${colourOf} language=${screen.session.job.value?.language} />`
      }
    </div>
    <div class="segment-actions">
      ${
        canEdit &&
        html`<button class="icon-button segment-edit" tabindex=${tabindex} data-edit aria-label=${t("edit.edit")} title=${t("edit.edit")}>
          <${Icon} name="edit" />
        </button>
        <${SegmentMenu} screen=${screen} segment=${segment} isLast=${position === count - 1} tabindex=${tabindex} />`
      }
    </div>
  </li>`;
}

/**
 * @param {object} props
 * @param {import("./types.js").Segment} props.segment
 * @param {(speaker: string) => string} props.colourOf
 * @param {string | null | undefined} props.language
 */
function SegmentText({ segment, colourOf, language }) {
  const pieces = useMemo(() => {
    let word = 0;
    let speaker = segment.speaker;
    return piecesOf(segment).map((piece) => {
      if (!piece.text.trim()) return piece.text;
      const name = piece.word && isUnsure(piece.word.word) ? "unsure" : "";
      const next = piece.word?.word.speaker ?? speaker;
      const turn = next === speaker ? "" : next;
      speaker = next;
      return html`<span class=${turn ? `${name} turn ${colourOf(turn)}` : name || undefined} data-turn=${turn || undefined} data-at=${piece.start} data-word=${piece.word ? word++ : undefined}>${piece.text}</span>`;
    });
  }, [segment]);
  return html`<p class="segment-text" dir="auto" lang=${language ?? undefined}>${pieces}</p>`;
}
