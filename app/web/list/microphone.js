/** Records from the microphone. The recording becomes an upload when it stops. */

import { t } from "../core/text.js";
import { toast } from "../core/toasts.js";
import { signal } from "../vendor/ui.js";
import { addFiles } from "./upload_store.js";

const TYPES = [
  { type: "audio/webm;codecs=opus", extension: "webm" },
  { type: "audio/ogg;codecs=opus", extension: "ogg" },
  { type: "audio/mp4", extension: "m4a" },
];
const PART_MS = 1000;

/**
 * @typedef {object} Session A recording that runs.
 * @property {number} startedAt Unix time, ms
 * @property {() => number} level 0 to 1
 * @property {(isWanted: boolean) => void} end
 */

/** @type {import("../vendor/ui.js").Signal<Session | null>} */
export const session = signal(null);
/** Why there is no recording, for the user. */
export const problem = signal("");
export const isStarting = signal(false);

/** Browsers give the microphone to secure contexts only: HTTPS, or this machine itself. */
export const isAvailable = isSecureContext && "mediaDevices" in navigator && "MediaRecorder" in globalThis;

export async function startRecording() {
  if (session.value || isStarting.value) return;
  isStarting.value = true;
  problem.value = "";
  try {
    // The filters of browsers are made for calls: they cut speech of people who are farther away.
    const audio = { echoCancellation: false, noiseSuppression: false, autoGainControl: true };
    const stream = await navigator.mediaDevices.getUserMedia({ audio });
    try {
      record(stream);
    } catch (error) {
      release(stream);
      throw error;
    }
  } catch (error) {
    problem.value = explain(error);
  } finally {
    isStarting.value = false;
  }
}

/** @param {MediaStream} stream */
function record(stream) {
  const format = TYPES.find(({ type }) => MediaRecorder.isTypeSupported(type));
  const recorder = new MediaRecorder(stream, { mimeType: format?.type });
  const startedAt = Date.now();
  const meter = levelOf(stream);
  /** @type {Blob[]} */
  const parts = [];
  let isWanted = true;
  recorder.ondataavailable = ({ data }) => void parts.push(data);
  recorder.onstop = () => {
    release(stream);
    meter.close();
    session.value = null;
    removeEventListener("beforeunload", askBeforeLeaving);
    const name = `${t("microphone.name", { time: stamp(new Date(startedAt)) })}.${format?.extension ?? "webm"}`;
    finish(
      new File(parts, name, { type: recorder.mimeType.split(";")[0], lastModified: startedAt }),
      isWanted,
    );
  };
  recorder.start(PART_MS);
  addEventListener("beforeunload", askBeforeLeaving);
  session.value = {
    startedAt,
    level: meter.level,
    end: (isToBeKept) => {
      isWanted = isToBeKept;
      if (recorder.state !== "inactive") recorder.stop();
    },
  };
}

/** @param {MediaStream} stream */
function release(stream) {
  for (const track of stream.getTracks()) track.stop();
}

/**
 * @param {File} file
 * @param {boolean} isWanted
 */
function finish(file, isWanted) {
  if (!file.size) return;
  const add = () => void addFiles([file], { isRecorded: true });
  if (isWanted) add();
  else toast(t("microphone.discarded"), { action: { label: t("microphone.keep"), run: add } });
}

/** `2026-11-22 14.05`: systems forbid colons in names. @param {Date} date */
function stamp(date) {
  const two = (/** @type {number} */ number) => String(number).padStart(2, "0");
  const day = [date.getFullYear(), two(date.getMonth() + 1), two(date.getDate())].join("-");
  return `${day} ${two(date.getHours())}.${two(date.getMinutes())}`;
}

/** @param {unknown} error */
function explain(error) {
  const name = error instanceof Error ? error.name : "";
  if (name === "NotAllowedError" || name === "SecurityError") return t("microphone.refused");
  if (name === "NotFoundError" || name === "OverconstrainedError") return t("microphone.missing");
  return t("microphone.failed");
}

/** @param {BeforeUnloadEvent} event */
function askBeforeLeaving(event) {
  event.preventDefault();
}

const QUIETEST_DB = -60;

/**
 * @param {MediaStream} stream
 * @returns {{level: () => number, close: () => void}} `level` is 0 to 1, in steps that sound equal.
 */
export function levelOf(stream) {
  const context = new AudioContext();
  const analyser = context.createAnalyser();
  const samples = new Float32Array(analyser.fftSize);
  context.createMediaStreamSource(stream).connect(analyser);
  return {
    level: () => {
      analyser.getFloatTimeDomainData(samples);
      const power = samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length;
      const decibels = 10 * Math.log10(power || 1e-10);
      return Math.min(1, Math.max(0, 1 - decibels / QUIETEST_DB));
    },
    close: () => void context.close(),
  };
}
