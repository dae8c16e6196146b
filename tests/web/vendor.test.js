/** The bundles of `make vendor`: what they export, and which HTML they let pass. */

import assert from "node:assert/strict";
import test from "node:test";
import { computed, html, signal } from "../../app/web/vendor/ui.js";

test("templates become elements, and text in them stays text", () => {
  const text = "<img src=x onerror=alert(1)>";
  const element = html`<p class="note">${text}</p>`;
  assert.equal(element.type, "p");
  assert.deepEqual(element.props, { class: "note", children: text });
});

test("signals", () => {
  const count = signal(1);
  const double = computed(() => 2 * count.value);
  count.value = 4;
  assert.equal(double.value, 8);
});

test("the default policy passes the frame of a waveform, and no other HTML", async () => {
  /** @type {Map<string, {createHTML: (text: string) => string | null}>} */
  const policies = new Map();
  Object.assign(globalThis, {
    trustedTypes: { createPolicy: policies.set.bind(policies) },
  });
  const { RegionsPlugin, WaveSurfer } = await import("../../app/web/vendor/wavesurfer.js");
  assert.equal(typeof WaveSurfer.create, "function");
  assert.equal(typeof RegionsPlugin.create, "function");
  const pass = policies.get("default")?.createHTML;
  assert.ok(pass);
  const frame = '<style nonce="a-B_9">:host .x > div { top: 0 }</style><div class="x" part="x y"></div>';
  assert.equal(pass(frame), frame);
  assert.equal(pass(""), "");
  for (const text of [
    "<img src=x onerror=alert(1)>",
    '<div class="x" onclick="alert(1)">',
    "<div onclick=alert(1)>",
    "<script>alert(1)</script>",
    "<style\nonload=alert(1)>",
    "<svg/onload=alert(1)>",
    "<<div>script>alert(1)</script>",
    "<!-- -->",
  ]) {
    assert.equal(pass(text), null, text);
  }
});
