/** The waveform of a job: fetched when the service has it, drawn, zoomed and scrolled. */

import { ApiError, requestJson } from "../core/api.js";
import { computed, effect, signal } from "../vendor/ui.js";
import { isActive, isUndecodable } from "./types.js";
import { heightsOf, pointsFor, within, zoomed } from "./waveform_levels.js";

/** @typedef {import("./types.js").Session} Session */
/** @typedef {import("./playback.js").Playback} Playback */
/** @typedef {"loading" | "waiting" | "ready" | "missing"} WaveState */
/** @typedef {{points: number, duration: number, heights: Float32Array}} Wave Duration in seconds. */

const ASK_AGAIN_MS = 2000;
const REFINE_MS = 300; // after a step of the zoom
const ZOOM_STEP = 2;
const AROUND_S = 6; // in sight beside what is edited
const JUMP_S = 1; // more than that, and the reader has gone elsewhere

/**
 * @typedef {object} Waveform
 * @property {import("../vendor/ui.js").Signal<WaveState>} state
 * @property {import("../vendor/ui.js").Signal<Wave | null>} wave
 * @property {import("../vendor/ui.js").ReadonlySignal<import("./waveform_levels.js").View>} view
 * @property {import("../vendor/ui.js").ReadonlySignal<number>} done How far the transcript goes, in seconds.
 * @property {(steps: number, x?: number) => void} zoom In, or out if negative. The place at `x` stays where it is.
 * @property {(pixels: number) => boolean} scroll Returns false if all of the recording fits.
 * @property {(x: number) => number} timeAt Seconds, at pixels from the waveform's left edge.
 * @property {(element: HTMLElement) => () => void} show Returns what ends it.
 */

/**
 * @param {Session} session
 * @param {Playback} playback
 * @returns {Waveform}
 */
export function createWaveform(session, playback) {
  /** @type {Waveform["state"]} */
  const state = signal("loading");
  /** @type {Waveform["wave"]} */
  const wave = signal(null);
  const width = signal(0);
  const chosen = signal({ scale: 0, left: 0 });
  const duration = computed(() => wave.value?.duration ?? playback.duration.value);
  const view = computed(() => {
    const fitting = duration.value ? width.value / duration.value : 0;
    const { scale, left } = chosen.value;
    return within({ scale: Math.max(scale, fitting), left, width: width.value }, duration.value);
  });
  const done = computed(() => {
    const job = session.job.value;
    if (!job || !isActive(job)) return Infinity;
    return Math.max(job.progress.done_s, session.segments.value.at(-1)?.end ?? 0);
  });
  const timeAt = (/** @type {number} */ x) => (view.peek().left + x) / view.peek().scale;

  /** What the reader zooms in to, if the pointer does not say it. */
  function interest() {
    const shown = playback.region.peek();
    return shown ? (shown.start + shown.end) / 2 : playback.time.peek();
  }

  /** @type {Waveform["zoom"]} */
  function zoom(steps, x) {
    const time = x === undefined ? interest() : timeAt(x);
    const scale = zoomed(view.peek().scale, ZOOM_STEP ** steps, {
      width: width.peek(),
      duration: duration.peek(),
    });
    chosen.value = { scale, left: time * scale - (x ?? width.peek() / 2) };
  }

  /** @type {Waveform["scroll"]} */
  function scroll(pixels) {
    const { scale, left } = view.peek();
    if (scale * duration.peek() <= width.peek() + 1) return false;
    chosen.value = { scale, left: within({ ...view.peek(), left: left + pixels }, duration.peek()).left };
    return true;
  }

  /** @param {number} from @param {number} to seconds */
  function isInSight(from, to) {
    const { scale, left } = view.peek();
    return from * scale >= left && to * scale <= left + width.peek();
  }

  /** Scroll along with what plays, unless the reader has scrolled away from it; and to what is edited. */
  function follow() {
    let last = playback.time.peek();
    /** The region that was brought into sight. @type {string | undefined} */
    let shown;
    let isClose = false; // for a region
    const stops = [
      effect(() => {
        const time = playback.time.value;
        const wasFollowing = isInSight(last, last) || Math.abs(time - last) > JUMP_S;
        last = time;
        if (wasFollowing && !isInSight(time, time))
          chosen.value = { ...chosen.peek(), left: time * view.peek().scale - width.peek() / 10 };
      }),
      effect(() => {
        const region = playback.region.value;
        const isNew = region?.key !== shown;
        shown = region?.key;
        if (!region && isClose) [isClose, chosen.value] = [false, { scale: 0, left: 0 }];
        if (!region || !isNew) return;
        const { scale } = view.peek();
        const isFar = scale * AROUND_S * 2 < width.peek();
        if (!isFar && isInSight(region.start, region.end)) return;
        isClose ||= isFar;
        const next = isFar ? width.peek() / (AROUND_S + region.end - region.start) : scale;
        chosen.value = { scale: next, left: ((region.start + region.end) / 2) * next - width.peek() / 2 };
      }),
    ];
    return () => stops.map((stop) => stop());
  }

  /** @type {Waveform["show"]} */
  function show(element) {
    const ending = new AbortController();
    const measure = () => {
      width.value = element.clientWidth;
    };
    const watching = new ResizeObserver(measure);
    watching.observe(element);
    measure();
    load(ending.signal);
    const stopFollowing = follow();
    return () => {
      ending.abort();
      watching.disconnect();
      stopFollowing();
    };
  }

  /** The first levels as soon as the recording is decoded, and finer ones for what is zoomed in. @param {AbortSignal} ended */
  async function load(ended) {
    const wanted = () => pointsFor(view.peek().scale * duration.peek() * devicePixelRatio);
    const first = await whenDecoded(session, wanted(), state, ended);
    if (!first || ended.aborted) return;
    playback.duration.value ||= first.duration;
    wave.value = first;
    state.value = "ready";
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    let timer;
    const refine = async () => {
      const points = wanted();
      if (points <= (wave.peek()?.points ?? 0)) return;
      // The coarse ones stay if there are no finer ones.
      wave.value = await fetchWave(session.id, points, ended).catch(() => wave.peek());
    };
    const stop = effect(() => {
      void view.value;
      clearTimeout(timer);
      timer = setTimeout(refine, REFINE_MS);
    });
    ended.addEventListener("abort", () => {
      stop();
      clearTimeout(timer);
    });
  }

  return { state, wave, view, done, zoom, scroll, timeAt, show };
}

