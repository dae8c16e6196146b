/** Name, state, downloads and revisions of a job. */

import { html } from "../vendor/ui.js";
import { nameOf } from "./types.js";

/** @param {{session: import("./session.js").Session, playback: import("./playback.js").Playback}} props */
export function JobHeader({ session }) {
  const job = session.job.value;
  return job && html`<h1 dir="auto">${nameOf(job)}</h1>`;
}
