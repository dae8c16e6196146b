import "./page.js";
import assert from "node:assert/strict";
import { test } from "node:test";
import { afterClick, stillShown } from "../../app/web/list/selection.js";

const shown = ["a", "b", "c", "d", "e"];

test("a click selects a row, and another one does not", () => {
  const selected = afterClick(new Set(), shown, "b", null);
  assert.deepEqual([...selected], ["b"]);
  assert.deepEqual([...afterClick(selected, shown, "b", null)], []);
});

test("with Shift, all rows between both clicks get the state of the last one", () => {
  assert.deepEqual([...afterClick(new Set(["b"]), shown, "d", "b")].sort(), ["b", "c", "d"]);
  assert.deepEqual([...afterClick(new Set(["d"]), shown, "b", "d")].sort(), ["b", "c", "d"]);
  assert.deepEqual([...afterClick(new Set(shown), shown, "b", "d")].sort(), ["a", "e"]);
});

test("a first row that is gone counts no more", () => {
  assert.deepEqual([...afterClick(new Set(), shown, "d", "x")], ["d"]);
});

test("rows that are gone are not selected", () => {
  const selected = new Set(["a", "x"]);
  assert.deepEqual([...stillShown(selected, shown)], ["a"]);
  const kept = new Set(["a"]);
  assert.equal(stillShown(kept, shown), kept);
});
