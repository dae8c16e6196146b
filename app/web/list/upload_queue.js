/** Uploads, a few at a time, each followed by its job. */

import { signal } from "../vendor/ui.js";
import { changesAfter } from "./upload_failures.js";
import { rateMeter } from "./upload_rows.js";

/** @import { StoredUpload, Transport, UploadRow, UploadStorage } from "./upload_rows.js" */

const AT_ONCE = 2; // browsers open six connections to a host, and the page needs some

/**
 * The rows that can start.
 * @param {UploadRow[]} rows
 * @param {{has: (id: string) => boolean}} running
 */
export function nextRows(rows, running) {
  // A row with a cut connection keeps its place: the next one would fail in the same way.
  const holding = rows.filter(
    ({ stored, state }) => running.has(stored.id) || (state === "delayed" && !stored.isComplete),
  );
  const places = Math.max(0, AT_ONCE - holding.length);
  return rows.filter(({ state }) => state === "waiting").slice(0, places);
}

/**
 * @param {object} parts
 * @param {Transport} parts.transport
 * @param {UploadStorage} parts.storage
 * @param {(job: unknown) => Promise<unknown>} parts.onJob The row of a finished upload stays until it ends.
 */
export function uploadQueue({ transport, storage, onJob }) {
  /** @type {import("../vendor/ui.js").Signal<UploadRow[]>} */
  const rows = signal([]);
  /** @type {Map<string, AbortController>} */
  const running = new Map();
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;

  /** @param {string} id */
  const find = (id) => rows.value.find((row) => row.stored.id === id);

  /**
   * @param {string} id
   * @param {Partial<UploadRow>} changes
   * @param {Partial<StoredUpload>} [stored]
   */
  function update(id, changes, stored) {
    rows.value = rows.value.map((row) =>
      row.stored.id === id ? { ...row, ...changes, stored: { ...row.stored, ...stored } } : row,
    );
    const row = find(id);
    if (stored && row) void storage.put(row.stored);
  }

  /** Start the rows whose turn it is. */
  function work() {
    clearTimeout(timer);
    const now = Date.now();
    for (const { stored } of rows.value.filter((row) => row.state === "delayed" && row.retryAt <= now)) {
      update(stored.id, { state: "waiting" });
    }
    for (const row of nextRows(rows.value, running)) void run(row.stored.id);
    const retryAt = Math.min(
      ...rows.value.filter((row) => row.state === "delayed").map((row) => row.retryAt),
    );
    if (Number.isFinite(retryAt)) timer = setTimeout(work, retryAt - now);
  }

  /** @param {string} id */
  async function run(id) {
    const controller = new AbortController();
    running.set(id, controller);
    try {
      if (await upload(id, controller.signal)) await submit(id, controller.signal);
    } catch (error) {
      if (!controller.signal.aborted) fail(id, error);
    } finally {
      if (running.get(id) === controller) running.delete(id);
      work();
    }
  }

  /**
   * @param {string} id
   * @param {AbortSignal} signal
   * @returns {Promise<boolean>} Whether all bytes have arrived.
   */
  async function upload(id, signal) {
    const row = /** @type {UploadRow} */ (find(id));
    if (row.stored.isComplete) return true;
    update(id, { state: "sending", message: "" });
    if (!row.file) {
      const sent = row.stored.uploadId ? await transport.offset(row) : 0;
      signal.throwIfAborted();
      row.progress.value = { sent, rate: 0 };
      const isComplete = sent === row.stored.size && row.stored.uploadId !== "";
      update(id, isComplete ? {} : { state: "fileNeeded" }, { isComplete });
      return isComplete;
    }
    const measure = rateMeter();
    let firstSent = -1;
    await transport.send(row, {
      signal,
      onBegin: (uploadId) => update(id, {}, { uploadId }),
      onProgress: (sent) => {
        if (firstSent < 0) firstSent = sent;
        if (sent > firstSent && find(id)?.attempts) update(id, { attempts: 0 });
        row.progress.value = { sent, rate: measure(sent) };
      },
    });
    signal.throwIfAborted();
    update(id, {}, { isComplete: true });
    return true;
  }

  /**
   * @param {string} id
   * @param {AbortSignal} signal
   */
  async function submit(id, signal) {
    update(id, { state: "submitting", message: "" });
    const job = await transport.submit(/** @type {UploadRow} */ (find(id)), signal);
    // Nothing can undo the job now, so the row goes, whatever else happens.
    void storage.remove(id);
    running.delete(id);
    work();
    await onJob(job).catch(() => {});
    drop(id);
  }

  /**
   * @param {string} id
   * @param {unknown} error
   */
  function fail(id, error) {
    const row = find(id);
    if (!row) return;
    const changes = changesAfter(row, error);
    if (changes.stored?.uploadId === "") row.progress.value = { sent: 0, rate: 0 };
    update(id, changes.row, changes.stored);
  }

  /** @param {string} id */
  function drop(id) {
    rows.value = rows.value.filter((row) => row.stored.id !== id);
  }

  /** @param {string} id */
  function stop(id) {
    running.get(id)?.abort();
    running.delete(id);
  }

  return {
    rows,

    /** @param {UploadRow[]} added New ones, or those of an earlier page. */
    add(added) {
      rows.value = [...rows.value, ...added].sort((a, b) => a.stored.order - b.stored.order);
      work();
    },

    /** @param {string} id */
    pause(id) {
      stop(id);
      update(id, { state: "paused", message: "" }, { isPaused: true });
      work();
    },

    /**
     * Go on with one that is paused, delayed or failed.
     * @param {string} id
     * @param {Record<string, unknown>} [options] Instead of those it has.
     */
    resume(id, options) {
      const row = find(id);
      if (!row || running.has(id)) return;
      update(
        id,
        { state: "waiting", message: "", attempts: 0 },
        { isPaused: false, options: options ?? row.stored.options },
      );
      work();
    },

    /** Try all that are delayed: the connection is back. */
    wake() {
      for (const { stored } of rows.value.filter((row) => row.state === "delayed")) {
        update(stored.id, { state: "waiting", attempts: 0 });
      }
      work();
    },

    /**
     * The user has chosen the file of a row again.
     * @param {string} id
     * @param {Blob} file
     */
    attach(id, file) {
      stop(id); // it may be asking how much has arrived
      update(id, { file, state: "waiting", message: "", attempts: 0, isKept: false }, { isPaused: false });
      work();
    },

    /** @param {string} id */
    async remove(id) {
      const row = find(id);
      stop(id);
      drop(id);
      work();
      await storage.remove(id);
      if (row?.stored.uploadId) await transport.discard(row.stored.uploadId).catch(() => {});
    },

    /** @param {string} id @param {boolean} isKept */
    markKept(id, isKept) {
      update(id, { isKept });
    },
  };
}
