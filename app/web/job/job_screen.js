/** The screen of one job: player, transcript, corrections and downloads. */

import { html, useEffect, useMemo } from "../vendor/ui.js";
import { t } from "../core/text.js";
import { JobHeader } from "./job_header.js";
import { createPlayback } from "./playback.js";
import { Player } from "./player.js";
import { openSession } from "./session.js";
import { Transcript } from "./transcript.js";

/** @param {{id: string}} props */
export function JobScreen({ id }) {
  const session = useMemo(() => openSession(id), [id]);
  const playback = useMemo(createPlayback, [id]);
  useEffect(() => session.close, [session]);
  if (session.error.value) {
    return html`<div class="card empty">
      <h1>${t("job.unavailable")}</h1>
      <p dir="auto">${session.error.value.message}</p>
      <p><a class="button" href="#/">${t("job.all")}</a></p>
    </div>`;
  }
  if (!session.job.value) return html`<p class="muted" aria-busy="true">${t("loading")}</p>`;
  return html`
    <${JobHeader} session=${session} playback=${playback} />
    <${Player} session=${session} playback=${playback} />
    <${Transcript} session=${session} playback=${playback} />
  `;
}
