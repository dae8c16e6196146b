import assert from "node:assert/strict";
import test from "node:test";
import { colourBook, HUES } from "../../app/web/fleet/colours.js";
import { conditionOf, counts, deviceOf } from "../../app/web/fleet/condition.js";
import { newFleet } from "../../app/web/fleet/fleet_state.js";
import { boxAt, boxes, endedBlock, outages, runningBlock, toX } from "../../app/web/fleet/layout.js";
import { clipsByJob, DIRECT, jobsShown, loadSteps, outcomes, speeds } from "../../app/web/fleet/measures.js";
import * as rows from "./fleet_rows.js";
import { NOW } from "./fleet_rows.js";

const WIDTH = 600; // px: two for each second

/** A block of ten seconds. @param {object} [changes] */
const block = (changes = {}) => rows.block({ start: NOW - 20, end: NOW - 10, ...changes });

/** @param {object} [changes] */
const worker = (changes = {}) => rows.worker({ device: "cpu", visible_devices: null, ...changes });

/** @param {any[]} blocks @param {any[]} [workers] */
function fleetOf(blocks, workers = []) {
  return { ...newFleet(), workers, blocks: new Map([[0, blocks]]) };
}

test("the speed counts a block evenly over its time, and only work that succeeded", () => {
  const fleet = fleetOf([
    block(),
    block({ id: 2, outcome: "failed" }),
    block({ id: 3, outcome: "requeued" }),
  ]);
  assert.deepEqual(speeds(fleet, NOW - 20, NOW), [2]);
  assert.deepEqual(speeds(fleet, NOW - 20, NOW, 4), [4, 4, 0, 0]);
  assert.deepEqual(speeds(fleet, NOW - 15, NOW), [20 / 15]);
  assert.deepEqual(speeds(fleet, NOW - 5, NOW), [0]);
});

test("a block without a length counts as well", () => {
  const [speed] = speeds(fleetOf([block({ start: NOW - 5, end: NOW - 5 })]), NOW - 10, NOW);
  assert.ok(Math.abs(speed - 4) < 1e-3);
});

test("jobs under way come first, direct requests are one, and old jobs are missing", () => {
  const request = (/** @type {string} */ job) => [{ job, kind: "request", clips: 1 }];
  const blocks = [
    block({ jobs: [{ job: "old", kind: "job", clips: 1 }], start: NOW - 310, end: NOW - 301 }),
    block({ jobs: request("request-1") }),
    block({ jobs: request("request-2"), end: NOW - 5 }),
    block({ outcome: "failed" }),
  ];
  const busy = worker({ working: [{ job: "b2", kind: "job", clips: 4, since: NOW - 1 }] });
  assert.deepEqual(jobsShown(fleetOf(blocks, [busy]), NOW), [
    { key: "b2", clips: 0, lastAt: Number.POSITIVE_INFINITY },
    { key: DIRECT, clips: 2, lastAt: NOW - 5 },
    { key: "a1", clips: 0, lastAt: NOW - 10 },
  ]);
});

test("outcomes are counted, and the speed is that of the work that succeeded, without the pauses", () => {
  const counted = outcomes([
    block(),
    block({ outcome: "failed" }),
    block({ outcome: "requeued" }),
    block({ start: NOW - 200, end: NOW - 195 }),
  ]);
  assert.deepEqual(counted, { ok: 2, failed: 1, requeued: 1, clips: 4, speed: 80 / 15 });
  assert.equal(outcomes([block({ outcome: "failed" })]).speed, null);
});

test("a block lies at its time, and one that began before the span is cut off", () => {
  assert.equal(toX(NOW - 300, NOW, WIDTH), 0);
  const [cut, whole] = boxes(
    [block({ start: NOW - 400, end: NOW - 290 }), block({ id: 2 })],
    null,
    NOW,
    WIDTH,
  );
  assert.deepEqual([cut.x, cut.width], [0, 19]);
  assert.deepEqual([whole.x, whole.width], [560, 19]);
  assert.deepEqual(boxes([block({ start: NOW - 400, end: NOW - 300 })], null, NOW, WIDTH), []);
});

test("the shortest block is a pixel wide", () => {
  const [box] = boxes([block({ start: NOW - 5, end: NOW - 4.99 })], null, NOW, WIDTH);
  assert.equal(box.width, 1);
});

test("direct requests count as one job of a block", () => {
  const request = (/** @type {string} */ job) => ({ job, kind: "request", clips: 2 });
  const mixed = block({
    jobs: [request("request-1"), { job: "a1", kind: "job", clips: 1 }, request("request-2")],
  });
  assert.deepEqual(
    [...clipsByJob(mixed)],
    [
      [DIRECT, 4],
      ["a1", 1],
    ],
  );
});

test("the jobs of a batch share its height by their clips", () => {
  const jobs = [
    { job: "a1", kind: "job", clips: 3 },
    { job: "request-1", kind: "request", clips: 2 },
    { job: "request-2", kind: "request", clips: 3 },
  ];
  const [box] = boxes([block({ jobs })], null, NOW, WIDTH);
  assert.deepEqual(box.bands, [
    { key: "a1", top: 0, height: 3 / 8 },
    { key: DIRECT, top: 3 / 8, height: 5 / 8 },
  ]);
});

