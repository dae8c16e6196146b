/** One segment of the list: its time, its text, and what can be done with it. */

import { clock } from "../core/format.js";
import { Icon } from "../core/icons.js";
import { hasSound } from "../core/me.js";
import { Menu } from "../core/menu.js";
import { t } from "../core/text.js";
import { html, useMemo } from "../vendor/ui.js";
import { replaceAll } from "./edits.js";
import { languageName } from "./job_facts.js";
import { assignSpeaker, insertAfter, joinSegments, removeSegments, splitSegment } from "./segment_actions.js";
import { SegmentEditor } from "./segment_editor.js";
import { SpeakerMenu } from "./speaker_menu.js";
import { turnFrom } from "./speakers.js";
import { otherLanguage } from "./types.js";
import { isUnsure, piecesOf, termsIn } from "./words.js";

/** @typedef {import("./transcript_rows.js").SegmentRow} Row */
/** @typedef {import("./segment_actions.js").Screen} Screen */
/** @typedef {import("../core/menu.js").MenuItem} MenuItem */

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
  const job = screen.session.job.value;
  const other = otherLanguage(job, segment);
  return html`<li class=${`segment ${colour && "spoken"} ${colour}`} data-key=${segment.id} tabindex=${tabindex} style=${{ marginTop: `${space}px` }}
    data-current=${isCurrent} data-selected=${isSelected} aria-posinset=${position + 1} aria-setsize=${count}>
    <button class="segment-time numbers" tabindex=${tabindex} data-play disabled=${!hasSound.value}
      aria-label=${t("transcript.playFrom", { time })}>${time}</button>
    <div class="segment-body">
      ${
        heading &&
        html`<div class="segment-speaker" dir="auto"><${SpeakerMenu} screen=${screen} name=${heading} colour=${colour}
        tabindex=${tabindex} part=${() => turnFrom(screen.session.segments.peek(), position)} /></div>`
      }
      ${
        editing
          ? html`<${SegmentEditor} screen=${screen} segment=${segment} editing=${editing} />`
          : html`${other && html`<span class="segment-language">${languageName(other)}</span>`}
            <${SegmentText} segment=${segment} colourOf=${colourOf} language=${other ?? job?.language} />`
      }
    </div>
    <div class="segment-actions">
      ${
        canEdit &&
        html`<button class="icon-button segment-edit" tabindex=${tabindex} data-edit=${segment.id} aria-label=${t("edit.edit")} title=${t("edit.edit")}>
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
 * @param {string | null | undefined} [props.language]
 * @param {"p" | "span"} [props.tag] Within a paragraph: a span, without a direction of its own.
 */
export function SegmentText({ segment, colourOf, language, tag = "p" }) {
  const pieces = useMemo(() => {
    let word = 0;
    let speaker = segment.speaker;
    const terms = termsIn(segment);
    return piecesOf(segment).map((piece) => {
      if (!piece.text.trim()) return piece.text;
      const name = piece.word && isUnsure(piece.word.word) ? "unsure" : "";
      const term = terms.find(
        ({ start, end }) => piece.start < end && start < piece.start + piece.text.length,
      );
      const next = piece.word?.word.speaker ?? speaker;
      const turn = next === speaker ? "" : next;
      speaker = next;
      return html`<span class=${turn ? `${name} turn ${colourOf(turn)}` : name || undefined} data-turn=${turn || undefined} data-at=${piece.start} data-word=${piece.word ? word++ : undefined} title=${term && t("terms.heard", term)}>${piece.text}</span>`;
    });
  }, [segment]);
  return html`<${tag} class="segment-text" data-anchor=${tag === "p" || undefined} dir=${tag === "p" ? "auto" : undefined} lang=${language ?? undefined}>${pieces}</${tag}>`;
}

const MOST_SPEAKERS = 9; // as many as have keys

/** @param {{screen: Screen, segment: import("./types.js").Segment, isLast: boolean, tabindex: number}} props */
export function SegmentMenu({ screen, segment, isLast, tabindex }) {
  const { view } = screen;
  const { id } = segment;
  /** @type {[string, import("../core/text.js").TextKey, () => void][]} */
  const entries = [
    ["edit", "edit.edit", () => view.edit(id)],
    ["clock", "edit.times", () => view.edit(id, null, "start")],
    ["person", "edit.setSpeaker", () => view.edit(id, null, "speaker")],
    ["cut", "edit.split", () => splitSegment(screen, id)],
    ["join", "edit.join", () => joinSegments(screen, id)],
    ["plus", "edit.insert", () => insertAfter(screen, id)],
    ["trash", "edit.remove", () => removeSegments(screen, id)],
  ];
  /** @type {MenuItem[]} */
  const items = entries
    .filter(([icon]) => !isLast || icon !== "join")
    .map(([icon, key, run]) => ({ icon, label: t(key), run, danger: icon === "trash" }));
  const speakers = view.speakers.value.slice(0, MOST_SPEAKERS).map(({ name }) => ({
    label: name,
    checked: segment.speaker === name,
    run: () => assignSpeaker(screen, id, name),
  }));
  const undo = (/** @type {ReturnType<typeof termsIn>[number]} */ term) =>
    screen.session.edit("replace", (all) => replaceAll(all, [term], term.heard), id);
  const terms = termsIn(segment).map((term) => ({ label: t("terms.undo", term), run: () => undo(term) }));
  if (terms.length) items.push("separator", ...terms);
  if (speakers.length) items.push("separator", ...speakers);
  return html`<${Menu} label=${t("edit.more")} icon="more" iconOnly items=${items} tabindex=${tabindex} />`;
}
