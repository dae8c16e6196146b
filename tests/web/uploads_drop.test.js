import assert from "node:assert/strict";
import { test } from "node:test";
import { filesOf } from "../../app/web/list/upload_files.js";

/** @param {string} name @param {boolean} [isReadable] */
const file = (name, isReadable = true) => ({
  isFile: true,
  name,
  file: (/** @type {(file: File) => void} */ done, /** @type {(error: Error) => void} */ fail) =>
    isReadable ? done(new File(["x"], name)) : fail(new Error("NotFoundError")),
});

/** A folder that a browser lists in parts. @param {string} name @param {unknown[]} entries @param {boolean} [isReadable] */
const folder = (name, entries, isReadable = true) => ({
  isFile: false,
  name,
  createReader: () => {
    const left = [...entries];
    return {
      readEntries: (
        /** @type {(some: unknown[]) => void} */ done,
        /** @type {(error: Error) => void} */ fail,
      ) => (left.length || isReadable ? done(left.splice(0, 2)) : fail(new Error("NotReadableError"))),
    };
  },
});

/** @param {unknown[]} entries */
async function dropped(entries) {
  const items = entries.map((entry) => ({ kind: "file", webkitGetAsEntry: () => entry }));
  const { files, unread } = await filesOf(/** @type {any} */ ({ items }));
  return [files.map(({ name }) => name), unread];
}

test("folders give all of their files, by name", async () => {
  const found = await dropped([folder("a", [file("10"), file("2"), folder("b", [file("x")])]), file("c")]);
  assert.deepEqual(found, [["2", "10", "x", "c"], 0]);
  assert.deepEqual(await dropped([folder("empty", [])]), [[], 0]);
});

test("what cannot be read is counted, and hides nothing else", async () => {
  const found = await dropped([folder("a", [file("1"), file("link", false)], false), file("gone", false)]);
  assert.deepEqual(found, [["1"], 3]);
});
