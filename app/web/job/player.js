/** The player: video, or sound with its waveform. */

import { html } from "../vendor/ui.js";

/** @param {{session: import("./session.js").Session, playback: import("./playback.js").Playback}} props */
export function Player({ session }) {
  return html`<section class="player" data-job=${session.id}></section>`;
}
