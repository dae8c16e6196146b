import "./page.js";
import assert from "node:assert/strict";
import { test } from "node:test";
import { inTurns } from "../../app/web/list/job_store.js";

function setUp() {
  const turns = inTurns();
  /** @type {{name: string, isCurrent: () => boolean, end: () => void}[]} */
  const begun = [];
  /** @param {string} name */
  const add = (name) =>
    turns.add(name, (isCurrent) => new Promise((end) => void begun.push({ name, isCurrent, end })));
  return { turns, begun, add, names: () => begun.map(({ name }) => name) };
}

const settle = async () => {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
};

test("a step begins after the one before, and calls meanwhile share the next one", async () => {
  const { begun, add, names } = setUp();
  /** @type {string[]} */
  const ended = [];
  for (const name of ["first", "second", "third"]) void add("refresh").then(() => ended.push(name));
  await settle();
  void add("refresh").then(() => ended.push("fourth"));
  void add("refresh").then(() => ended.push("fifth"));
  await settle();
  assert.deepEqual(names(), ["refresh"]);
  begun[0].end();
  await settle();
  assert.deepEqual(names(), ["refresh", "refresh"]);
  assert.deepEqual(ended, ["first", "second", "third"]);
  begun[1].end();
  await settle();
  assert.deepEqual(ended.slice(3), ["fourth", "fifth"]);
  assert.equal(begun.length, 2);
});

test("steps of different names follow each other", async () => {
  const { begun, add, names } = setUp();
  void add("refresh");
  void add("more");
  await settle();
  begun[0].end();
  await settle();
  assert.deepEqual(names(), ["refresh", "more"]);
});

test("after a new beginning nothing is waited for, and the old step knows", async () => {
  const { turns, begun, add, names } = setUp();
  void add("old");
  await settle();
  void add("never");
  turns.forget();
  void add("new");
  await settle();
  assert.deepEqual(names(), ["old", "new"]);
  assert.deepEqual([begun[0].isCurrent(), begun[1].isCurrent()], [false, true]);
  begun[0].end();
  await settle();
  assert.deepEqual(names(), ["old", "new"]);
});
