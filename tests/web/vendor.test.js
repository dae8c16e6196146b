/** The bundles of `make vendor`: what they export. */

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
