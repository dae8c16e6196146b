import assert from "node:assert/strict";
import { test } from "node:test";
import { reachOf, withFollowing, withNewest } from "../../app/web/list/job_pages.js";

/**
 * Jobs by their numbers: a higher one is newer.
 * @param {number[]} numbers
 * @param {Partial<import("../../app/web/job/types.js").Job>} [fields]
 * @returns {any[]}
 */
function jobs(numbers, fields = {}) {
  return numbers.map((number) => ({
    id: `job${number}`,
    created_at: `2026-01-01T00:00:00.${String(number).padStart(3, "0")}Z`,
    status: "succeeded",
    ...fields,
  }));
}

/** @param {{jobs: readonly {id: string}[]}} list */
const numbersOf = (list) => list.jobs.map((job) => Number(job.id.slice(3)));

test("new jobs come before those that are loaded, and older pages stay", () => {
  const list = withNewest({ jobs: jobs([5, 4, 3, 2, 1]), hasMore: true }, jobs([7, 6, 5]), true);
  assert.deepEqual(numbersOf(list), [7, 6, 5, 4, 3, 2, 1]);
  assert.equal(list.hasMore, true);
});

test("a job that its page lacks is gone", () => {
  assert.deepEqual(
    numbersOf(withNewest({ jobs: jobs([5, 4, 3, 2, 1]), hasMore: false }, jobs([5, 3]), true)),
    [5, 3, 2, 1],
  );
});

test("the end of a page may be a job that the list has never had", () => {
  assert.deepEqual(
    numbersOf(withNewest({ jobs: jobs([6, 2, 1]), hasMore: false }, jobs([6, 4]), true)),
    [6, 4, 2, 1],
  );
});

test("jobs after a gap are dropped, to be loaded again", () => {
  const list = withNewest({ jobs: jobs([3, 2, 1]), hasMore: false }, jobs([9, 8, 7]), true);
  assert.deepEqual(numbersOf(list), [9, 8, 7]);
  assert.equal(list.hasMore, true);
});

test("a page that reaches the end is the list", () => {
  const list = withNewest({ jobs: jobs([5, 4, 3]), hasMore: true }, jobs([4]), false);
  assert.deepEqual(numbersOf(list), [4]);
  assert.equal(list.hasMore, false);
  assert.deepEqual(numbersOf(withNewest(list, [], false)), []);
});

test("a job that has not changed stays the same object, and a changed one is replaced", () => {
  const old = { jobs: jobs([2, 1]), hasMore: false };
  const list = withNewest(old, [...jobs([2], { status: "running" }), ...jobs([1])], false);
  assert.equal(list.jobs[1], old.jobs[1]);
  assert.equal(list.jobs[0].status, "running");
});

test("the following page has no job twice", () => {
  const list = withFollowing({ jobs: jobs([5, 4]), hasMore: true }, jobs([4, 3]), false);
  assert.deepEqual(numbersOf(list), [5, 4, 3]);
  assert.equal(list.hasMore, false);
});

test("a request reaches the last job that is not done", () => {
  const list = jobs([9, 8, 7, 6]);
  assert.equal(reachOf(list, 2), 2);
  list[2].status = "queued";
  assert.equal(reachOf(list, 2), 3);
  assert.equal(reachOf([], 50), 50);
});
