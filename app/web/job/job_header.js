/** Name, state, downloads and revisions of a job. */

import { clock } from "../core/format.js";
import { Icon } from "../core/icons.js";
import { Menu } from "../core/menu.js";
import { go, listHash } from "../core/router.js";
import { errorText, t } from "../core/text.js";
import { removeJobs } from "../list/deletions.js";
import { html, useState } from "../vendor/ui.js";
import { CopyMenu, DownloadMenu } from "./exports_menu.js";
import { contentFacts, JobProgress, StatusBadge, timeFacts } from "./job_facts.js";
import { RevisionsDialog } from "./revisions.js";
import { isActive, nameOf } from "./types.js";

/** @typedef {import("./types.js").Job} Job */
/** @typedef {import("./session.js").Session} Session */
/** @typedef {import("./playback.js").Playback} Playback */

/** @param {{session: Session, playback: Playback}} props */
export function JobHeader({ session, playback }) {
  const job = session.job.value;
  if (!job) return null;
  return html`<header class="job-header">
    <a class="job-back small" href=${listHash.value}><${Icon} name="back" />${t("job.all")}</a>
    <div class="toolbar job-title">
      <h1 dir="auto">${nameOf(job)}</h1>
      <${Actions} job=${job} session=${session} />
    </div>
    <p class="job-facts small muted numbers">
      <${StatusBadge} job=${job} />
      <span>${[...timeFacts(job), ...contentFacts(job), job.model === "demo" ? t("header.demo") : job.model].join(" · ")}</span>
    </p>
    ${
      isActive(job) &&
      html`<div class="job-header-progress small muted"><${JobProgress} job=${job} />
        <span role="status">${!session.connected.value && t("error.unreachable")}</span></div>`
    }
    <${Notices} job=${job} playback=${playback} />
  </header>`;
}

/** @param {{job: Job, session: Session}} props */
function Actions({ job, session }) {
  const [isOpen, setOpen] = useState(false);
  const remove = () => {
    removeJobs([job]);
    go(listHash.value);
  };
  if (isActive(job)) {
    return html`<div class="toolbar"><button class="button" onClick=${remove}>
      <${Icon} name="stop" />${t("history.cancelJob")}
    </button></div>`;
  }
  const isDone = job.status === "succeeded";
  const more = [{ label: t("history.delete"), icon: "trash", danger: true, run: remove }];
  return html`<div class="toolbar">
    ${
      isDone &&
      html`
      <button class="button quiet" aria-label=${t("revisions.open")} onClick=${() => setOpen(true)}>
        <${Icon} name="history" /><span>${t("revisions.open")}</span>
      </button>
      <${CopyMenu} job=${job} unsaved=${session} />
      <${DownloadMenu} job=${job} unsaved=${session} />`
    }
    <${Menu} label=${t("header.more")} icon="more" iconOnly items=${more} />
    ${isOpen && html`<${RevisionsDialog} job=${job} session=${session} onClose=${() => setOpen(false)} />`}
  </div>`;
}

/** @param {{job: Job, playback: Playback}} props */
function Notices({ job, playback }) {
  if (job.status === "failed") {
    return html`<div class="notice danger" role="alert">
      <strong>${t("header.failed")}</strong>${" "}<span dir="auto">${job.error && errorText(job.error)}</span>
    </div>`;
  }
  if (!job.failed_spans.length) return null;
  return html`<div class="notice warning">
    <p>${t("header.partial")}</p>
    <p class="toolbar numbers">
      ${job.failed_spans.map(
        ({ start, end }) => html`<button class="button quiet" onClick=${() => playback.seek(start)}>
          ${clock(start)} – ${clock(end)}
        </button>`,
      )}
    </p>
  </div>`;
}
