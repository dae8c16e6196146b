/** The peaks that the waveform draws, as the service finds them: the browser never decodes a recording. */

import { requestJson } from "../core/api.js";

/** @typedef {{points: number, duration: number, channels: Float32Array[]}} Peaks Duration in seconds. */

/**
 * @param {string} jobId
 * @param {number} points
 * @param {AbortSignal} signal
 * @returns {Promise<Peaks>} The highest samples as one channel, and the lowest as another: upper and lower half.
 */
export async function fetchPeaks(jobId, points, signal) {
  const { duration, min, max } = await requestJson(`/v1/jobs/${jobId}/peaks?points=${points}`, { signal });
  return { points, duration, channels: [Float32Array.from(max), Float32Array.from(min)] };
}
