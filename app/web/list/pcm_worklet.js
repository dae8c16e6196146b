/**
 * In the audio thread of a browser: sound of any rate becomes parts of 100 ms, as a live stream takes them: 16-bit PCM
 * of 24 kHz. Firefox does not convert the rate of a microphone itself.
 */

const { AudioWorkletProcessor, registerProcessor, sampleRate } = /** @type {any} */ (globalThis);

const RATE = 24_000; // Hz
const PART = 2400; // samples
const ZEROS = 16; // of the filter's sinc, on each side of its middle
const PHASES = 1024; // places between two samples

class PcmWorklet extends AudioWorkletProcessor {
  step = sampleRate / RATE; // in samples of the input, as all that follows
  cutoff = Math.min(1, 1 / this.step);
  reach = Math.ceil(ZEROS / this.cutoff);
  at = this.reach; // where the next sample is, in what is left of the input
  left = new Float32Array(2 * this.reach);
  /** The filter by phase. @type {Map<number, Float32Array>} */
  filters = new Map();
  part = new Int16Array(PART);
  filled = 0;

  /** @param {Float32Array[][]} inputs Of one channel. */
  process([[samples]]) {
    if (!samples) return true; // nothing is connected
    const input = new Float32Array(this.left.length + samples.length);
    input.set(this.left);
    input.set(samples, this.left.length);
    for (; this.at + this.reach < input.length; this.at += this.step) this.push(this.sampleAt(input));
    const past = Math.floor(this.at) - this.reach;
    this.at -= past;
    this.left = input.slice(past);
    return true;
  }

  /** @param {Float32Array} input */
  sampleAt(input) {
    const before = Math.floor(this.at);
    const filter = this.filterOf(Math.round((this.at - before) * PHASES));
    let [sum, first] = [0, before - this.reach + 1];
    for (const weight of filter) sum += weight * input[first++];
    return sum;
  }

  /** A windowed sinc, which lets pass what both rates can have. @param {number} phase */
  filterOf(phase) {
    const known = this.filters.get(phase);
    if (known) return known;
    const filter = Float32Array.from({ length: 2 * this.reach }, (_, index) => {
      const distance = index - this.reach + 1 - phase / PHASES;
      const angle = Math.PI * this.cutoff * distance;
      const window = Math.cos((Math.PI * distance) / (2 * this.reach)) ** 2;
      return this.cutoff * window * (angle ? Math.sin(angle) / angle : 1);
    });
    this.filters.set(phase, filter);
    return filter;
  }

  /** @param {number} sample -1 to 1 */
  push(sample) {
    this.part[this.filled++] = Math.round(32_767 * Math.min(1, Math.max(-1, sample)));
    if (this.filled < PART) return;
    this.port.postMessage(this.part.buffer, [this.part.buffer]);
    this.part = new Int16Array(PART);
    this.filled = 0;
  }
}

registerProcessor("pcm", PcmWorklet);
