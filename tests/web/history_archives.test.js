import "./page.js";
import assert from "node:assert/strict";
import { test } from "node:test";
import { batchesOf } from "../../app/web/list/archives.js";

const ids = Array.from({ length: 2500 }, (_, index) => index.toString(16).padStart(32, "0"));

test("each archive has as many jobs as one address can name, in order", () => {
  const batches = batchesOf(ids);
  assert.deepEqual(batches.flat(), ids);
  for (const batch of batches) assert.ok(batch.join(",").length <= 6000);
  assert.ok(batches[0].concat(batches[1][0]).join(",").length + 1 > 6000);
});

test("an archive has no more jobs than the service allows", () => {
  const batches = batchesOf(ids, 1000, 1e6);
  assert.deepEqual(
    batches.map((batch) => batch.length),
    [1000, 1000, 500],
  );
});

test("no jobs need no archive, and an id longer than the limit is one of its own", () => {
  assert.deepEqual(batchesOf([]), []);
  assert.deepEqual(batchesOf(["a".repeat(9), "b"], 1000, 5), [["a".repeat(9)], ["b"]]);
});
