/** Jobs that the user deletes: they go into the trash at once, and can be brought back. */

import { request } from "../core/api.js";
import { service } from "../core/service.js";
import { t } from "../core/text.js";
import { toast, toastError } from "../core/toasts.js";
import { removeDrafts } from "../job/drafts.js";
import { isActive, nameOf } from "../job/types.js";
import { hidden, refresh } from "./job_store.js";

/** @typedef {import("../job/types.js").Job} Job */

const MOMENT_MS = 7000; // as long as its message is shown
const AT_ONCE = 3; // requests

/** @type {{jobs: readonly Job[], sent: Promise<unknown>, until: number, close: () => void}} */
const NOTHING = { jobs: [], sent: Promise.resolve(), until: 0, close: () => {} };

/** All that was deleted in the last moment: it is undone together. */
let last = NOTHING;

/**
 * Delete jobs. Running ones are cancelled. Where nothing brings them back, the user is asked first.
 * @param {readonly Job[]} jobs
 */
export function removeJobs(jobs) {
  if (!jobs.length) return;
  if (!service.trash || jobs[0].trashed_at) return askForEver(jobs);
  const before = Date.now() < last.until ? last : NOTHING;
  before.close();
  const all = [...before.jobs, ...jobs];
  const close = toast(textOf(all), { action: { label: t("history.undo"), run: undoLast } });
  const sent = Promise.all([before.sent, send(jobs, "POST", "/trash", close)]);
  last = { jobs: all, sent, until: Date.now() + MOMENT_MS, close };
}

/** Undo the deletions of the last moment. */
export async function undoLast() {
  const { jobs, sent, close } = last;
  last = NOTHING;
  close();
  await sent;
  await restoreJobs(jobs);
}

/** @param {readonly Job[]} jobs */
export function restoreJobs(jobs) {
  return send(jobs, "POST", "/restore");
}

/** @param {readonly Job[]} jobs */
function askForEver(jobs) {
  const run = () => deleteForEver(jobs);
  toast(t("history.askForEver", { count: jobs.length }), { action: { label: t("history.delete"), run } });
}

/** @param {readonly Job[]} jobs */
export async function deleteForEver(jobs) {
  for (const { id } of jobs) removeDrafts(id);
  await send(jobs, "DELETE", "");
}

/** @param {readonly Job[]} jobs */
function textOf(jobs) {
  if (jobs.length > 1) return t("history.deletedMany", { count: jobs.length });
  return t(isActive(jobs[0]) ? "history.cancelled" : "history.deleted", { name: nameOf(jobs[0]) });
}

/**
 * Send a request for each job. The list has none of them meanwhile.
 * @param {readonly Job[]} jobs
 * @param {string} method
 * @param {string} action Behind the path of the job.
 * @param {() => void} [onError]
 */
async function send(jobs, method, action, onError) {
  const ids = jobs.map(({ id }) => id);
  hidden.value = new Set([...hidden.value, ...ids]);
  const left = [...ids];
  /** @type {any[]} */
  const errors = [];
  const work = async () => {
    for (let id = left.shift(); id; id = left.shift()) {
      await request(`/v1/jobs/${id}${action}`, { method }).catch((error) => errors.push(error));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  await refresh(true);
  hidden.value = new Set([...hidden.value].filter((id) => !ids.includes(id)));
  const error = errors.find(({ status }) => status !== 404); // else somebody else was faster
  if (!error) return;
  onError?.();
  toastError(error);
}
