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

/** Deletions that can be undone, the newest last. @type {Set<{undo: () => void, sendNow: () => void}>} */
const waiting = new Set();

addEventListener("pagehide", () => {
  for (const deletion of [...waiting]) deletion.sendNow();
});

/**
 * Delete jobs after a while in which the user can undo it. Running ones are cancelled.
 * @param {readonly Job[]} jobs
 */
export function removeJobs(jobs) {
  if (!jobs.length) return;
  const ids = jobs.map((job) => job.id);
  removed.value = new Set([...removed.value, ...ids]);
  const timer = setTimeout(() => end(() => sendInTurns(ids)), UNDO_MS);
  const deletion = {
    undo: () => end(() => restore(ids)),
    sendNow: () =>
      end(() => {
        for (const id of ids) send(id, true);
      }),
  };
  const close = toast(textOf(jobs), { action: { label: t("history.undo"), run: deletion.undo } });
  waiting.add(deletion);

  /** @param {() => void} then */
  function end(then) {
    clearTimeout(timer);
    if (!waiting.delete(deletion)) return;
    close();
    then();
  }
}

/** Undo the last deletion, if its time is not over. */
export function undoLast() {
  [...waiting].at(-1)?.undo();
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

/** @param {string[]} ids */
function sendInTurns(ids) {
  const left = [...ids];
  const work = async () => {
    for (let id = left.shift(); id; id = left.shift()) await send(id);
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
