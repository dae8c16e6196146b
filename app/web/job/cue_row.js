/** One subtitle of the list: its number, its times, its lines, how fast it reads, and what can be done with it. */

import { IconButton } from "../core/controls.js";
import { preciseClock } from "../core/format.js";
import { Icon } from "../core/icons.js";
import { hasSound } from "../core/me.js";
import { Menu } from "../core/menu.js";
import { t } from "../core/text.js";
import { hueOf } from "../fleet/swatch.js";
import { html, useMemo } from "../vendor/ui.js";
import { applyCure, problemText, splitCue } from "./cue_actions.js";
import { lineStarts, markAt, setMark } from "./cue_rows.js";
import { replaceAll } from "./edits.js";
import { languageName } from "./job_facts.js";
import { assignSpeaker, insertAfter, joinWithNext, removeSegments } from "./segment_actions.js";
import { CueEditor, useRegion } from "./segment_editor.js";
import { SegmentText } from "./segment_text.js";
import { SpeakerMenu } from "./speaker_menu.js";
import { turnFrom } from "./speakers.js";
import { otherLanguage } from "./types.js";
import { spaceBetween, termsIn, unitsOf } from "./words.js";

/** @typedef {import("./cue_rows.js").CueRow} Row */
/** @typedef {import("./segment_actions.js").Screen} Screen */

/**
 * @typedef {object} CueRowProps
 * @property {Screen} screen
 * @property {Row} row
 * @property {number} count Of all subtitles.
 * @property {number} space Above the row, in pixels.
 * @property {boolean} isCurrent The one that Tab goes to.
 * @property {boolean} isSelected
 * @property {import("./transcript_view.js").Editing | null} editing
 */

/** @param {CueRowProps} props */
export function CueRow({ screen, row, count, space, isCurrent, isSelected, editing }) {
  const { key, parts, start, end, lines, heading, position } = row;
  const [{ segment, from }] = parts;
  const { session, view } = screen;
  const tabindex = isCurrent ? 0 : -1;
  const canEdit = session.editable.value;
  const { colourOf } = view;
  const other = otherLanguage(session.job.value, segment);
  const part = () => turnFrom(session.segments.peek(), segment.id);
  const isShort = lines.length > 0;
  useRegion(screen, row, canEdit && (view.current.value === key || editing !== null));
  return html`<li class="segment cue" data-key=${key} tabindex=${tabindex} data-spoken=${segment.speaker !== null} style=${{ marginTop: `${space}px`, ...hueOf(colourOf(segment.speaker)) }}
    data-current=${isCurrent} data-selected=${isSelected} aria-posinset=${position + 1} aria-setsize=${count}>
    <span class="cue-number small muted numbers">${isShort && position + 1}</span>
    <div class="cue-times small muted numbers">
      <button class="segment-time" tabindex=${tabindex} data-play=${start} disabled=${!hasSound.value}
        aria-label=${t("transcript.playFrom", { time: preciseClock(start) })}>${preciseClock(start)}</button>
      <span>${preciseClock(end)}</span>
    </div>
    <div class="segment-body">
      ${
        heading &&
        html`<div class="segment-speaker" dir="auto"><${SpeakerMenu} screen=${screen} name=${heading} colour=${colourOf(heading)}
        tabindex=${tabindex} part=${part} /></div>`
      }
      ${
        editing
          ? html`<${CueEditor} screen=${screen} row=${row} editing=${editing} />`
          : html`${other && html`<span class="segment-language small muted">${languageName(other)}</span>`}
            <${CueText} row=${row} colourOf=${colourOf} language=${other ?? session.job.value?.language} />`
      }
      <${Problems} screen=${screen} row=${row} isCurrent=${isCurrent} />
    </div>
    <div class="cue-facts small muted">
      ${markAt(segment, from) === "break" && html`<span role="img" aria-label=${t("cue.break")} title=${t("cue.break")}><${Icon} name="cut" /></span>`}
      ${joinsOf(row).length > 0 && html`<span role="img" aria-label=${t("cue.join")} title=${t("cue.join")}><${Icon} name="join" /></span>`}
      ${isShort && html`<${Speed} row=${row} />`}
    </div>
    <div class="segment-actions">
      ${
        canEdit &&
        html`<${IconButton} class="segment-edit" icon="edit" label=${t("edit.edit")} tabindex=${tabindex} data-edit=${key} />
        <${CueMenu} screen=${screen} row=${row} isLast=${position === count - 1} tabindex=${tabindex} />`
      }
    </div>
  </li>`;
}

