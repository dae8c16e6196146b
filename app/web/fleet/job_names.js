/** Names of jobs, asked for one after the other when they are first shown. */

import { ApiError, requestJson } from "../core/api.js";
import { t } from "../core/text.js";
import { signal } from "../vendor/ui.js";
import { DIRECT } from "./measures.js";

const RETRY_MS = 10_000;

/** By id; an empty one belongs to a deleted job. @type {import("../vendor/ui.js").Signal<Record<string, string>>} */
const names = signal({});
/** @type {Set<string>} */
const asked = new Set();
let asking = Promise.resolve();

/**
 * What a job is called: the name of its recording. Its id until the name is here.
 * @param {string} key Of a job, or DIRECT.
 */
export function nameOf(key) {
  if (key === DIRECT) return t("fleet.direct");
  const name = names.value[key];
  if (name === undefined) ask(key);
  return name || (name === "" ? t("fleet.deleted") : key.slice(0, 8));
}

/** @param {string} key */
function ask(key) {
  if (asked.has(key)) return;
  asked.add(key);
  // One at a time: a busy fleet may show hundreds of jobs.
  asking = asking.then(() => load(key));
}

/** @param {string} id */
async function load(id) {
  try {
    const { filename, url } = await requestJson(`/v1/jobs/${id}`);
    names.value = { ...names.peek(), [id]: filename ?? url ?? id.slice(0, 8) };
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) names.value = { ...names.peek(), [id]: "" };
    else setTimeout(() => asked.delete(id), RETRY_MS);
  }
}
