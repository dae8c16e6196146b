/** Which file the media element plays: the recording, or a copy of its sound where the browser cannot play that. */

import { ApiError, request } from "../core/api.js";
import { linkTo, pathTo } from "../core/links.js";
import { t } from "../core/text.js";
import { signal } from "../vendor/ui.js";
import { hasArrived, isActive, isUndecodable } from "./types.js";

/**
 * @typedef {{kind: "opening"} | {kind: "preparing"} | {kind: "waiting"} | {kind: "ready"}
 *   | {kind: "failed", message: string, canRetry: boolean}} SourceState
 *   `preparing`: the service makes a copy. `waiting`: the service downloads the recording.
 */

/**
 * @typedef {object} MediaSource
 * @property {import("../vendor/ui.js").Signal<SourceState>} state
 * @property {() => void} open Try from the beginning.
 * @property {() => void} reconsider The job has changed: what the source waited for may be there.
 * @property {() => void} close
 */

const SURELY_HEARD_S = 1;

/** Codes of `MediaError`. */
const NETWORK = 2;

/**
 * @param {() => import("./types.js").Job} jobOf The job as it is now.
 * @param {HTMLVideoElement} element
 * @returns {MediaSource}
 */
export function createSource(jobOf, element) {
  const { id: jobId } = jobOf();
  const ending = new AbortController();
  /** @type {MediaSource["state"]} */
  const state = signal({ kind: "opening" });
  let isCopy = false;
  let isSecondTry = false;

  /** @param {boolean} [renew] */
  async function load(renew) {
    /** @type {Record<string, string>} */
    const query = isCopy ? { format: element.canPlayType('audio/ogg; codecs="opus"') ? "ogg" : "flac" } : {};
    if (isCopy) {
      state.value = { kind: "preparing" };
      await probe(pathTo(jobId, "audio", query), ending.signal);
    }
    const href = await linkTo(jobId, "audio", query, { renew });
    if (ending.signal.aborted) return;
    element.src = href;
  }

  /** @param {() => Promise<void>} step */
  function attempt(step) {
    step().catch((error) => {
      if (ending.signal.aborted) return;
      const isMissing = error instanceof ApiError && [404, 409].includes(error.status);
      state.value = isMissing && isDownloading(jobOf()) ? { kind: "waiting" } : failure(error);
    });
  }

  /** The media element says little about what went wrong. The service says it. */
  async function recover() {
    if (!element.error) return; // another source is being loaded already
    const { code } = element.error;
    const isRefused = await isLinkRefused(element.src, ending.signal);
    if (!isRefused) await probe(pathTo(jobId, "audio", {}), ending.signal);
    if ((isRefused || code === NETWORK) && !isSecondTry) {
      isSecondTry = true;
      return load(isRefused);
    }
    return playCopy();
  }

  async function playCopy() {
    if (isCopy || isUndecodable(jobOf())) throw new Error(t("player.unplayable"));
    [isCopy, isSecondTry] = [true, false];
    await load();
  }

  function open() {
    [isCopy, isSecondTry] = [false, false];
    if (hasArrived(jobOf())) {
      state.value = { kind: "opening" };
      attempt(load);
    } else if (isActive(jobOf())) state.value = { kind: "waiting" };
    else state.value = failure(new Error(t("player.missing")));
  }

  const options = { signal: ending.signal };
  element.addEventListener("timeupdate", () => !isCopy && isSilent(element) && attempt(playCopy), options);
  element.addEventListener("error", () => attempt(recover), options);
  element.addEventListener("playing", () => (isSecondTry = false), options);
  element.addEventListener(
    "loadedmetadata",
    () => {
      // A recording of a browser's microphone says no length, and cannot be sought in.
      if (!isCopy && !Number.isFinite(element.duration) && !element.videoWidth) attempt(playCopy);
      else state.value = { kind: "ready" };
    },
    options,
  );
  return {
    state,
    open,
    reconsider: () => {
      if (state.value.kind === "waiting" && !isDownloading(jobOf())) open();
    },
    close: () => {
      ending.abort();
      element.removeAttribute("src");
      element.load(); // ends the download
    },
  };
}

/** @param {import("./types.js").Job} job */
function isDownloading(job) {
  return Boolean(job.url) && ["queued", "downloading"].includes(job.progress.stage);
}

/**
 * Whether the browser plays a film without its sound: it knows the format of the pictures alone.
 * @param {HTMLVideoElement & {mozHasAudio?: boolean, webkitAudioDecodedByteCount?: number}} element
 */
function isSilent(element) {
  const { played } = element;
  const isPlayed = played.length > 0 && played.end(0) - played.start(0) > SURELY_HEARD_S;
  return isPlayed && (element.mozHasAudio === false || element.webkitAudioDecodedByteCount === 0);
}

/**
 * Wait until the service can send a sound. It may have to make it.
 * @param {string} path
 * @param {AbortSignal} signal
 */
async function probe(path, signal) {
  const response = await request(path, { headers: { Range: "bytes=0-0" }, signal, cache: "no-store" });
  await response.body?.cancel();
}

/**
 * Whether a link has expired, or was withdrawn.
 * @param {string} href
 * @param {AbortSignal} signal
 */
async function isLinkRefused(href, signal) {
  try {
    const response = await fetch(href, { headers: { Range: "bytes=0-0" }, signal, cache: "no-store" });
    await response.body?.cancel();
    return response.status === 403;
  } catch {
    return false; // the next request says that the service cannot be reached
  }
}

/**
 * @param {unknown} error
 * @returns {SourceState}
 */
function failure(error) {
  const message = error instanceof Error ? error.message : String(error);
  const isLasting = !(error instanceof ApiError) || [400, 404, 409, 410, 413].includes(error.status);
  return { kind: "failed", message, canRetry: !isLasting };
}
