/** The text of a job: as it grows, as it plays, and to correct it. */

import { clock } from "../core/format.js";
import { Icon } from "../core/icons.js";
import { t } from "../core/text.js";
import { isSmall } from "../core/window_size.js";
import { html, useEffect, useLayoutEffect, useMemo, useRef } from "../vendor/ui.js";
import { CueChoice } from "./cue_choice.js";
import { CueRow } from "./cue_row.js";
import { idOf } from "./cue_rows.js";
import { showMatches } from "./find_bar.js";
import { Paragraph, Spoken } from "./paragraph.js";
import { live, unwritten } from "./spoken.js";
import { createFollower } from "./transcript_follow.js";
import { click, doubleClick, mouseDown, noticeSelection, pointerDown, press } from "./transcript_input.js";
import { directionOf, estimatedHeight, paragraphsOf, rowsOf } from "./transcript_rows.js";
import { isActive, isRecorded } from "./types.js";

/** @typedef {import("./segment_actions.js").Screen} Screen */
/** @typedef {import("./transcript_rows.js").Row} Row */

const NONE = new Set();
/** @type {readonly import("./types.js").Segment[]} */
const NOTHING = [];
const END_PX = 40; // this near to the end of the page, the reader sees its end

/** @param {{screen: Screen, search: import("./find.js").Search}} props */
export function Transcript({ screen, search }) {
  const { session, view } = screen;
  const job = session.job.value;
  const isGrowing = job !== null && isActive(job);
  const segments = session.segments.value;
  const spoken = isGrowing && live.value.job === session.id ? unwritten(live.value.turns, segments) : NOTHING;
  if (!segments.length && !spoken.length && !job?.failed_spans?.length) {
    return html`<section class="transcript" aria-label=${t("transcript.label")}><${Nothing} session=${session} /></section>`;
  }
  return html`<section class="transcript" aria-label=${t("transcript.label")}>
    ${isSmall.value && html`<${CueChoice} view=${view} />`}
    <${List} screen=${screen} search=${search} isGrowing=${isGrowing} spoken=${spoken} />
    ${isGrowing && !(job && isRecorded(job)) && html`<p class="toolbar transcript-growing muted"><span class="dots" aria-hidden="true"></span>${t("transcript.growing")}</p>`}
  </section>`;
}

/** @param {{session: Screen["session"]}} props */
function Nothing({ session }) {
  const job = session.job.value;
  const isWaiting = job !== null && isActive(job);
  const isLoading = job === null || (job.status === "succeeded" && !session.complete.value);
  if (!isWaiting && !isLoading)
    return html`<p class="empty">${t(job.status === "succeeded" ? "transcript.silent" : "transcript.none")}</p>`;
  return html`<div class="transcript-waiting" aria-busy="true">
    <p class="muted">${t(isWaiting ? "transcript.waiting" : "loading")}</p>
    ${[92, 78, 85, 60].map((width) => html`<span class="skeleton" style=${{ width: `${width}%` }}></span>`)}
  </div>`;
}

