/** What rows and headers say about a job: state, progress and facts. */

import { clock, shortDateTime } from "../core/format.js";
import { language, t } from "../core/text.js";
import { nextEstimate, roughly, secondsLeft } from "../core/time_left.js";
import { html, useRef } from "../vendor/ui.js";

/** @typedef {import("./types.js").Job} Job */

const LOOKS = { queued: "", running: "accent", succeeded: "success", failed: "danger", cancelled: "" };
const STAGES = ["queued", "downloading", "decoding", "transcribing", "done"];

/** @param {{job: Job}} props */
export function StatusBadge({ job }) {
  return html`<span class=${`badge ${LOOKS[job.status]}`} data-status=${job.status}>${t(`status.${job.status}`)}</span>`;
}

/** The bar of a running job, with its stage, speed and time left. @param {{job: Job}} props */
export function JobProgress({ job }) {
  const { progress } = job;
  const left = useTimeLeft(job);
  const texts = [t(/** @type {import("../core/text.js").TextKey} */ (`stage.${stageOf(job)}`))];
  if (progress.realtime_factor)
    texts.push(t("progress.speed", { speed: speedText(progress.realtime_factor) }));
  if (left !== null) texts.push(t("progress.left", { time: timeText(left) }));
  const value = progress.total_s ? Math.min(1, progress.done_s / progress.total_s) : undefined;
  return html`<span class="job-progress numbers">
    <progress class="progress" max="1" value=${value} aria-label=${t("progress.label")}></progress>
    <span>${texts.join(" · ")}</span>
  </span>`;
}

/** @param {Job} job */
function stageOf({ progress }) {
  return STAGES.includes(progress.stage) ? progress.stage : "transcribing";
}

/**
 * Seconds that change smoothly from answer to answer.
 * @param {Job} job
 */
function useTimeLeft({ progress }) {
  const known = useRef(
    /** @type {{progress: unknown, estimate: import("../core/time_left.js").Estimate | null}} */ ({
      progress: null,
      estimate: null,
    }),
  );
  if (known.current.progress !== progress) {
    const left = secondsLeft(progress);
    const estimate =
      left === null ? null : nextEstimate(known.current.estimate, left, performance.now() / 1000);
    known.current = { progress, estimate };
  }
  return known.current.estimate?.left ?? null;
}

/** @param {number} factor */
function speedText(factor) {
  const options = { maximumFractionDigits: factor < 10 ? 1 : 0 };
  return new Intl.NumberFormat(language.value, options).format(factor);
}

/** @param {number} seconds */
function timeText(seconds) {
  const { unit, ...values } = roughly(seconds);
  return t(`time.${unit}`, values);
}

/** When it was submitted, its length and its language, and when what of it is deleted. @param {Job} job */
export function factsOf(job) {
  const facts = [shortDateTime(job.created_at, language.value)];
  if (job.duration) facts.push(clock(job.duration));
  if (job.language) facts.push(languageName(job.language));
  const until = job.expires_at ?? job.audio_expires_at;
  if (until)
    facts.push(
      t(job.expires_at ? "job.until" : "job.audioUntil", { time: shortDateTime(until, language.value) }),
    );
  return facts;
}

/** @param {string} code */
function languageName(code) {
  try {
    return new Intl.DisplayNames([language.value], { type: "language" }).of(code) ?? code;
  } catch {
    return code; // Whisper's codes are not all of those that browsers know
  }
}
