import "./page.js";
import assert from "node:assert/strict";
import { test } from "node:test";
import { placed } from "../../app/web/core/placement.js";
import { fileNameOf, groupsOf, isUnreadable } from "../../app/web/job/types.js";

const VIEW = { width: 1000, height: 600 };
const MENU = { width: 200, height: 300 };

/**
 * @param {number} left
 * @param {number} top
 */
const button = (left, top) => ({ left, right: left + 80, top, bottom: top + 34 });

test("a menu stands below its button, or above it where there is more space", () => {
  assert.deepEqual(placed(button(50, 100), MENU, VIEW, false), { left: 50, top: 138 });
  assert.deepEqual(placed(button(50, 500), MENU, VIEW, false), { left: 50, top: 196 });
});

test("a menu at the edge ends where its button ends", () => {
  assert.equal(placed(button(900, 100), MENU, VIEW, false).left, 780);
  assert.equal(placed(button(900, 100), MENU, VIEW, true).left, 780);
  assert.equal(placed(button(20, 100), MENU, VIEW, true).left, 20);
});

test("a menu larger than the window begins at its edge", () => {
  assert.deepEqual(placed(button(5, 5), { width: 2000, height: 900 }, VIEW, false), { left: 8, top: 8 });
});

test("the formats that most people want come first, the others as the service lists them", () => {
  const groups = groupsOf(["json", "new", "txt", "vtt", "ass", "srt", "docx"]);
  assert.deepEqual(groups, { first: ["docx", "srt", "vtt", "txt"], rest: ["json", "new", "ass"] });
});

test("below a name stands what it does not say", async () => {
  const { textBeyond } = await import("../../app/web/list/job_row.js");
  assert.equal(textBeyond("talk.mp3", "We met."), "We met.");
  assert.equal(textBeyond("We met in the yard.", "We met in the yard."), "");
  assert.equal(textBeyond("We met…", "We met in the yard."), "in the yard.");
  assert.equal(textBeyond("The", "Then we met."), "Then we met.");
});

test("a result has the name of its recording", () => {
  /** @param {string | null} filename @returns {any} */
  const job = (filename) => ({ id: "abc", filename });
  assert.equal(fileNameOf(job("talk.mp3"), "srt"), "talk.srt");
  assert.equal(fileNameOf(job("a.b.flac"), "verbose_json"), "a.b.json");
  assert.equal(fileNameOf(job("no extension"), "vtt"), "no extension.vtt");
  assert.equal(fileNameOf(job(null), "txt"), "abc.txt");
  assert.equal(fileNameOf(job("Sitzung 12. Mai"), "srt"), "Sitzung 12. Mai.srt");
  assert.equal(fileNameOf(job("🦊".repeat(130)), "srt"), `${"🦊".repeat(120)}.srt`);
  assert.equal(fileNameOf(job("talk.mp3"), "srt", 0), "talk.original.srt");
  assert.equal(fileNameOf(job("talk.mp3"), "srt", 12), "talk.revision-12.srt");
});

test("a model in a folder of the service is named without the folder", async () => {
  const { modelName } = await import("../../app/web/job/job_facts.js");
  assert.equal(modelName("/srv/models/whisper-large-v3/"), "whisper-large-v3");
  assert.equal(modelName("C:\\models\\tiny"), "tiny");
  assert.equal(modelName("large-v3"), "large-v3");
  assert.equal(modelName("Systran/faster-whisper-tiny"), "Systran/faster-whisper-tiny");
});

test("a job that failed because of its file would fail again", () => {
  /** @param {string} code @returns {any} */
  const failed = (code) => ({ status: "failed", error: { code, message: "" } });
  assert.equal(isUnreadable(failed("not_audio")), true);
  assert.equal(isUnreadable(failed("clip_failed")), false);
});
