/** The waveform of a job: fetched when the service has it, coloured as far as the transcript goes. */

import { ApiError } from "../core/api.js";
import { theme } from "../shell/theme.js";
import { effect, signal } from "../vendor/ui.js";
import { isActive, isUndecodable } from "./types.js";
import { fetchPeaks } from "./waveform_peaks.js";
import { pointsFor } from "./waveform_scale.js";
import { createView } from "./waveform_view.js";

/** @typedef {import("./types.js").Session} Session */
/** @typedef {import("./playback.js").Playback} Playback */
/** @typedef {import("./waveform_view.js").WaveformView} WaveformView */
/** @typedef {"loading" | "waiting" | "ready" | "missing"} WaveState */

const ASK_AGAIN_MS = 2000;
const ZOOM_STEP = 2;

/**
 * @typedef {object} Waveform
 * @property {import("../vendor/ui.js").Signal<WaveState>} state
 * @property {(container: HTMLElement, media: HTMLMediaElement) => () => void} show
 * @property {(steps: number) => void} zoom In, or out if negative.
 */

/**
 * @param {Session} session
 * @param {Playback} playback
 * @returns {Waveform}
 */
export function createWaveform(session, playback) {
  /** @type {Waveform["state"]} */
  const state = signal("loading");
  /** @type {WaveformView | null} */
  let view = null;

  /** @param {HTMLElement} container @param {HTMLMediaElement} media */
  function show(container, media) {
    const ending = new AbortController();
    const { signal: ended } = ending;
    const pixels = container.clientWidth * devicePixelRatio;
    /** @type {(() => void)[]} */
    let stops = [];
    whenDecoded(session, pointsFor(pixels), state, ended).then((peaks) => {
      if (!peaks || ended.aborted) return;
      playback.duration.value ||= peaks.duration;
      view = createView(container, media, peaks, playback);
      state.value = "ready";
      stops = [...bind(view, session, playback), refine(view, container, session.id, peaks.points)];
    });
    return () => {
      ending.abort();
      for (const stop of stops) stop();
      view?.destroy();
      view = null;
    };
  }

  return { state, show, zoom: (steps) => view?.zoomBy(ZOOM_STEP ** steps) };
}

/**
 * The first peaks, as soon as the recording is decoded. null: there are none.
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
      return await fetchPeaks(id, points, ended);
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
  return job !== null && (!isActive(job) || job.progress.total_s !== null);
}

/**
 * Keep what is drawn equal to the signals.
 * @param {WaveformView} view
 * @param {Session} session
 * @param {Playback} playback
 */
function bind(view, session, playback) {
  const darkness = matchMedia("(prefers-color-scheme: dark)");
  darkness.addEventListener("change", view.updateColours);
  return [
    () => darkness.removeEventListener("change", view.updateColours),
    effect(() => view.marks.setSegments(session.segments.value)),
    effect(() => view.marks.setDone(doneOf(session))),
    effect(() => view.region.show(playback.region.value)),
    effect(() => {
      if (!playback.available.value) view.setCursor(playback.time.value);
    }),
    effect(() => {
      void theme.value;
      view.updateColours();
    }),
  ];
}

/**
 * How far the transcript goes, in seconds; null: to the end, or no further.
 * @param {Session} session
 */
function doneOf(session) {
  const job = session.job.value;
  if (!job || !isActive(job)) return null;
  return Math.max(job.progress.done_s, session.segments.value.at(-1)?.end ?? 0);
}

/**
 * Zoom and scroll with the wheel, and fetch finer peaks for what is zoomed in.
 * @param {WaveformView} view
 * @param {HTMLElement} container
 * @param {string} id
 * @param {number} points That are there already.
 * @returns {() => void} Stops it.
 */
function refine(view, container, id, points) {
  const ending = new AbortController();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;
  const fetchFiner = async () => {
    const wanted = pointsFor(view.pixels() * devicePixelRatio);
    if (wanted <= points) return;
    points = wanted;
    try {
      view.setPeaks(await fetchPeaks(id, wanted, ending.signal));
    } catch {
      points = 0; // the coarse ones stay; the next step of the zoom asks again
    }
  };
  /** @param {WheelEvent} event */
  const turn = (event) => {
    if (event.ctrlKey) view.zoomBy(Math.exp(-event.deltaY / 200), event.clientX);
    else if (!view.scrollBy(event.deltaX || event.deltaY)) return;
    event.preventDefault();
  };
  container.addEventListener("wheel", turn, { passive: false, signal: ending.signal });
  const watching = new ResizeObserver(() => {
    clearTimeout(timer);
    timer = setTimeout(fetchFiner, 300);
  });
  watching.observe(view.content);
  return () => {
    ending.abort();
    watching.disconnect();
    clearTimeout(timer);
  };
}