/** @param {{screen: Screen, search: import("./find.js").Search, isGrowing: boolean, spoken: readonly import("./types.js").Segment[]}} props */
function List({ screen, search, isGrowing, spoken }) {
  const { session, view } = screen;
  const element = useRef(/** @type {HTMLElement | null} */ (null));
  const follower = useMemo(() => createFollower(screen), [screen]);
  const layout = view.layout.value;
  const stored = session.segments.value;
  const segments = useMemo(() => [...stored, ...spoken], [stored, spoken]);
  const job = session.job.value;
  const failed = job?.failed_spans ?? [];
  const { list } = view;
  const inSight = useMemo(() => (scrollY > 0 ? list.seen(view.current.peek()) : null), [layout]); // of the other layout
  const rows = useMemo(
    () => (layout === "text" ? paragraphsOf(segments, failed, job) : rowsOf(view.cues.rows.value, failed)),
    [layout === "text" ? segments : view.cues.rows.value, JSON.stringify(failed), job?.language, layout],
  );
  useMemo(() => {
    list.setRows(
      rows.map(({ key }) => key),
      (index, width) => estimatedHeight(rows[index], width),
      new Map(rows.flatMap(({ segments: parts = [] }, index) => parts.map(({ id }) => [id, index]))),
    );
  }, [rows, list]);

  const last = view.current.value;
  const current = (last && view.placeOf(last)?.key) ?? view.placeOf(segments[0]?.id ?? "")?.key ?? null;
  const editing = view.editing.value;
  const editedKey = view.editedKey();
  const drawn = list.drawn(current);
  const part = view.selection.part.value;
  const selected = part ? NONE : view.selection.ids.value;
  const wasAtEnd =
    isGrowing &&
    (scrollY > 0 || spoken.length > 0) &&
    scrollY + innerHeight >= document.documentElement.scrollHeight - END_PX;
  const hadFocus = element.current?.contains(document.activeElement) ?? false;
  useLayoutEffect(() => {
    list.settle();
    if (wasAtEnd) list.toEnd();
    if (hadFocus && document.activeElement === document.body && current) view.go(current);
    view.focusWanted();
    follower.mark();
  });
  useLayoutEffect(() => {
    if (inSight) list.reveal(view.keyAt(idOf(inSight)), "third");
  }, [layout]);
  // Matches are marked after each drawing, and when the search changes.
  const { matches, at } = { matches: search.matches.value, at: search.at.value };
  useLayoutEffect(() => showMatches(matches, matches[at] ?? null));
  useEffect(() => {
    if (!part) return;
    CSS.highlights.set("chosen", new Highlight(part.range));
    return () => void CSS.highlights.delete("chosen");
  }, [part]);
  useEffect(
    () => list.attach(/** @type {HTMLElement} */ (element.current), follower.scrolled),
    [list, follower],
  );
  useEffect(follower.start, [follower]);
  useEffect(() => {
    const notice = () => noticeSelection(screen);
    document.addEventListener("selectionchange", notice);
    return () => document.removeEventListener("selectionchange", notice);
  }, [screen]);

  /** @param {Row} row @param {number} space */
  const vnodeOf = (row, space) =>
    row.segments
      ? html`<${Paragraph} key=${row.key} screen=${screen} row=${row} count=${rows.length} space=${space} selected=${selected}
          current=${idIn(row, current)} editing=${idIn(row, editing?.id) ? editing : null} />`
      : row.cue
        ? html`<${CueRow} key=${row.key} screen=${screen} row=${row.cue} count=${view.cues.rows.value.length} space=${space}
          isCurrent=${row.key === current} isSelected=${row.cue.parts.some(({ segment }) => selected.has(segment.id))} editing=${row.key === editedKey ? editing : null} />`
        : html`<${FailedRow} key=${row.key} row=${row} space=${space} />`;
  return html`
    <ol class="segments" role="list" ref=${element} dir=${directionOf(session.job.value?.language)}
      style=${{ paddingBlockEnd: `${list.spaceBelow()}px` }}
      onPointerDown=${(/** @type {PointerEvent} */ event) => pointerDown(event, screen)}
      onMouseDown=${(/** @type {MouseEvent} */ event) => mouseDown(event, screen)}
      onClick=${(/** @type {MouseEvent} */ event) => click(event, screen)}
      onDblClick=${(/** @type {MouseEvent} */ event) => doubleClick(event, screen)}
      onKeyDown=${(/** @type {KeyboardEvent} */ event) => press(event, screen)}
      onFocusIn=${(/** @type {FocusEvent} */ event) => noticeFocus(event, screen)}>
      ${drawn.map(({ index, space }) => vnodeOf(rows[index], space))}
    </ol>
    ${layout === "subtitles" && html`<p class="transcript-spoken">${spoken.map((segment) => html`<${Spoken} key=${segment.id} segment=${segment} />`)}</p>`}
    <${BackToPlaying} screen=${screen} goBack=${follower.goBack} />
  `;
}

/** A segment, if it is of the paragraph. @param {import("./transcript_rows.js").Paragraph} row @param {string | null | undefined} wanted */
function idIn({ segments }, wanted) {
  return segments.find(({ id }) => id === wanted)?.id ?? null;
}

/**
 * A click, or a way of the keyboard to a segment, makes it the current one.
 * @param {FocusEvent} event
 * @param {Screen} screen
 */
function noticeFocus(event, { view }) {
  const row = /** @type {HTMLElement | null} */ (/** @type {Element} */ (event.target).closest(".segment"));
  const key = row?.dataset.key;
  if (!key || key === view.current.peek()) return;
  if (view.editing.peek() && view.editedKey() !== key) view.stop();
  view.current.value = key;
}

/** @param {{row: Row, space: number}} props */
function FailedRow({ row, space }) {
  if (!row.span) return null;
  const { start, end } = row.span;
  return html`<li class="segment-failed" data-key=${row.key} style=${{ marginTop: `${space}px` }}>
    <p class="toolbar notice warning"><${Icon} name="warning" />${t("transcript.failed", { start: clock(start), end: clock(end) })}</p>
  </li>`;
}

/** @param {{screen: Screen, goBack: () => void}} props */
function BackToPlaying({ screen, goBack }) {
  if (!screen.playback.playing.value || screen.view.following.value) return null;
  return html`<button class="button primary back-to-playing" onClick=${goBack}>
    <${Icon} name="play" />${t("transcript.backToPlaying")}
  </button>`;
}
