/** A job with its colour, as a link to its transcript. */

import { html } from "../vendor/ui.js";
import { colours } from "./fleet_store.js";
import { hasScreen, nameOf } from "./job_names.js";
import { Swatch } from "./swatch.js";

/** @param {{id: string, isLink?: boolean}} props `id`: of a job, or DIRECT. */
export function JobName({ id, isLink = true }) {
  const name = html`<span class="job-name one-line" dir="auto">${nameOf(id)}</span>`;
  const label = isLink && hasScreen(id) ? html`<a href=${`#/jobs/${id}`}>${name}</a>` : name;
  return html`<span class="job-tag"><${Swatch} colour=${colours.of(id)} />${label}</span>`;
}
