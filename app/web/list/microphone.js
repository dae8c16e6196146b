/** Records the microphone, or a tab with it, as a live stream: its job has the text while somebody speaks. */

import { go, route } from "../core/router.js";
import { address } from "../core/service.js";
import { load } from "../core/storage.js";
import { t } from "../core/text.js";
import { toast } from "../core/toasts.js";
import { heard, live } from "../job/spoken.js";
import { signal } from "../vendor/ui.js";
import { openStream, STORED } from "./live_stream.js";
import { chosenOptions } from "./options.js";
import { soundStorage } from "./upload_storage.js";

/** @typedef {import("./live_stream.js").StoredStream} StoredStream */
/** @typedef {import("./live_stream.js").Unsent} Unsent */

/**
 * @typedef {object} Recording One that runs.
 * @property {import("../vendor/ui.js").Signal<string>} job Its id; empty: it is not known yet.
 * @property {import("../vendor/ui.js").Signal<"running" | "paused" | "ending">} state `ending`: the service does not have all of it.
 * @property {import("../vendor/ui.js").Signal<string>} trouble Why nothing is sent; empty: all is well.
 * @property {import("../vendor/ui.js").Signal<{seconds: number, level: number}>} meter `level`: 0 to 1
 * @property {() => void} toggle Pause, or go on.
 * @property {() => void} stop
 */

/** @type {import("../vendor/ui.js").Signal<Recording | null>} */
export const recording = signal(null);
/** Why there is no recording, for the user. */
export const problem = signal("");
export const isStarting = signal(false);

/** Browsers give the microphone to secure contexts only: HTTPS, or this machine itself. */
export const isAvailable =
  isSecureContext && "mediaDevices" in navigator && "AudioWorkletNode" in globalThis && "locks" in navigator;
/** Only browsers that have this can give the sound of a tab. */
export const hasTabSound =
  isAvailable && "suppressLocalAudioPlayback" in navigator.mediaDevices.getSupportedConstraints();
/** Of the microphone: `prompt`, `granted` or `denied`. */
export const permission = signal("");
const asked = isAvailable ? watchPermission() : null;

async function watchPermission() {
  try {
    const status = await navigator.permissions.query({ name: /** @type {PermissionName} */ ("microphone") });
    status.onchange = () => (permission.value = status.state);
    permission.value = status.state;
  } catch {
    // This browser says so only when it is asked for the microphone.
  }
}

/** @param {boolean} withTab With the sound of a tab, which the user chooses. */
export async function startRecording(withTab) {
  if (recording.value || isStarting.value) return;
  isStarting.value = true;
  problem.value = "";
  try {
    const sound = await openSound(withTab);
    const release = await claim();
    if (release)
      return begin({ ...NEW, query: queryOfJob(), withTab }, { first: 0, parts: [] }, sound, release);
    sound.close();
    problem.value = t("microphone.elsewhere");
  } catch (error) {
    problem.value = explain(error);
  } finally {
    isStarting.value = false;
  }
}

/** Go on with a recording whose page was closed, unless another tab records. */
export async function restoreRecording() {
  await asked;
  const stored = isAvailable ? load(STORED, null) : null;
  const release = stored && (await claim());
  if (release) begin(stored, await soundStorage.all(), null, release);
}

const NEW = { session: "", lastEvent: "", job: "", startsAt: 0, isEnding: false };

/** The job's options. Such a recording has no name of its own. */
function queryOfJob() {
  // `2026-11-22 14.05`: systems forbid colons in names.
  const time = new Date().toLocaleString("sv").slice(0, 16).replace(":", ".");
  const name = t("microphone.name", { time });
  const fields = { job: true, title_from_text: true, filename: `${name}.wav`, ...chosenOptions() };
  return new URLSearchParams(Object.entries(fields).map(([key, value]) => [key, String(value)])).toString();
}

/** One tab of the browser records. @returns {Promise<(() => void) | null>} Ends that; null: another one does. */
function claim() {
  return new Promise((resolve) => {
    const hold = (/** @type {Lock | null} */ lock) =>
      lock ? new Promise((/** @type {(value?: unknown) => void} */ end) => resolve(end)) : resolve(null);
    void navigator.locks.request(`recording to ${address("/")}`, { ifAvailable: true }, hold);
  });
}

/**
 * @param {StoredStream} stored
 * @param {Unsent} unsent
 * @param {Sound | null} opened null: it is opened once the service has the stream.
 * @param {() => void} release
 */
