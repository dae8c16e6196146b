/** One job on the screen: its state, its transcript as it grows, and the corrections. */

import { ApiError, requestJson } from "../core/api.js";
import { follow } from "../core/events.js";
import { t } from "../core/text.js";
import { toast } from "../core/toasts.js";
import { batch, computed, signal } from "../vendor/ui.js";
import { removeDraft, removeDrafts, withWords } from "./drafts.js";
import { keepDraft } from "./drafts_keeper.js";
import { applyChanges, isSame } from "./edits_changes.js";
import { keptWords } from "./edits_words.js";
import { createSaving } from "./saving.js";
import { downloadCopy } from "./saving_copy.js";
import { fetchSegments, patiently } from "./saving_request.js";
import { createDocument } from "./session_document.js";
import { isActive } from "./types.js";

/** @typedef {import("./types.js").Job} Job */
/** @typedef {import("./types.js").Segment} Segment */
/** @typedef {import("./session_types.js").Session} Session See there. */
/** @typedef {import("./saving_request.js").Stored} Stored */
/** @typedef {import("./drafts.js").Draft} Draft */

/**
 * @typedef {object} Parts
 * @property {Session} session
 * @property {import("./session_document.js").Document} document
 * @property {import("./saving.js").Saving} saving
 * @property {import("./drafts_keeper.js").DraftKeeper} drafts
 * @property {AbortSignal} ending
 */

const EDITABLE = new Set(["queued", "running", "succeeded"]);

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
    offerCopy(document);
    error.value = gone;
    removeDrafts(id);
  };
  const saving = createSaving(id, document, complete, onGone);
  const drafts = keepDraft(id, document, { revision: () => saving.revision.peek(), idOf: saving.ids.sent });
  const editable = computed(() => !!job.value && EDITABLE.has(job.value.status) && !error.value);
  const stopWatching = watchPage(saving, drafts);

  function close() {
    ending.abort();
    stopWatching();
    drafts.close();
    leaving.set(id, saving.close());
  }

  const session = /** @type {Session} */ ({
    id,
    job,
    segments: document.segments,
    complete,
    error,
    connected,
    editable,
    revision: saving.revision,
    edit: (name, change, focusId = null) => editable.peek() && document.edit(name, change, focusId),
    undo: document.undo,
    redo: document.redo,
    canUndo: document.canUndo,
    canRedo: document.canRedo,
    dirty: saving.dirty,
    saveState: saving.saveState,
    refusal: saving.refusal,
    conflict: saving.conflict,
    lost: document.lost,
    save: saving.save,
    reload: saving.reload,
    close,
  });
  run({ session, document, saving, drafts, ending: ending.signal }).catch((reason) => {
    if (ending.signal.aborted) return;
    if (reason instanceof ApiError && reason.status === 404) onGone(reason);
    else error.value = reason;
  });
  return session;
}

/** @param {Parts} parts */
async function run(parts) {
  const { session, saving, ending } = parts;
  await leaving.get(session.id);
  await load(parts);
  restore(await parts.drafts.read(), parts);
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
      document.receive(saving.accept(stored));
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
    lastId: saving.lastEvent(),
    onConnection: (isConnected) => {
      session.connected.value = isConnected;
    },
    onEvent: ({ type, data }) => {
      const content = JSON.parse(data);
      if (type === "job.segments") {
        const kept = document.base.peek().filter((segment) => segment.start < content.from);
        document.receive([...kept, ...content.segments]);
        return false;
      }
      session.job.value = content;
      return !isActive(content);
    },
  });
}

/**
 * Bring back the corrections of closed tabs. Where two of them have changed the same segment, the newer one counts,
 * and the other one is offered as a text.
 * @param {Draft[]} found
 * @param {Parts} parts
 */
async function restore(found, { document, saving, drafts }) {
  if (!found.length) return;
  const base = document.base.peek();
  /** @type {Map<string, import("./edits_changes.js").Change>} */
  const changes = new Map();
  for (const draft of found) {
    const older = draft.changes.filter((change) => changes.has(change.id));
    document.lose(older.filter((change) => !isSame(change.after, changes.get(change.id)?.after)));
    for (const change of draft.changes) if (!changes.has(change.id)) changes.set(change.id, change);
  }
  const mine = withWords([...changes.values()], base, keptWords);
  if (found.every((draft) => draft.revision === saving.revision.peek())) document.receive(base, mine);
  else saving.mergeMine(applyChanges(base, mine, "before"), applyChanges(base, mine, "after"));
  if (saving.dirty.peek()) toast(t("saving.restored"));
  await drafts.write();
  for (const draft of found) await removeDraft(draft.key);
}

/** The job is deleted: its corrections can be had as a text. @param {import("./session_document.js").Document} document */
function offerCopy(document) {
  if (!document.changes.peek().length) return;
  const run = () => downloadCopy(document.segments.peek());
  toast(t("saving.gone"), { isError: true, action: { label: t("saving.copy"), run } });
}

/**
 * Save when the page is hidden, and look for what others have saved when it is seen again.
 * @param {import("./saving.js").Saving} saving
 * @param {import("./drafts_keeper.js").DraftKeeper} drafts
 * @returns {() => void} Ends it.
 */
function watchPage(saving, drafts) {
  const listening = new AbortController();
  const onVisibility = () => {
    if (globalThis.document.visibilityState === "hidden") {
      drafts.write();
      saving.saveLeaving();
    } else if (!saving.dirty.peek()) saving.reload();
  };
  globalThis.document.addEventListener("visibilitychange", onVisibility, { signal: listening.signal });
  addEventListener("online", () => saving.save(), { signal: listening.signal });
  return () => listening.abort();
}
