import "./page.js";
import assert from "node:assert/strict";
import { test } from "node:test";
import * as cues from "../../app/web/job/cue_rows.js";
import * as edits from "../../app/web/job/edits.js";

/** @typedef {import("../../app/web/job/types.js").Segment} Segment */

/** @param {string} id @param {number} start @param {string} text @param {Partial<Segment>} [rest] @returns {Segment} */
const segment = (id, start, text, rest = {}) => ({
  id,
  start,
  end: start + 4,
  text,
  speaker: null,
  words: [],
  ...rest,
});

/**
 * @param {readonly Segment[]} segments
 * @param {number} start
 * @param {string[]} lines
 * @param {[number, number, number][]} sources Index, from, to.
 */
const made = (segments, start, lines, sources) =>
  cues.rowOfCue(
    {
      start,
      end: start + 1.9,
      lines,
      cps: 12,
      problems: [],
      segments: sources.map(([index, from, to]) => ({ index, from, to })),
    },
    segments,
  );

const SEGMENTS = [
  segment("a", 0, "When the bridge was closed, nobody"),
  segment("b", 4, "in the village knew."),
];
const ROWS = cues.carried(
  [
    made(SEGMENTS, 0, ["When the bridge was closed,"], [[0, 0, 27]]),
    made(SEGMENTS, 2, ["nobody", "in the village knew."], [[0, 28, 34], [1, 0, 20]]), // biome-ignore format: short
  ],
  SEGMENTS,
);
const texts = (/** @type {readonly cues.CueRow[]} */ rows) => rows.map((row) => cues.fieldOf(row).text);

test("subtitles have the keys of the segments that they begin in", () => {
  assert.deepEqual(
    ROWS.map(({ key }) => key),
    ["a", "a#1"],
  );
  assert.equal(cues.idOf("a#1"), "a");
  assert.equal(cues.carried(ROWS, SEGMENTS)[1], ROWS[1]); // nothing has changed
});

test("the service counts characters, and the page the units of JavaScript", () => {
  const smiling = [segment("a", 0, "😀😀 yes no")];
  const row = made(smiling, 0, ["yes"], [[0, 3, 6]]);
  assert.deepEqual([row.parts[0].from, row.parts[0].to], [5, 8]);
  const marked = cues.setMark(smiling, "a", 9, "break");
  assert.deepEqual(marked[0].marks, [{ at: 7, kind: "break" }]);
  assert.equal(cues.markAt(marked[0], 9), "break");
  assert.deepEqual(cues.setMark(marked, "a", 9, null)[0].marks, []);
  assert.equal(cues.setMark(marked, "a", 9, "break"), marked);
});

test("until the service has made them anew, subtitles go along with what is written", () => {
  const written = cues.setCueText(SEGMENTS, ROWS[1], "nobody\nin the old village knew. Yes ");
  assert.deepEqual(
    written.map(({ text }) => text),
    ["When the bridge was closed, nobody", "in the old village knew. Yes"],
  );
  const rows = cues.carried(ROWS, written, "a#1");
  assert.deepEqual(texts(rows), ["When the bridge was closed,", "nobody in the old village knew. Yes"]);
  const longer = cues.setCueText(written, rows[0], "When the good bridge was closed, alas,");
  assert.equal(longer[0].text, "When the good bridge was closed, alas, nobody");
  assert.equal(texts(cues.carried(rows, longer, "a"))[1], "nobody in the old village knew. Yes");
  assert.equal(cues.setCueText(SEGMENTS, ROWS[0], "When the bridge was closed, "), SEGMENTS);
});

test("text across the edge of two segments is of the first, and a segment without text is gone", () => {
  const [both] = [cues.setCueText(SEGMENTS, ROWS[1], "Nobody knew.")];
  assert.deepEqual(
    both.map(({ text }) => text),
    ["When the bridge was closed, Nobody", "knew."],
  );
  assert.deepEqual(
    cues.setCueText(SEGMENTS, ROWS[1], "Nobody.").map(({ text }) => text),
    ["When the bridge was closed, Nobody."],
  );
  assert.equal(cues.setCueText(SEGMENTS, ROWS[0], "")[0].text, "nobody");
});

test("a segment that has no subtitle yet has a row of its own, and the halves of one keep theirs", () => {
  const [left, right] = edits.split(SEGMENTS, "a", 28);
  const rows = cues.carried(ROWS, [left, right, SEGMENTS[1], segment("c", 9, "New.")]);
  assert.deepEqual(texts(rows), ["When the bridge was closed,", "nobody", "in the village knew.", "New."]);
  assert.deepEqual(
    rows.map(({ lines }) => lines.length),
    [1, 0, 2, 0],
  );
});

