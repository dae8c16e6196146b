/** How loud a microphone is. */

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