test("work under way grows to now, or to when the connection was lost", () => {
  const working = [{ job: "a1", kind: "job", clips: 2, since: NOW - 8 }];
  const running = runningBlock(worker({ working }), NOW, 0);
  const [box] = boxes([], running, NOW, WIDTH);
  assert.deepEqual([box.x, box.width, box.outcome], [584, 16, "running"]);
  assert.equal(runningBlock(worker({ working }), NOW - 3, 0)?.end, NOW - 3);
  assert.equal(runningBlock(worker({ working }), NOW, NOW - 5)?.start, NOW - 5, "behind the last block");
  assert.equal(runningBlock(worker({ working }), NOW - 9, 0), null);
  assert.equal(runningBlock(worker(), NOW, 0), null);
});

test("work under way becomes the block that covers its beginning", () => {
  const working = [{ job: "a1", kind: "job", clips: 2, since: NOW - 8 }];
  const running = /** @type {any} */ (runningBlock(worker({ working }), NOW, NOW - 8));
  const before = block({ start: NOW - 12, end: NOW - 8 });
  const ended = block({ id: 2, start: NOW - 8, end: NOW - 3 });
  assert.equal(endedBlock([before], running), undefined);
  assert.equal(endedBlock([before, ended, block({ id: 3, start: NOW - 3, end: NOW })], running), ended);
});

test("the load of a GPU holds until it changes", () => {
  const loads = [
    { at: NOW - 130, value: 0.2 },
    { at: NOW - 125, value: 1 },
    { at: NOW - 30, value: 0.5 },
  ];
  assert.deepEqual(loadSteps(loads, NOW, 120), [
    [0, 1],
    [0.75, 0.5],
  ]);
  assert.deepEqual(loadSteps([], NOW, 120), []);
});

test("a pointer finds the block under it, or one next to it", () => {
  const shown = boxes([block(), block({ id: 2, start: NOW - 9, end: NOW - 5 })], null, NOW, WIDTH);
  assert.equal(boxAt(shown, 570)?.block.id, 1);
  assert.equal(boxAt(shown, 583)?.block.id, 2);
  assert.equal(boxAt(shown, 557.5)?.block.id, 1);
  assert.equal(boxAt(shown, 500), null);
});

test("spans out of service end when the worker serves again", () => {
  const states = [
    { at: NOW - 400, state: /** @type {const} */ ("failed") },
    { at: NOW - 200, state: /** @type {const} */ ("idle") },
    { at: NOW - 50, state: /** @type {const} */ ("restarting") },
  ];
  assert.deepEqual(outages(states, NOW, WIDTH), [
    { x: 0, width: 200, state: "failed" },
    { x: 500, width: 100, state: "restarting" },
  ]);
});

test("a job keeps its colour while it is shown, and two jobs never share one while there are free ones", () => {
  const book = colourBook();
  const keys = Array.from({ length: 3 * HUES }, (_, index) => `job ${index}`);
  const given = keys.map((key) => book.of(key));
  assert.equal(new Set(given.map(({ hue, pattern }) => `${hue} ${pattern}`)).size, keys.length);
  assert.ok(given.slice(0, HUES).every(({ pattern }) => pattern === "plain"));
  assert.deepEqual(keys.map(book.of), given);
  book.keep(keys.slice(1));
  assert.deepEqual(book.of("another"), given[0], "the only free one");
  assert.ok(book.of("one too many").hue !== "grey");
});

test("a job has the same colour in every tab, and direct requests are grey", () => {
  const keys = Array.from({ length: HUES }, (_, index) => `job ${index}`);
  const [one, other] = [colourBook(), colourBook()];
  one.keep(keys);
  other.keep(keys.toReversed());
  assert.deepEqual(keys.map(one.of), keys.map(other.of));
  assert.equal(colourBook().of(DIRECT).hue, "grey");
});

test("a quarantined worker is told from one that failed to start", () => {
  const quarantined = worker({
    state: "failed",
    error: "quarantined, since its device failed 3 times in a row",
  });
  assert.equal(conditionOf(quarantined), "quarantined");
  assert.equal(conditionOf(worker({ state: "failed", error: "no model" })), "failed");
  assert.equal(conditionOf(worker({ state: "failed", error: "no model in /quarantined" })), "failed");
  assert.equal(conditionOf(worker({ state: "busy", error: "uses smaller batches" })), "busy");
});

test("workers that serve are counted, sleeping ones too", () => {
  const states = ["idle", "busy", "asleep", "failed", "restarting", "loading"];
  assert.deepEqual(counts(states.map((state) => worker({ state }))), { busy: 1, ready: 3, down: 2, all: 6 });
});

test("devices have short names", () => {
  assert.equal(deviceOf(worker({ device: "cuda", visible_devices: "3" })), "GPU 3");
  const uuid = "GPU-8f1d2c3b-1111-2222-3333-444455556666";
  assert.equal(deviceOf(worker({ device: "cuda", visible_devices: uuid })), "GPU 8f1d2c3b");
  assert.equal(deviceOf(worker({ device: "cuda" })), "GPU");
  assert.equal(deviceOf(worker()), "CPU");
  assert.equal(deviceOf(worker({ device: "simulated" })), "simulated");
});
