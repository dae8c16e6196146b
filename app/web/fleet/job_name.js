/** A job with its colour, as a link to its transcript. */

import { html } from "../vendor/ui.js";
import { colours } from "./fleet_store.js";
import { hasScreen, nameOf } from "./job_names.js";

/** @param {{id: string, isLink?: boolean}} props `id`: of a job, or DIRECT. */
export function JobName({ id, isLink = true }) {
  const name = html`<span class="job-name" dir="auto">${nameOf(id)}</span>`;
  const label = isLink && hasScreen(id) ? html`<a href=${`#/jobs/${id}`}>${name}</a>` : name;
  return html`<span class="job-tag"><${Swatch} id=${id} />${label}</span>`;
}

/** @param {{id: string}} props */
export function Swatch({ id }) {
  const { hue, pattern } = colours.of(id);
  return html`<span class=${`swatch hue-${hue ?? "grey"} ${pattern}`} aria-hidden="true"></span>`;
}
