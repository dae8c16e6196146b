import assert from "node:assert/strict";
import { test } from "node:test";

test("two tabs that begin at the same time make different ids", async (context) => {
  context.mock.timers.enable({ apis: ["Date"], now: 1_000_000 });
  const path = "../../app/web/job/edits_rules.js";
  const [first, second] = [await import(`${path}?1`), await import(`${path}?2`)];
  assert.notEqual(first.newId(), second.newId());
  assert.match(first.newId(), /^new-/);
});
