/** One job in the list. */

import { IconButton } from "../core/controls.js";
import { clock } from "../core/format.js";
import { service } from "../core/service.js";
import { errorText, t } from "../core/text.js";
import { Tags } from "../job/details.js";
import { DownloadMenu } from "../job/exports.js";
import { placesOf } from "../job/find.js";
import { contentFacts, JobProgress, timeFacts } from "../job/job_facts.js";
import { isActive, nameOf } from "../job/types.js";
import { html } from "../vendor/ui.js";
import { removeJobs, restoreJobs } from "./deletions.js";
import { filter } from "./job_store.js";
import { select } from "./selection.js";

/** @typedef {import("../job/types.js").Job} Job */

/**
 * Drawn again only if the job or the selection changes: the props have no new functions.
 * @param {{job: Job, isSelected: boolean}} props
 */
export function JobRow({ job, isSelected }) {
  const name = nameOf(job);
  const [length, ...spoken] = contentFacts(job);
  const [added, ...kept] = timeFacts(job);
  const facts = [length, "", ...spoken, added, kept.join(" · ")]; // in columns of two
  /** @param {MouseEvent} event */
  const onSelect = (event) => select(job.id, event.shiftKey);
  /** @param {MouseEvent} event */
  const restore = (event) => {
    leaveRow(/** @type {HTMLElement} */ (event.currentTarget));
    restoreJobs([job]);
  };
  return html`<li class="job-row" data-job=${job.id} onKeyDown=${(/** @type {KeyboardEvent} */ event) => onKey(event, job)}>
    <label class="job-row-select">
      <input type="checkbox" checked=${isSelected} onClick=${onSelect} aria-label=${t("history.select", { name })} />
    </label>
    <div class="job-row-text" data-status=${job.status}>
      <a class="job-row-name one-line" href=${job.trashed_at ? undefined : `#/jobs/${job.id}`} title=${name} dir="auto">${name}</a>
      <${Situation} job=${job} />
      <${Tags} tags=${job.tags} />
    </div>
    <p class="job-row-facts small muted numbers">${facts.map((fact) => html`<span class="one-line" dir="auto">${fact}</span>`)}</p>
    <div class="job-row-actions">
      ${
        job.trashed_at
          ? html`<${RowButton} job=${job} icon="undo" label=${t("history.restore")} onClick=${restore} />`
          : job.status === "succeeded" && html`<${DownloadMenu} job=${job} iconOnly />`
      }
      <${RemoveButton} job=${job} />
    </div>
  </li>`;
}

/** What it says, or how far it is. @param {{job: Job}} props */
function Situation({ job }) {
  if (job.error) return html`<p class="small wrong" dir="auto">${errorText(job.error)}</p>`;
  if (job.matches?.length && !job.trashed_at) return html`<${Matches} job=${job} matches=${job.matches} />`;
  if (job.status === "succeeded") {
    const text = textBeyond(nameOf(job), job.excerpt ?? "");
    return text && html`<p class="small muted one-line" dir="auto">${text}</p>`;
  }
  return html`<p class="toolbar small muted">
    <span class=${job.status === "running" ? "badge accent" : "badge"}>${t(`status.${job.status}`)}</span>${job.status === "running" && html`<${JobProgress} job=${job} />`}
  </p>`;
}

/**
 * What a transcript begins with and its name does not say: a recording may be named by its first words.
 * @param {string} name
 * @param {string} text
 */
export function textBeyond(name, text) {
  const said = name.replace(/…$/, "");
  const rest = text.slice(said.length);
  const isSaid = text.startsWith(said) && !/^[\p{L}\p{N}]/u.test(rest);
  return isSaid ? rest.replace(/^[\s.,;:]+/, "") : text;
}

/** The sentences that the search has found: each opens the transcript there. @param {{job: Job, matches: import("../job/types.js").Match[]}} props */
function Matches({ job, matches }) {
  return html`<ul class="job-row-matches small" aria-label=${t("history.matches")}>
    ${matches.map(
      ({ text, start, segment }) => html`<li key=${segment}><a href=${`#/jobs/${job.id}?at=${segment}`}>
        <span class="muted numbers">${clock(start)}</span> <span dir="auto">${marked(text, filter.value.q)}</span>
      </a></li>`,
    )}
  </ul>`;
}

/** A text with marks where words begin that are searched. @param {string} text @param {string} query */
function marked(text, query) {
  const parts = [];
  let at = 0;
  for (const { start, end } of placesOf(text, query)) {
    if (start < at) continue;
    parts.push(text.slice(at, start), html`<mark>${text.slice(start, end)}</mark>`);
    at = end;
  }
  return [...parts, text.slice(at)];
}

const SECOND_CLICK_MS = 500;
const SAME_PLACE_PX = 8;

let clicked = { clientX: 0, clientY: 0, timeStamp: -Infinity };

/** The second half of a double click is not meant for the row that has slid below the pointer. @param {MouseEvent} event */
function isSecondClick(event) {
  const { clientX, clientY, timeStamp } = clicked;
  const isByPointer = event.detail > 0;
  const isNear = Math.hypot(event.clientX - clientX, event.clientY - clientY) < SAME_PLACE_PX;
  clicked = event;
  return isByPointer && isNear && event.timeStamp - timeStamp < SECOND_CLICK_MS;
}

/** @param {{job: Job}} props */
function RemoveButton({ job }) {
  const [icon, label] = isActive(job)
    ? ["stop", t("history.cancelJob")]
    : ["trash", t(job.trashed_at ? "history.forEver" : "history.delete")];
  /** @param {MouseEvent} event */
  const remove = (event) => {
    if (!isSecondClick(event)) removeRow(/** @type {HTMLElement} */ (event.currentTarget), job);
  };
  return html`<${RowButton} job=${job} icon=${icon} label=${label} onClick=${remove} />`;
}

/** @param {{job: Job, icon: import("../core/icons.js").IconName, label: string, onClick: (event: MouseEvent) => void}} props */
function RowButton({ job, icon, label, onClick }) {
  return html`<${IconButton} icon=${icon} label=${`${label}: ${nameOf(job)}`} title=${label} onClick=${onClick} />`;
}

/**
 * @param {KeyboardEvent} event
 * @param {Job} job
 */
function onKey(event, job) {
  const row = /** @type {HTMLElement} */ (event.currentTarget);
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Delete") removeRow(row, job);
  else if (event.key === "ArrowDown") focusRow(row.nextElementSibling);
  else if (event.key === "ArrowUp") focusRow(row.previousElementSibling);
  else return;
  event.preventDefault();
}

/**
 * @param {HTMLElement} element In the row.
 * @param {Job} job
 */
function removeRow(element, job) {
  if (service.trash && !job.trashed_at) leaveRow(element); // else the user is asked
  removeJobs([job]);
}

/** The focus goes to a neighbour: it would be lost with the row. @param {HTMLElement} element In the row. */
function leaveRow(element) {
  const row = element.closest(".job-row");
  if (row?.contains(document.activeElement)) {
    focusRow(row.nextElementSibling ?? row.previousElementSibling ?? document.getElementById("main"));
  }
}

/** @param {Element | null | undefined} row */
function focusRow(row) {
  const target = row?.querySelector(".job-row-name[href], .job-row-actions button") ?? row;
  if (target instanceof HTMLElement) target.focus();
}
