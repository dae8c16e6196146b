/** One job on the screen: its state, its transcript as it grows, and the corrections. */

import { requestJson } from "../core/api.js";
import { follow, sleep } from "../core/events.js";
import { mayCorrect, me } from "../core/me.js";
import { t } from "../core/text.js";
import { toastError } from "../core/toasts.js";
import { batch, computed, effect, signal } from "../vendor/ui.js";
import { keepDraft, offerCopy, restore } from "./drafts.js";
import { createSaving } from "./saving.js";
import { fetchSegments, isGone, patiently } from "./saving_request.js";
import { createDocument } from "./session_document.js";
import { isActive, isRecorded } from "./types.js";

/** @typedef {import("./types.js").Job} Job */
/** @typedef {import("./types.js").Session} Session See there. */

/**
 * @typedef {object} Parts
 * @property {Session} session
 * @property {import("./session_document.js").Document} document
 * @property {import("./saving.js").Saving} saving
 * @property {import("./drafts.js").DraftKeeper} drafts
 * @property {AbortSignal} ending
 */

const EDITABLE = new Set(["queued", "running", "succeeded"]);

const LEAVING_MS = 2000; // a save that takes longer is merged

/** Saves of sessions that were left, by job: a new one of the same job waits for them. @type {Map<string, Promise<unknown>>} */
const leaving = new Map();

/**
 * @param {string} id
 * @returns {Session}
 */
export function openSession(id) {
  const ending = new AbortController();
  const document = createDocument();
  const [job, complete, connected] = [signal(/** @type {Job | null} */ (null)), signal(false), signal(true)];
  const error = signal(/** @type {Error | null} */ (null));
  const onGone = (/** @type {Error} */ gone) => {
    if (error.peek()) return;
    error.value = gone;
    offerCopy(document, drafts);
  };
  // A live recording takes them from its first words to its end, which no stage tells.
  let isLive = false;
  const takesCorrections = computed(() => {
    isLive ||= job.value !== null && isRecorded(job.value);
    return complete.value || isLive;
  });
  const saving = createSaving(id, document, takesCorrections, onGone);
  const link = me.peek()?.shared; // what it corrected is kept apart from what a key did
  const drafts = keepDraft(link ? `${id}/${link.id}` : id, document, saving);
  const editable = computed(
    () => !!job.value && EDITABLE.has(job.value.status) && !error.value && mayCorrect.value,
  );
  const stopWatching = watchPage(saving, drafts, complete);
  const stopReloading = effect(() => {
    const revision = saving.version.revision.value;
    if (!job.peek()?.finished_at || revision === job.peek()?.revision) return;
    // A correction changes when the service deletes what.
    requestJson(`/v1/jobs/${id}`, { signal: ending.signal, cache: "no-store" }).then(
      (content) => (job.value = content),
      () => {}, // the times are those of before, until the next correction
    );
  });

  function close() {
    ending.abort();
    stopWatching();
    stopReloading();
    drafts.close();
    leaving.set(id, saving.close().then(drafts.write));
  }

  const session = /** @type {Session} */ ({
    id,
    job,
    segments: document.segments,
    complete,
    takesCorrections,
    error,
    connected,
    editable,
    revision: saving.version.revision,
    edit: (name, change, focusId = null) => editable.peek() && document.edit(name, change, focusId),
    bodyOf: saving.version.bodyOf,
    undo: document.undo,
    redo: document.redo,
    canUndo: document.canUndo,
    canRedo: document.canRedo,
    dirty: saving.dirty,
    saveState: saving.saveState,
    refusal: saving.refusal,
    delay: saving.delay,
    unkept: computed(() => saving.dirty.value && drafts.isFailing.value),
    conflict: saving.conflict,
    lost: document.lost,
    save: saving.save,
    alone: saving.alone,
    correctSpeakers: saving.correctSpeakers,
    reload: () => saving.reload("theirs"),
    async runAgain() {
      job.value = await requestJson(`/v1/jobs/${id}/again`, { method: "POST", json: {} });
      runToEnd(parts).catch(onFailure);
    },
    close,
  });
  const parts = { session, document, saving, drafts, ending: ending.signal };
  const onFailure = (/** @type {Error} */ reason) => {
    if (ending.signal.aborted) return;
    if (isGone(reason)) onGone(reason);
    else error.value = reason;
  };
  run(parts).catch(onFailure);
  return session;
}

