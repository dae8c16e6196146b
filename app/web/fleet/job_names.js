/** Names of jobs, asked for together when they are first shown. */

import { ApiError, requestJson } from "../core/api.js";
import { mayPass } from "../core/events.js";
import { t } from "../core/text.js";
import { nameOf as nameOfJob } from "../job/types.js";
import { signal } from "../vendor/ui.js";
import { jobs } from "./fleet_store.js";
import { DIRECT } from "./measures.js";

const PAUSE_MS = 50; // other jobs that are drawn meanwhile belong to the same request
const RETRY_MS = 10_000;
const AT_ONCE = 50;

/** By id; an empty one belongs to a deleted job. @type {import("../vendor/ui.js").Signal<Record<string, string>>} */
const names = signal({});
/** @type {Set<string>} */
const wanted = new Set();
let isAsking = false;

/**
 * What a job is called: the name of its recording. Its id until the name is here.
 * @param {string} key Of a job, or DIRECT.
 */
export function nameOf(key) {
  if (key === DIRECT) return t("fleet.direct");
  const name = names.value[key];
  if (name === undefined) ask(key);
  return name || (name === "" ? t("fleet.deleted") : shortened(key));
}

/**
 * Whether a job has a screen: it is neither deleted nor a direct request.
 * @param {string} key Of a job, or DIRECT.
 */
export function hasScreen(key) {
  return key !== DIRECT && names.value[key] !== "";
}

/** @param {string} key */
function ask(key) {
  wanted.add(key);
  if (isAsking) return;
  isAsking = true;
  setTimeout(loadWanted, PAUSE_MS);
}

async function loadWanted() {
  const ids = [...wanted].slice(0, AT_ONCE);
  if (!ids.length) {
    isAsking = false;
    return;
  }
  const isAnswered = await load(ids);
  // Without an answer, those that are still drawn then are asked for again.
  for (const id of isAnswered ? ids : [...wanted]) wanted.delete(id);
  setTimeout(loadWanted, isAnswered ? PAUSE_MS : RETRY_MS);
}

/**
 * @param {string[]} ids
 * @returns {Promise<boolean>} Whether the service has answered.
 */
async function load(ids) {
  /** @type {Record<string, string>} */
  const found = {};
  try {
    const { data } = await requestJson(`/v1/jobs?ids=${ids}`);
    for (const id of ids) found[id] = "";
    for (const job of data) found[job.id] = nameOfJob(job);
  } catch (error) {
    if (!(error instanceof ApiError) || mayPass(error)) return false;
    for (const id of ids) found[id] = shortened(id);
  }
  const shown = new Set(jobs.peek().map((job) => job.key));
  const kept = Object.entries(names.peek()).filter(([id]) => shown.has(id));
  names.value = { ...Object.fromEntries(kept), ...found };
  return true;
}

/** @param {string} id */
function shortened(id) {
  return id.slice(0, 8);
}