/**
 * The service finds the levels: the browser never decodes a recording.
 * @param {string} jobId
 * @param {number} points
 * @param {AbortSignal} signal
 * @returns {Promise<Wave>}
 */
async function fetchWave(jobId, points, signal) {
  const { duration, rms } = await requestJson(`/v1/jobs/${jobId}/peaks?points=${points}`, { signal });
  return { points, duration, heights: heightsOf(rms) };
}

/**
 * The first levels, as soon as the recording is decoded. null: there are none.
 * @param {Session} session
 * @param {number} points
 * @param {Waveform["state"]} state
 * @param {AbortSignal} ended
 */
async function whenDecoded({ id, job }, points, state, ended) {
  if (!isDecoded(job.value)) state.value = "waiting";
  await new Promise((resolve) => {
    const stop = effect(() => {
      if (isDecoded(job.value)) resolve(undefined);
    });
    ended.addEventListener("abort", stop);
  });
  if (job.value && isUndecodable(job.value)) {
    state.value = "missing";
    return null;
  }
  while (!ended.aborted) {
    try {
      return await fetchWave(id, points, ended);
    } catch (error) {
      if (ended.aborted) return null;
      const isLasting = !(error instanceof ApiError) || [400, 401, 404, 413].includes(error.status);
      if (isLasting || (error.status === 409 && error.code !== "audio_not_decoded")) {
        state.value = "missing";
        return null;
      }
      state.value = "waiting";
      await new Promise((resolve) => setTimeout(resolve, (error.retryAfter ?? 0) * 1000 || ASK_AGAIN_MS));
    }
  }
  return null;
}

/** Whether the recording is decoded, or will never be. @param {import("./types.js").Job | null} job */
function isDecoded(job) {
  return job !== null && (!isActive(job) || job.audio_tracks !== null);
}
