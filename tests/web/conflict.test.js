import assert from "node:assert/strict";
import { test } from "node:test";
import { merge, resolved, withOpenParts } from "../../app/web/job/conflict.js";
import * as edits from "../../app/web/job/edits.js";
import { applyChanges, changesBetween, isSame } from "../../app/web/job/edits_rules.js";
import { faults, randomDocument, randomEdit, randomFrom } from "./random_documents.js";

/** @typedef {import("../../app/web/job/types.js").Segment} Segment */
/** @typedef {readonly Segment[]} Segments */

/** @type {Segments} */
const BASE = ["One two", "three four", "five six"].map((text, index) => ({
  id: `s${index}`,
  start: index * 10,
  end: index * 10 + 5,
  text,
  speaker: null,
  words: [],
}));

/** @param {Segments} segments */
const texts = (segments) => segments.map((segment) => segment.text);

test("changes of different segments are merged", () => {
  const outcome = merge(BASE, edits.setText(BASE, "s0", "mine"), edits.setText(BASE, "s2", "theirs"));
  assert.deepEqual([texts(outcome.merged), outcome.parts], [["mine", "three four", "theirs"], []]);
});

test("a text and a time of the same segment are merged", () => {
  const outcome = merge(BASE, edits.setText(BASE, "s0", "mine"), edits.setTimes(BASE, "s0", 1, 6));
  assert.deepEqual(outcome.parts, []);
  const [{ text, start, end }] = outcome.merged;
  assert.deepEqual([text, start, end], ["mine", 1, 6]);
});

test("the same change on both sides is no conflict", () => {
  const outcome = merge(BASE, edits.setText(BASE, "s0", "same "), edits.setText(BASE, "s0", "same"));
  assert.deepEqual([texts(outcome.merged), outcome.parts], [["same", "three four", "five six"], []]);
});

test("two texts of one segment need a choice", () => {
  const outcome = merge(BASE, edits.setText(BASE, "s1", "mine"), edits.setText(BASE, "s1", "theirs"));
  assert.deepEqual(
    outcome.parts.map((part) => [texts(part.mine), texts(part.theirs)]),
    [[["mine"], ["theirs"]]],
  );
  assert.equal(resolved(outcome, new Map())[1].text, "mine");
  assert.equal(resolved(outcome, new Map([["s1", "theirs"]]))[1].text, "theirs");
});

test("a removed segment that the other side changed needs a choice, both ways", () => {
  const [changed, removed] = [edits.setText(BASE, "s1", "changed"), edits.remove(BASE, new Set(["s1"]))];
  const mine = merge(BASE, changed, removed);
  assert.deepEqual(
    [resolved(mine, new Map()).length, resolved(mine, new Map([["s1", "theirs"]])).length],
    [3, 2],
  );
  const theirs = merge(BASE, removed, changed);
  assert.deepEqual(
    [resolved(theirs, new Map()).length, resolved(theirs, new Map([["s1", "theirs"]])).length],
    [2, 3],
  );
});

test("both parts of a split segment go with its choice", () => {
  const outcome = merge(BASE, edits.split(BASE, "s1", 5), edits.setText(BASE, "s1", "three, four"));
  assert.equal(outcome.parts.length, 1);
  assert.deepEqual(texts(resolved(outcome, new Map())), ["One two", "three", "four", "five six"]);
  const theirs = resolved(outcome, new Map([[outcome.parts[0].id, "theirs"]]));
  assert.deepEqual(theirs, edits.setText(BASE, "s1", "three, four"));
});

test("joined segments go with the choice of the segment that the other side changed", () => {
  const outcome = merge(BASE, edits.join(BASE, "s0"), edits.setText(BASE, "s1", "3 4"));
  assert.equal(outcome.parts.length, 1);
  assert.deepEqual(texts(resolved(outcome, new Map())), ["One two three four", "five six"]);
  const theirs = resolved(outcome, new Map([[outcome.parts[0].id, "theirs"]]));
  assert.deepEqual(texts(theirs), ["One two", "3 4", "five six"]);
});

test("a new segment that the service has got already comes once", () => {
  const inserted = edits
    .insert(BASE, 1, 6, 8)
    .map((segment) => (BASE.includes(segment) ? segment : { ...segment, text: "new" }));
  const theirs = inserted.map((segment) => (BASE.includes(segment) ? segment : { ...segment, id: "0-r1-0" }));
  assert.deepEqual(merge(BASE, inserted, theirs), { merged: theirs, parts: [] });
});

/**
 * What comes back of a draft that was written while parts needed a choice.
 * @param {Segments} theirs
 * @param {ReturnType<typeof merge>} outcome
 */
function restored(theirs, outcome) {
  const mine = resolved(outcome, new Map());
  const draft = withOpenParts(changesBetween(theirs, mine, isSame), outcome.parts, mine);
  return merge(applyChanges(theirs, draft, "before"), applyChanges(theirs, draft, "after"), theirs);
}

test("a draft asks for the same choices again", () => {
  const mine = edits.setText(edits.setText(BASE, "s0", "only mine"), "s1", "mine");
  const theirs = edits.split(BASE, "s1", 5);
  const outcome = merge(BASE, mine, theirs);
  const again = restored(theirs, outcome);
  assert.deepEqual(again.parts, outcome.parts);
  assert.deepEqual(texts(resolved(again, new Map())), ["only mine", "mine", "five six"]);
});

test("random drafts forget no choice", () => {
  for (let seed = 1; seed <= 100; seed++) {
    const random = randomFrom(seed);
    const base = randomDocument(random, 12);
    const [mine, theirs] = [0, 1].map(() => {
      let segments = base;
      for (let step = 0; step < 6; step++) segments = randomEdit(random, segments).segments;
      return segments.filter((segment) => segment.text.trim());
    });
    const outcome = merge(base, mine, theirs);
    const again = restored(theirs, outcome);
    const open = (/** @type {typeof outcome} */ { parts }) =>
      new Set(parts.flatMap((part) => [...part.mine, ...part.theirs].map(({ id }) => id)));
    const found = open(again);
    for (const id of open(outcome)) assert.ok(found.has(id), `seed ${seed}: ${id}`);
  }
});

test("random merges are valid; without their changes they are mine, and without mine theirs", () => {
  for (let seed = 1; seed <= 150; seed++) {
    const random = randomFrom(seed);
    const base = randomDocument(random, 12);
    const edited = () => {
      let segments = base;
      for (let step = 0; step < 6; step++) segments = randomEdit(random, segments).segments;
      return segments.filter((segment) => segment.text.trim());
    };
    const [mine, theirs] = [edited(), edited()];
    const outcome = merge(base, mine, theirs);
    const choices = new Map(outcome.parts.map((part) => [part.id, /** @type {"theirs"} */ ("theirs")]));
    for (const choice of [new Map(), choices]) {
      assert.deepEqual(faults(resolved(outcome, choice), 700), [], `seed ${seed}`);
    }
    const same = (/** @type {Segments} */ one, /** @type {Segments} */ other) =>
      one.length === other.length && one.every((segment, index) => isSame(segment, other[index]));
    assert.ok(same(merge(base, mine, base).merged, mine), `seed ${seed}`);
    assert.ok(same(merge(base, base, theirs).merged, theirs));
    assert.ok(same(merge(base, mine, mine).merged, mine));
  }
});
