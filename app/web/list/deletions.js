/** Jobs that the user deletes: they vanish at once, and can be brought back for some seconds. */

import { ApiError, request } from "../core/api.js";
import { t } from "../core/text.js";
import { toast, toastError } from "../core/toasts.js";
import { removeDrafts } from "../job/drafts.js";
import { isActive, nameOf } from "../job/types.js";
import { signal } from "../vendor/ui.js";

/** @typedef {import("../job/types.js").Job} Job */

const UNDO_MS = 7000;
const AT_ONCE = 3; // requests

/** The ids of jobs that are deleted, or about to be. @type {import("../vendor/ui.js").Signal<ReadonlySet<string>>} */
export const removed = signal(new Set());

/**
 * What can still be undone: all that was deleted in this moment.
 * @type {{jobs: readonly Job[], timer: ReturnType<typeof setTimeout>, close: () => void} | null}
 */
let waiting = null;

addEventListener("pagehide", () => {
  for (const { id } of taken()) send(id, true);
});

/**
 * Delete jobs after a while in which the user can undo it. Running ones are cancelled. Further deletions meanwhile
 * belong to it: they are undone together.
 * @param {readonly Job[]} jobs
 */
export function removeJobs(jobs) {
  if (!jobs.length) return;
  removed.value = new Set([...removed.value, ...jobs.map(({ id }) => id)]);
  const all = [...taken(), ...jobs];
  const timer = setTimeout(() => sendInTurns(taken()), UNDO_MS);
  const close = toast(textOf(all), { action: { label: t("history.undo"), run: undoLast } });
  waiting = { jobs: all, timer, close };
}

/** Undo the deletions of this moment, if their time is not over. */
export function undoLast() {
  restore(taken().map(({ id }) => id));
}

/** The jobs that were about to be deleted: they wait no longer. */
function taken() {
  const { jobs, timer, close } = waiting ?? { jobs: [] };
  waiting = null;
  clearTimeout(timer);
  close?.();
  return jobs;
}

/** @param {readonly Job[]} jobs */
function textOf(jobs) {
  if (jobs.length > 1) return t("history.deletedMany", { count: jobs.length });
  return t(isActive(jobs[0]) ? "history.cancelled" : "history.deleted", { name: nameOf(jobs[0]) });
}

/** @param {string[]} ids */
function restore(ids) {
  removed.value = new Set([...removed.value].filter((id) => !ids.includes(id)));
}

/** @param {readonly Job[]} jobs */
function sendInTurns(jobs) {
  const left = [...jobs];
  const work = async () => {
    for (let job = left.shift(); job; job = left.shift()) await send(job.id);
  };
  for (let count = 0; count < AT_ONCE; count++) work();
}

/**
 * @param {string} id
 * @param {boolean} [keepalive] The page is about to be left.
 */
async function send(id, keepalive = false) {
  try {
    await request(`/v1/jobs/${id}`, { method: "DELETE", keepalive });
    removeDrafts(id);
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return; // somebody else was faster
    restore([id]);
    toastError(error);
  }
}
