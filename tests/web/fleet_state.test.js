import assert from "node:assert/strict";
import test from "node:test";
import { applyEvent, forget, newFleet } from "../../app/web/fleet/fleet_state.js";
import { block, NOW, worker } from "./fleet_rows.js";

/** @param {object} [changes] @returns {any} */
function snapshot(changes = {}) {
  return {
    time: NOW,
    workers: [worker()],
    queue: { clips: 3, oldest_s: 1, jobs: 1, streams: 2 },
    blocks: [block()],
    ...changes,
  };
}

/** @param {[string, any][]} events @param {number} [localTime] */
function folded(events, localTime = NOW) {
  const fleet = newFleet();
  for (const [type, data] of events) applyEvent(fleet, type, data, localTime);
  return fleet;
}

test("the first event fills everything", () => {
  const fleet = folded([["fleet", snapshot()]], NOW - 30);
  assert.equal(fleet.offset, 30);
  assert.deepEqual(fleet.queue, { clips: 3, oldest_s: 1, jobs: 1, streams: 2 });
  assert.deepEqual(
    fleet.workers.map((row) => row.slot),
    [0],
  );
  assert.deepEqual(
    fleet.blocks.get(0)?.map((one) => one.id),
    [1],
  );
});

test("blocks are added by slot, and repeated ones only once", () => {
  const fleet = folded([
    ["fleet", snapshot()],
    ["block", { time: NOW, blocks: [block({ id: 2, slot: 1 }), block({ id: 3 })] }],
    ["block", { time: NOW, blocks: [block({ id: 3 })] }],
  ]);
  assert.deepEqual(
    fleet.blocks.get(0)?.map((one) => one.id),
    [1, 3],
  );
  assert.deepEqual(
    fleet.blocks.get(1)?.map((one) => one.id),
    [2],
  );
});

test("changed workers take the places of the old rows; a snapshot removes slots that are gone", () => {
  const both = snapshot({ workers: [worker(), worker({ slot: 1 })] });
  const changed = { time: NOW + 1, workers: [worker({ slot: 1, state: "busy" })] };
  const fleet = folded([
    ["fleet", both],
    ["workers", changed],
  ]);
  assert.deepEqual(
    fleet.workers.map((row) => row.state),
    ["idle", "busy"],
  );
  applyEvent(fleet, "fleet", snapshot(), NOW);
  assert.equal(fleet.workers.length, 1);
});

test("changes of state are kept with their times, and one from before the span is kept for its beginning", () => {
  const states = ["failed", "failed", "restarting", "idle"];
  const fleet = folded(
    states.map((state, index) => ["workers", { time: NOW + index, workers: [worker({ state })] }]),
  );
  assert.deepEqual(fleet.states.get(0), [
    { at: NOW, state: "failed" },
    { at: NOW + 2, state: "restarting" },
    { at: NOW + 3, state: "idle" },
  ]);
  applyEvent(
    fleet,
    "queue",
    { time: NOW + 302.5, queue: { clips: 0, oldest_s: 0, jobs: 0, streams: 0 } },
    NOW,
  );
  assert.deepEqual(
    fleet.states.get(0)?.map(({ state }) => state),
    ["restarting", "idle"],
  );
});

test("blocks and loads older than the span are forgotten, but the load that still holds is kept", () => {
  const gpu = (/** @type {number} */ utilisation) => ({ memory_used: 1, memory_total: 2, utilisation });
  const fleet = folded([["fleet", snapshot({ workers: [worker({ gpu: gpu(0.5) })] })]]);
  assert.deepEqual(fleet.loads.get(0), [{ at: NOW, value: 0.5 }]);
  applyEvent(fleet, "workers", { time: NOW + 2, workers: [worker({ gpu: gpu(1) })] }, NOW + 2);
  applyEvent(fleet, "workers", { time: NOW + 303, workers: [worker()] }, NOW + 303);
  assert.deepEqual([fleet.blocks.get(0), fleet.loads.get(0)], [[], [{ at: NOW + 2, value: 1 }]]);
});

test("an idle fleet, which has no events, forgets old blocks as well", () => {
  const fleet = folded([["fleet", snapshot()]]);
  forget(fleet, NOW + 298);
  assert.equal(fleet.blocks.get(0)?.length, 1);
  forget(fleet, NOW + 299);
  assert.equal(fleet.blocks.get(0)?.length, 0);
});

test("a late event does not turn the clock back", () => {
  const fleet = folded([["fleet", snapshot()]]);
  applyEvent(fleet, "workers", { time: NOW + 1, workers: [] }, NOW + 5);
  assert.equal(fleet.offset, 0);
  applyEvent(fleet, "fleet", snapshot({ time: NOW - 60 }), NOW);
  assert.equal(fleet.offset, -60, "the server's clock was set");
});

test("an event without anything known changes nothing", () => {
  const fleet = folded([["fleet", snapshot()]]);
  const before = structuredClone(fleet);
  applyEvent(fleet, "weather", { time: NOW }, NOW);
  assert.deepEqual(fleet, before);
});