/** @param {Parts} parts */
async function run(parts) {
  const { session, document, saving, drafts, ending } = parts;
  await Promise.race([leaving.get(session.id), sleep(LEAVING_MS, ending)]);
  await load(parts);
  await restore(document, saving, drafts).catch(toastError);
  await runToEnd(parts);
}

/** @param {Parts} parts */
async function runToEnd(parts) {
  const { session, saving, ending } = parts;
  const isRunning = () => session.job.value !== null && isActive(session.job.value) && !ending.aborted;
  const hasRun = isRunning();
  while (isRunning()) {
    await followJob(parts);
    if (!ending.aborted) await load(parts);
  }
  if (ending.aborted) return;
  if (session.complete.value && hasRun) saving.save();
  else if (!session.complete.value && saving.dirty.value)
    saving.refusal.value = { id: null, message: t("saving.jobFailed") };
}

/**
 * The job's state and its text so far, below the corrections of this page.
 * @param {Parts} parts
 */
async function load({ session, document, saving, ending }) {
  /** @param {string} path */
  const get = (path) => requestJson(path, { signal: ending, cache: "no-store" });
  /** @param {boolean} isConnected */
  const onConnection = (isConnected) => {
    session.connected.value = isConnected;
  };
  for (;;) {
    const stored = await patiently(() => fetchSegments(session.id, { signal: ending }), ending, onConnection);
    const job = await patiently(() => get(`/v1/jobs/${session.id}`), ending, onConnection);
    if (!stored || (job.status === "succeeded" && !stored.complete)) continue; // it ended between the two
    batch(() => {
      document.receive(saving.version.accept(stored));
      session.job.value = job;
      session.complete.value = stored.complete;
    });
    return;
  }
}

/** @param {Parts} parts */
async function followJob({ session, document, saving, ending }) {
  await follow(`/v1/jobs/${session.id}/events`, {
    signal: ending,
    lastId: saving.version.lastEvent(),
    onConnection: (isConnected) => {
      session.connected.value = isConnected;
    },
    onEvent: ({ type, data, id }) => {
      const content = JSON.parse(data);
      if (type === "job.segments") {
        // The answer to a correction comes first: it says which segments are those of the page.
        void saving.alone(async () => {
          if (Number(id) <= Number(saving.version.lastEvent())) return;
          const kept = document.base.peek().filter((segment) => segment.start < content.from);
          document.receive(saving.version.grow(kept, content.segments, id));
        });
        return false;
      }
      session.job.value = content;
      return !isActive(content);
    },
  });
  await saving.alone(async () => {}); // all events are taken in
}

/**
 * Save when the page is hidden, and look for what others have saved when it is seen again. Ask before the page is
 * closed if nothing else has the corrections.
 * @param {import("./saving.js").Saving} saving
 * @param {import("./drafts.js").DraftKeeper} drafts
 * @param {import("../vendor/ui.js").Signal<boolean>} complete Before that, all news come by themselves.
 * @returns {() => void} Ends it.
 */
function watchPage(saving, drafts, complete) {
  const listening = new AbortController();
  const onVisibility = () => {
    if (globalThis.document.visibilityState === "hidden") {
      drafts.write();
      saving.saveLeaving();
    } else if (!saving.dirty.peek() && complete.peek()) saving.reload();
  };
  globalThis.document.addEventListener("visibilitychange", onVisibility, { signal: listening.signal });
  const onUnload = (/** @type {BeforeUnloadEvent} */ event) => {
    if (saving.dirty.peek() && drafts.isFailing.peek()) event.preventDefault();
  };
  addEventListener("beforeunload", onUnload, { signal: listening.signal });
  addEventListener("online", () => saving.save(), { signal: listening.signal });
  return () => listening.abort();
}
