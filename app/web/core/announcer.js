/** What a screen reader speaks without the focus going there. Use it rarely: for what the user waits for. */

import { html, signal } from "../vendor/ui.js";

const announcement = signal("");

/** @param {string} text */
export function announce(text) {
  // The same text twice would not be spoken again.
  announcement.value = announcement.value === text ? `${text}\u00a0` : text;
}

export function Announcer() {
  return html`<p class="visually-hidden" role="status">${announcement}</p>`;
}
