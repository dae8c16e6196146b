import assert from "node:assert/strict";
import { test } from "node:test";
import { choose, mayBeRecording, nameOfUrl, urlsIn } from "../../app/web/list/upload_files.js";

/** @param {string} name @param {string} [type] */
const file = (name, type = "") => ({ name, type });

test("subtitles, pictures and leftovers in a folder are skipped", () => {
  const names = [
    "talk.mp3",
    "talk.srt",
    "cover.JPG",
    ".DS_Store",
    "Thumbs.db",
    "._talk.mp3",
    "film.MKV",
    "notes.pdf",
  ];
  const { chosen, skipped } = choose(names.map((name) => file(name)));
  assert.deepEqual(
    chosen.map(({ name }) => name),
    ["talk.mp3", "film.MKV"],
  );
  assert.equal(skipped.length, 6);
});

test("a recording is known by its extension, whatever type the browser gives it", () => {
  assert.ok(mayBeRecording(file("camera.ts", "text/vnd.trolltech.linguist")));
  assert.ok(mayBeRecording(file("memo.amr", "application/octet-stream")));
});

test("a file of unknown kind is left to the service, a picture or a text is not", () => {
  assert.ok(mayBeRecording(file("recording", "")));
  assert.ok(mayBeRecording(file("dictation.ds2", "application/octet-stream")));
  assert.ok(!mayBeRecording(file("scan", "image/png")));
  assert.ok(!mayBeRecording(file("list.xyz", "text/plain")));
});

test("a pasted text is taken for addresses only if it has nothing else", () => {
  assert.deepEqual(urlsIn(" https://example.org/a.mp3\nhttp://example.org/b "), [
    "https://example.org/a.mp3",
    "http://example.org/b",
  ]);
  for (const text of [
    "",
    "see https://example.org/a.mp3",
    "ftp://example.org/a",
    "https://",
    "javascript:alert(1)",
  ]) {
    assert.deepEqual(urlsIn(text), [], text);
  }
});

test("a recording of the web is named after the last part of its address", () => {
  assert.equal(nameOfUrl("https://example.org/talks/Caf%C3%A9.mp3?x=1"), "Café.mp3");
  assert.equal(nameOfUrl("https://example.org/"), "example.org");
  assert.equal(nameOfUrl("https://example.org/100%"), "100%");
});
