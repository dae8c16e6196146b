/** The text of a job. */

import { html } from "../vendor/ui.js";

/** @param {{session: import("./session.js").Session, playback: import("./playback.js").Playback}} props */
export function Transcript({ session }) {
  return html`<section>${session.segments.value.map((segment) => html`<p key=${segment.id} dir="auto">${segment.text}</p>`)}</section>`;
}
