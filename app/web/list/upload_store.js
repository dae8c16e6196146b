/** New recordings on their way to the service. A row lasts until the job exists. */

import { announce } from "../core/announcer.js";
import { bytes } from "../core/format.js";
import { service } from "../core/service.js";
import { errorText, language, t } from "../core/text.js";
import { toast } from "../core/toasts.js";
import { refresh } from "./job_store.js";
import { chosenOptions } from "./options.js";
import { choose, nameOfUrl } from "./upload_files.js";
import { uploadQueue } from "./upload_queue.js";
import { mayKeep, newRow, restoredRow } from "./upload_rows.js";
import {
  answerTabs,
  claim,
  heldElsewhere,
  storedFile,
  storedUploads,
  uploadStorage,
} from "./upload_storage.js";
import { transport } from "./upload_transport.js";

/** @import { UploadRow } from "./upload_rows.js" */

const tab = crypto.getRandomValues(new Uint32Array(2)).join("-");
const queue = uploadQueue({ transport, storage: uploadStorage, onJob: () => refresh() });

/** The rows, oldest first. */
export const uploads = queue.rows;
export const { pause, remove } = queue;

/**
 * Upload files. Those that are no recordings are skipped, and the user is told.
 * @param {File[]} files
 * @returns {number} How many files are recordings.
 */
export function addFiles(files) {
  const { chosen, skipped } = choose(files);
  if (skipped.length) sayWhatIsSkipped(skipped);
  const rows = [];
  for (const file of chosen) {
    const lost = uploads.value.find((row) => !row.file && !row.stored.isComplete && isSameFile(row, file));
    if (lost) attach(lost, file);
    else rows.push(rowOf(file));
  }
  queue.add(rows);
  for (const row of rows.filter(({ state }) => state === "waiting")) keep(row);
  if (chosen.length) announce(t("upload.added", { count: chosen.length }));
  return chosen.length;
}

/** @param {string[]} urls */
export function addUrls(urls) {
  const rows = urls.map((source) => {
    const about = { name: nameOfUrl(source), source, isComplete: true };
    return newRow(about, { options: chosenOptions(), tab });
  });
  queue.add(rows);
  for (const { stored } of rows) void uploadStorage.put(stored);
}

/**
 * Go on with a row. One that has failed gets the options as they are now: they may have been the reason.
 * @param {UploadRow} row
 */
export function resume({ stored, state }) {
  queue.resume(stored.id, state === "failed" ? chosenOptions() : undefined);
}

/**
 * Go on with the file that a row has lost.
 * @param {UploadRow} row
 * @param {File} file
 */
export function attach({ stored }, file) {
  queue.attach(stored.id, file);
  keepFile(stored.id, file);
}

/**
 * Whether a file is the one that a row has lost.
 * @param {UploadRow} row
 * @param {File} file
 */
export function isSameFile({ stored }, file) {
  return stored.name === file.name && stored.size === file.size && stored.lastModified === file.lastModified;
}

/** Go on with the uploads of earlier pages, unless another tab does. */
export async function restoreUploads() {
  answerTabs(() => uploads.value.map(({ stored }) => stored.id));
  const all = await storedUploads();
  const held = all.length ? await heldElsewhere() : new Set();
  for (const stored of all) {
    if (held.has(stored.id)) continue;
    const file = await storedFile(stored.id); // before the claim: other tabs ask for rows alone
    if (await claim(stored, tab)) queue.add([restoredRow({ ...stored, tab }, file)]);
  }
}

/** @param {File} file */
function rowOf(file) {
  const { name, size, lastModified } = file;
  const row = newRow({ name, size, lastModified }, { options: chosenOptions(), tab, file });
  const limit = service.max_upload_mb * 1e6;
  const isTooLarge = limit > 0 && size > limit;
  if (size && !isTooLarge) return row;
  const message = isTooLarge
    ? t("upload.tooLarge", { limit: bytes(limit, language.value) })
    : errorText({ code: "empty_file", message: "" });
  return { ...row, state: /** @type {const} */ ("failed"), isRefused: true, message };
}

/** @param {UploadRow} row */
function keep({ stored, file }) {
  void uploadStorage.put(stored);
  keepFile(stored.id, /** @type {Blob} */ (file));
}

let keeping = Promise.resolve();

/**
 * Let the browser copy a file, one after the other. Those that have arrived by then need no copy.
 * @param {string} id
 * @param {Blob} file
 */
function keepFile(id, file) {
  keeping = keeping.then(async () => {
    const row = uploads.value.find(({ stored }) => stored.id === id);
    if (!row || row.stored.isComplete || !mayKeep(uploads.value, file.size)) return;
    queue.markKept(id, await uploadStorage.putFile(id, file));
  });
}

/** @param {File[]} skipped */
function sayWhatIsSkipped(skipped) {
  const names = skipped.slice(0, 3).map(({ name }) => name);
  if (skipped.length > names.length) names.push("…");
  toast(t("upload.skipped", { count: skipped.length, names: names.join(", ") }));
}

addEventListener("online", () => queue.wake());

addEventListener("pageshow", (event) => {
  // Another tab may have taken over the uploads of a page that the browser had put aside.
  if (event.persisted && uploads.value.length) location.reload();
});