/** Its lines, as the file has them. @param {{row: Row, colourOf: import("./transcript_view.js").View["colourOf"], language: string | null | undefined}} props */
function CueText({ row, colourOf, language }) {
  const { parts, lines } = row;
  const starts = useMemo(() => {
    const all = lineStarts(row);
    return all && parts.map((_, part) => all.filter((start) => start.part === part));
  }, [parts, lines]);
  return html`<p class="cue-text" data-anchor dir="auto" lang=${language ?? undefined}>${parts.map(
    ({ segment, from, to }, part) =>
      html`${part > 0 && !starts?.[part].some(({ at }) => at === from) && spaceBefore(parts, part)}<${SegmentText} key=${segment.id} segment=${segment}
        colourOf=${colourOf} from=${from} to=${to} starts=${starts?.[part]} />`,
  )}</p>`;
}

/** @param {Row["parts"]} parts @param {number} part */
function spaceBefore(parts, part) {
  const [left, right] = parts.slice(part - 1).map(({ segment, from, to }) => segment.text.slice(from, to));
  return spaceBetween(left, right);
}

/** @param {{row: Row}} props */
function Speed({ row: { cps, problems } }) {
  const speed = Math.round(cps * 10) / 10;
  const isFast = problems.some(({ limit }) => limit === "max_cps");
  return html`<span class="numbers" dir="ltr" role="img" data-fast=${isFast || undefined} aria-label=${t("cue.speed", { speed })}
    title=${t("cue.speed", { speed })}>${t("cue.speedShort", { speed })}</span>`;
}

/** What limits it breaks; where one is, also what cures it. @param {{screen: Screen, row: Row, isCurrent: boolean}} props */
function Problems({ screen, row, isCurrent }) {
  if (!row.problems.length) return null;
  const canCure = isCurrent && screen.session.editable.value;
  return html`<p class="cue-problems small doubtful" dir="auto"><${Icon} name="warning" />${row.problems.map(
    (problem) =>
      html`${problemText(problem)} ${canCure && problem.cures.map((cure) => html`<button class="button quiet" onClick=${() => applyCure(screen, row, problem, cure)}>${t(`cue.cure.${cure}`)}</button>`)}`,
  )}</p>`;
}

/** The marks that let a subtitle go on. @param {Row} row */
function joinsOf({ parts }) {
  return parts.flatMap(({ segment, from, to }) =>
    (segment.marks ?? [])
      .map(({ at }) => unitsOf(segment.text, at))
      .filter((at) => at >= from && at < to && markAt(segment, at) === "join")
      .map((at) => ({ id: segment.id, at })),
  );
}

const MOST_SPEAKERS = 9; // as many as have keys

/** @param {{screen: Screen, row: Row, isLast: boolean, tabindex: number}} props */
function CueMenu({ screen, row, isLast, tabindex }) {
  const { again, view, session } = screen;
  const { key, start, end } = row;
  const [{ segment, from }] = row.parts;
  const marks = [...(markAt(segment, from) ? [{ id: segment.id, at: from }] : []), ...joinsOf(row)];
  const unmark = () =>
    session.edit(
      "mark",
      (segments) => marks.reduce((all, { id, at }) => setMark(all, id, at, null), segments),
      segment.id,
    );
  const transcribe = () => {
    again.asked.value = { start, end };
  };
  const speakers = view.speakers.value.slice(0, MOST_SPEAKERS).map(({ name }) => ({
    label: name,
    checked: segment.speaker === name,
    run: () => assignSpeaker(screen, key, name),
  }));
  const undo = (/** @type {ReturnType<typeof termsIn>[number]} */ term) =>
    session.edit("replace", (all) => replaceAll(all, [term], term.heard), term.id);
  const terms = row.parts
    .flatMap((part) => termsIn(part.segment).filter(({ start }) => start >= part.from && start < part.to))
    .map((term) => ({ label: t("terms.undo", term), run: () => undo(term) }));
  /** @type {import("../core/menu.js").MenuItems} */
  const items = [
    { icon: "edit", label: t("edit.edit"), run: () => view.edit(key) },
    { icon: "clock", label: t("edit.times"), run: () => view.edit(key, null, "start") },
    { icon: "person", label: t("edit.setSpeaker"), run: () => view.edit(key, null, "speaker") },
    { icon: "cut", label: t("edit.split"), run: () => splitCue(screen, key) },
    !isLast && { icon: "join", label: t("edit.join"), run: () => joinWithNext(screen, key) },
    marks.length > 0 && { icon: "undo", label: t("cue.unmark"), run: unmark },
    { icon: "plus", label: t("edit.insert"), run: () => insertAfter(screen, key) },
    again.offered.value && { icon: "retry", label: t("again.open"), run: transcribe },
    { icon: "trash", label: t("edit.remove"), run: () => removeSegments(screen, key), danger: true },
    terms.length > 0 && "separator",
    ...terms,
    speakers.length > 0 && "separator",
    ...speakers,
  ];
  return html`<${Menu} label=${t("edit.more")} icon="more" iconOnly items=${items} tabindex=${tabindex} />`;
}
