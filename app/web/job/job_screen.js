/** The screen of one job: player, transcript, corrections and downloads. */

import { t } from "../core/text.js";
import { html, useEffect, useLayoutEffect, useMemo } from "../vendor/ui.js";
import { EditToolbar } from "./edit_toolbar.js";
import { FindBar } from "./find_bar.js";
import { createSearch } from "./find_state.js";
import { JobHeader } from "./job_header.js";
import { createPlayback } from "./playback.js";
import { Player } from "./player.js";
import { LostCorrections } from "./saving_status.js";
import { openSession } from "./session.js";
import { SpeakersPanel } from "./speakers_panel.js";
import { Transcript } from "./transcript.js";
import { createView } from "./transcript_view.js";

/** @param {{id: string}} props */
export function JobScreen({ id }) {
  const session = useMemo(() => openSession(id), [id]);
  const playback = useMemo(createPlayback, [id]);
  const view = useMemo(() => createView(session), [session]);
  const search = useMemo(() => createSearch(session, view), [session, view]);
  const screen = useMemo(() => ({ session, playback, view }), [session, playback, view]);
  useEffect(() => session.close, [session]);
  useScrollPadding(view);
  if (session.error.value) {
    return html`<div class="card empty">
      <h1>${t("job.unavailable")}</h1>
      <p dir="auto">${session.error.value.message}</p>
      <p><a class="button" href="#/">${t("job.all")}</a></p>
    </div>`;
  }
  if (!session.job.value) return html`<${Skeleton} isConnected=${session.connected.value} />`;
  return html`<div class="job">
    <${JobHeader} session=${session} playback=${playback} />
    <div class="job-top">
      <${Player} session=${session} playback=${playback} />
      <${EditToolbar} screen=${screen} search=${search} />
      <${FindBar} screen=${screen} search=${search} />
    </div>
    <${LostCorrections} session=${session} />
    <${SpeakersPanel} screen=${screen} />
    <${Transcript} session=${session} playback=${playback} view=${view} search=${search} />
  </div>`;
}

/** The places of what comes. @param {{isConnected: boolean}} props */
function Skeleton({ isConnected }) {
  return html`<div class="job" aria-busy="true">
    <p class=${isConnected ? "visually-hidden" : "muted"} role="status">${t(isConnected ? "loading" : "error.unreachable")}</p>
    <span class="skeleton job-skeleton-title"></span>
    <span class="skeleton job-skeleton-player"></span>
    ${[92, 78, 85, 60].map((width) => html`<span class="skeleton" style=${{ width: `${width}%` }}></span>`)}
  </div>`;
}

/** No segment that the keyboard reaches is below the player. The player itself is always in sight. @param {import("./transcript_view.js").View} view */
function useScrollPadding(view) {
  useLayoutEffect(() => {
    const { style } = document.documentElement;
    const update = (/** @type {FocusEvent} */ event) => {
      const isInText = /** @type {Element} */ (event.target).closest(".transcript") !== null;
      style.scrollPaddingTop = isInText ? `${view.list.clearTop() + 8}px` : "";
    };
    addEventListener("focusin", update);
    return () => {
      removeEventListener("focusin", update);
      style.scrollPaddingTop = "";
    };
  }, [view]);
}
