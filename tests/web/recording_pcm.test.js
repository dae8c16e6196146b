import assert from "node:assert/strict";
import { test } from "node:test";

/** What a worklet of a browser finds. @type {any} */
const scope = globalThis;

/**
 * The samples that the page sends of a tone.
 * @param {number} rate Of the microphone, Hz.
 * @param {number} pitch Hz
 */
async function sent(rate, pitch) {
  /** @type {number[]} */
  const samples = [];
  let Pcm = /** @type {any} */ (null);
  scope.sampleRate = rate;
  scope.AudioWorkletProcessor = class {
    port = { postMessage: (/** @type {ArrayBuffer} */ part) => samples.push(...new Int16Array(part)) };
  };
  scope.registerProcessor = (/** @type {string} */ _, /** @type {any} */ made) => {
    Pcm = made;
  };
  await import(`../../app/web/list/pcm_worklet.js?${rate} ${pitch}`);
  const worklet = new Pcm();
  for (let first = 0; first < rate; first += 128) {
    worklet.process([[Float32Array.from({ length: 128 }, (_, i) => tone(pitch, (first + i) / rate))]]);
  }
  return samples;
}

/** @param {number} pitch @param {number} time */
const tone = (pitch, time) => 0.5 * Math.sin(2 * Math.PI * pitch * time);

for (const rate of [16_000, 44_100, 48_000]) {
  test(`a voice stays what it is, from ${rate} Hz`, async () => {
    const samples = await sent(rate, 1000);
    assert.ok(samples.length >= 21_600);
    // The filter hears behind a sample, so all of them come late by as much, and by less than a part.
    const best = [...Array(400).keys()].map((delay) =>
      Math.max(
        ...samples
          .slice(2400, 4800)
          .map((s, i) => Math.abs(s / 32_767 - tone(1000, (2400 + i - delay / 8) / 24_000))),
      ),
    );
    assert.ok(Math.min(...best) < 0.03, `${Math.min(...best)}`);
  });
}

test("what 24 kHz cannot have does not come back as another tone", async () => {
  const samples = await sent(48_000, 15_000);
  assert.ok(Math.max(...samples.slice(2400).map(Math.abs)) < 100);
});
