/** What rows and headers say about a job: state, progress and facts. */

import { clock, day, shortDateTime } from "../core/format.js";
import { isOperator, me } from "../core/me.js";
import { language, percent, t } from "../core/text.js";
import { nextEstimate, roughly, secondsLeft } from "../core/time_left.js";
import { html, useRef } from "../vendor/ui.js";
import { isRecorded } from "./types.js";

/** @typedef {import("./types.js").Job} Job */

const NAMES_SHOWN = 3;
/** The bar of a running job: how much of it is done, and how long the rest takes. @param {{job: Job}} props */
export function JobProgress({ job }) {
  if (isRecorded(job)) return [t("stage.recording"), clock(job.progress.total_s ?? 0)].join(" · ");
  return html`<${Transcribing} job=${job} />`;
}

/** @param {{job: Job}} props */
function Transcribing({ job }) {
  const { progress } = job;
  const left = useTimeLeft(job);
  const furthest = useRef(0); // the length may turn out to be larger: the bar does not go back
  if (progress.total_s) furthest.current = Math.max(furthest.current, progress.done_s / progress.total_s);
  const part = progress.total_s ? Math.min(1, furthest.current) : undefined;
  const texts = [part === undefined ? t(`stage.${stageOf(job)}`) : percent(part)];
  if (part === undefined && progress.done_s)
    texts.push(t("progress.soFar", { time: clock(progress.done_s) }));
  if (left !== null) texts.push(t("progress.left", { time: timeText(left) }));
  return html`<span class="job-progress numbers">
    <progress class="progress" max="1" value=${part} aria-label=${t("progress.label")}></progress>
    <span>${texts.join(" · ")}</span>
  </span>`;
}

/** @param {Job} job */
function stageOf({ progress: { stage } }) {
  return stage === "queued" || stage === "downloading" ? stage : "transcribing";
}

/**
 * Seconds that change smoothly from answer to answer.
 * @param {Job} job
 */
function useTimeLeft({ progress }) {
  /** @type {{progress: unknown, estimate: import("../core/time_left.js").Estimate | null}} */
  const nothing = { progress: null, estimate: null };
  const known = useRef(nothing);
  if (known.current.progress !== progress) {
    const left = secondsLeft(progress);
    const estimate =
      left === null ? null : nextEstimate(known.current.estimate, left, performance.now() / 1000);
    known.current = { progress, estimate };
  }
  return known.current.estimate?.left ?? null;
}

/** @param {number} seconds */
function timeText(seconds) {
  const { unit, ...values } = roughly(seconds);
  return t(`time.${unit}`, values);
}

/** Its length and languages, and who speaks. Empty: what is not known. @param {Job} job */
export function contentFacts({ duration, progress, language: code, languages, speakers }) {
  const length = duration ?? progress.total_s;
  const parts = Object.entries(languages ?? {});
  const several = namesOf(parts.map(([name, part]) => `${languageName(name)} ${percent(part)}`));
  const spoken = several || (code ? languageName(code) : "");
  return [length ? clock(length) : "", spoken, namesOf(speakers ?? [])];
}

/** A model in a folder of the service by the folder's name alone. @param {string | null | undefined} model */
export function modelName(model) {
  return model && /^([/~.]|[A-Z]:)/i.test(model) ? model.split(/[/\\]/).findLast(Boolean) : model;
}

/** When it was added, when what of it is deleted, and whose it is if it is somebody else's. @param {Job} job */
export function timeFacts({ created_at, expires_at, audio_expires_at, owner }) {
  const until = expires_at ?? audio_expires_at;
  const text = until && t(expires_at ? "job.until" : "job.audioUntil", { time: day(until, language.value) });
  const whose = isOperator.value && owner && owner !== me.value?.owner && t("job.owner", { owner });
  return [shortDateTime(created_at, language.value), ...(text ? [text] : []), ...(whose ? [whose] : [])];
}

/** @param {string[]} names */
function namesOf(names) {
  const others = names.length - NAMES_SHOWN;
  return [...names.slice(0, NAMES_SHOWN), ...(others > 0 ? [`+${others}`] : [])].join(", ");
}

/** @param {string} code */
export function languageName(code) {
  try {
    return new Intl.DisplayNames([language.value], { type: "language" }).of(code) ?? code;
  } catch {
    return code; // Whisper's codes are not all of those that browsers know
  }
}