test("what the service made of a span takes the place of what was there", () => {
  const again = [made(SEGMENTS, 2.1, ["nobody in the village knew."], [[0, 28, 34], [1, 0, 20]])]; // biome-ignore format: short
  assert.deepEqual(
    cues.replaced(ROWS, again, { start: 2, end: 4 })?.map(({ start }) => start),
    [0, 2.1],
  );
  const farther = [made(SEGMENTS, 2.1, ["closed, nobody"], [[0, 20, 34]])];
  assert.equal(cues.replaced(ROWS, farther, { start: 2, end: 4 }), null);
});

test("lines begin where the file breaks them, behind dashes and names that it adds", () => {
  const row = made(SEGMENTS, 0, ["Ann: nobody", "-in the village knew."], [[0, 28, 34], [1, 0, 20]]); // biome-ignore format: short
  assert.deepEqual(cues.lineStarts(row), [
    { part: 0, at: 28, lead: "Ann: ", isFirst: true },
    { part: 1, at: 0, lead: "-", isFirst: false },
  ]);
  assert.equal(cues.fieldOf(row).text, "nobody\nin the village knew.");
  assert.equal(cues.lineStarts({ ...row, lines: ["NOBODY"] }), null);
  const place = cues.fieldOf(row).placeOf(10);
  assert.deepEqual(place, { id: "b", at: 3 });
  assert.equal(cues.fieldOf(row).offsetOf("b", 3), 10);
});

test("marks go along with their words", () => {
  const marks = /** @type {const} */ ([{ at: 4, kind: "join" }, { at: 28, kind: "break" }]); // biome-ignore format: short
  const marked = [segment("a", 0, "When the bridge was closed, nobody", { marks }), SEGMENTS[1]];
  const places = (/** @type {Segment | undefined} */ one) => one?.marks?.map(({ at }) => at);
  assert.deepEqual(places(edits.setText(marked, "a", "When the old bridge was closed, nobody")[0]), [4, 32]);
  const [left, right] = edits.split(marked, "a", 15);
  assert.deepEqual([places(left), places(right)], [[4], [12]]);
  assert.deepEqual(places(edits.join([left, right], "a")[0]), [4, 28]);
  assert.equal(edits.join(SEGMENTS, "a")[0].marks, undefined);
});

test("with other times, a subtitle is a segment, and what is left keeps the times that it is shown with", () => {
  const around = { before: { start: 0, end: 1.9 }, after: {} };
  const { segments, id } = edits.setCueTimes(SEGMENTS, ROWS[1], { start: 2.5, end: 3.9 }, around);
  assert.deepEqual(
    segments.map(({ start, end, text }) => [start, end, text]),
    [
      [0, 1.9, "When the bridge was closed,"],
      [2.5, 3.9, "nobody in the village knew."],
    ],
  );
  assert.equal(segments[1].id, id);
  const same = edits.setCueTimes(segments, { ...ROWS[0], parts: [{ segment: segments[0], from: 0, to: 27 }] }, { start: 0, end: 1.9 }, around); // biome-ignore format: short
  assert.equal(same.segments, segments);
});

test("an edge moves as far as it cures, and no farther than the neighbours allow", () => {
  const row = { ...ROWS[0], start: 1, end: 2 };
  const free = { after: 0.9, before: 3 };
  const fast = { limit: /** @type {const} */ ("max_cps"), value: 30, allowed: 20, cures: [] };
  assert.deepEqual(cues.curedTimes(row, fast, "end", free), { start: 1, end: 2.5 });
  assert.deepEqual(cues.curedTimes(row, fast, "start", free), { start: 0.9, end: 2 });
  const close = { limit: /** @type {const} */ ("min_gap_s"), value: 0, allowed: 0.08, cures: [] };
  assert.deepEqual(cues.curedTimes(row, close, "end", { after: 0, before: 1.92 }), { start: 1, end: 1.92 });
});

test("an edge goes as far as the neighbours leave it", async () => {
  const { allowedSpan } = await import("../../app/web/job/cue_actions.js");
  const places = ["a", "b", "c"].map((key, index) => ({ key, start: 3 * index, end: 3 * index + 2 }));
  const screen = /** @type {any} */ ({ view: { places: () => places } });
  assert.deepEqual(allowedSpan(screen, "b", { start: 1, end: 7 }), { start: 2, end: 6 });
  assert.deepEqual(allowedSpan(screen, "a", { start: -1, end: 1 }), { start: 0, end: 1 });
  assert.deepEqual(allowedSpan(screen, "c", { start: 6, end: 9 }), { start: 6, end: 9 });
});