function begin(stored, unsent, opened, release) {
  let sound = opened;
  const meter = signal({ seconds: 0, level: 0 });
  const job = signal(stored.job);
  const state = signal(/** @type {Recording["state"]["value"]} */ (stored.isEnding ? "ending" : "paused"));
  let goesOn = !opened && !stored.isEnding && !stored.withTab && permission.peek() === "granted";
  live.value = { job: stored.job, turns: new Map() };

  /** @param {import("./live_stream.js").LiveEvent} event */
  function onEvent(event) {
    if (!event.job_id) return; // a refusal
    const { turns } = live.peek();
    live.value = { job: event.job_id, turns: event.job_id === job.peek() ? heard(turns, event) : new Map() };
    if (event.type !== "session.created") return;
    meter.value = { seconds: stream.seconds(), level: 0 };
    if (goesOn) void listen();
    goesOn = false;
    if (event.job_id === job.peek()) return;
    const before = job.peek();
    job.value = event.job_id;
    if (before) toast(t("microphone.another"));
    if (!before || (route.peek().screen === "job" && location.hash.includes(before)))
      go(`#/jobs/${event.job_id}`);
  }

  /** @param {Error | null} reason */
  function onEnd(reason) {
    sound?.close();
    removeEventListener("beforeunload", askBeforeLeaving);
    recording.value = null;
    release();
    if (!reason) return;
    if (job.peek()) toast(reason.message, { isError: true });
    else problem.value = reason.message;
  }

  async function listen() {
    problem.value = "";
    try {
      sound ??= await openSound(stored.withTab);
      sound.node.port.onmessage = ({ data }) => take(data);
      for (const track of sound.tracks) track.onended = () => pause(t("microphone.lost"));
      await sound.context.resume(); // without a click, some browsers wait for one
      if (state.peek() === "paused") state.value = "running";
    } catch (error) {
      toast(explain(error), { isError: true });
    }
  }

  /** @param {ArrayBuffer} part */
  function take(part) {
    if (state.peek() !== "running") return;
    const hasSpace = stream.append(new Uint8Array(part));
    meter.value = { seconds: stream.seconds(), level: levelOf(new Int16Array(part)) };
    if (!hasSpace) pause(t("microphone.full"));
  }

  /** @param {string} [reason] */
  function pause(reason) {
    if (reason) toast(reason, { isError: true });
    meter.value = { ...meter.peek(), level: 0 };
    if (state.peek() === "running") state.value = "paused";
    if (sound?.tracks.some(({ readyState }) => readyState === "ended")) sound = sound.close();
    else void sound?.context.suspend();
  }

  function stop() {
    pause();
    sound = sound?.close() ?? null;
    state.value = "ending";
    stream.finish();
  }

  const stream = openStream(stored, unsent, { onEvent, onEnd });
  addEventListener("beforeunload", askBeforeLeaving);
  recording.value = {
    job,
    state,
    trouble: stream.trouble,
    meter,
    toggle: () => (state.peek() === "running" ? pause() : void listen()),
    stop,
  };
  if (opened) void listen();
}

const QUIETEST_DB = -60;

/** 0 to 1, in steps that sound equal. @param {Int16Array} samples */
function levelOf(samples) {
  const power = samples.reduce((sum, sample) => sum + (sample / 32_768) ** 2, 0) / samples.length;
  const decibels = 10 * Math.log10(power || 1e-10);
  return Math.min(1, Math.max(0, 1 - decibels / QUIETEST_DB));
}

/** @typedef {Awaited<ReturnType<typeof openSound>>} Sound */

/** @param {boolean} withTab Then the microphone may be missing. */
async function openSound(withTab) {
  const context = new AudioContext();
  /** @type {MediaStreamTrack[]} */
  const tracks = [];
  const close = () => {
    for (const track of tracks) track.stop();
    void context.close();
    return null;
  };
  try {
    if (withTab) tracks.push(await tabSound());
    tracks.push(...(await microphone().catch((error) => (withTab ? [] : Promise.reject(error)))));
    await context.audioWorklet.addModule(address("/web/list/pcm_worklet.js"));
    const node = new AudioWorkletNode(context, "pcm", { channelCount: 1, channelCountMode: "explicit" });
    for (const track of tracks) context.createMediaStreamSource(new MediaStream([track])).connect(node);
    node.connect(context.destination); // else some browsers do not run it. It is silent
    return { context, node, tracks, close };
  } catch (error) {
    close();
    throw error;
  }
}

async function microphone() {
  // The filters of browsers are made for calls: they cut speech of people who are farther away.
  const audio = { echoCancellation: false, noiseSuppression: false, autoGainControl: true };
  return (await navigator.mediaDevices.getUserMedia({ audio })).getAudioTracks();
}

async function tabSound() {
  const options = { video: true, audio: true, selfBrowserSurface: "exclude" }; // browsers give no sound alone
  const shared = await navigator.mediaDevices.getDisplayMedia(options);
  const [track] = shared.getAudioTracks();
  for (const other of shared.getTracks()) if (other !== track) other.stop();
  if (!track) throw new Error(t("microphone.silentTab"));
  return track;
}

/** @param {unknown} error */
function explain(error) {
  const { name = "", message = "" } = error instanceof Error ? error : {};
  if (name === "Error") return message;
  if (name === "NotAllowedError" || name === "SecurityError") return t("microphone.refused");
  if (name === "NotFoundError" || name === "OverconstrainedError") return t("microphone.missing");
  return t("microphone.failed");
}

/** @param {BeforeUnloadEvent} event */
function askBeforeLeaving(event) {
  event.preventDefault();
}
