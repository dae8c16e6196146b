/** The jobs of the timelines. Pointing at one makes its blocks stand out. */

import { Icon } from "../core/icons.js";
import { t } from "../core/text.js";
import { html, signal, useEffect } from "../vendor/ui.js";
import { colours, jobs } from "./fleet_store.js";
import { hasScreen, nameOf } from "./job_names.js";
import { choice, legendJob } from "./stage.js";
import { Swatch } from "./swatch.js";

const FEW = 10;
const isOpen = signal(false);

export function Legend() {
  const all = jobs.value;
  const shown = isOpen.value ? all : all.slice(0, FEW);
  const more = all.length - FEW;
  return html`<section class="legend" aria-label=${t("fleet.legend")}>
    ${all.length === 0 && html`<p class="muted">${t("fleet.noWork")}</p>`}
    <ul>
      ${shown.map((job) => html`<li key=${job.key}><${Entry} job=${job} /></li>`)}
      ${
        more > 0 &&
        html`<li><button class="button quiet" aria-expanded=${String(isOpen.value)} onClick=${() => (isOpen.value = !isOpen.value)}>
          ${isOpen.value ? t("fleet.fewerJobs") : t("fleet.moreJobs", { count: more })}
        </button></li>`
      }
    </ul>
    <ul class="marks small muted">
      <li class="toolbar"><span class="wrong"><${Icon} name="close" /></span>${t("fleet.outcome.failed")}</li>
      <li class="toolbar"><span class="doubtful"><${Icon} name="ring" /></span>${t("fleet.outcome.requeued")}</li>
    </ul>
  </section>`;
}

/** @param {{job: import("./measures.js").JobWork}} props */
function Entry({ job: { key, lastAt } }) {
  const isStrong = (legendJob.value ?? choice.value?.key) === key;
  const on = () => {
    legendJob.value = key;
  };
  const off = () => {
    if (legendJob.value === key) legendJob.value = null;
  };
  useEffect(() => off, [key]);
  const classes = ["button quiet entry", isStrong && "strong", lastAt === Infinity && "running"]
    .filter(Boolean)
    .join(" ");
  const props = { class: classes, onPointerEnter: on, onPointerLeave: off, onFocus: on, onBlur: off };
  const content = html`<${Swatch} colour=${colours.of(key)} /><span class="job-name one-line" dir="auto">${nameOf(key)}</span>`;
  // The blocks of direct requests and of deleted jobs can stand out as well.
  if (!hasScreen(key)) return html`<button type="button" ...${props}>${content}</button>`;
  return html`<a href=${`#/jobs/${key}`} ...${props}>${content}</a>`;
}
