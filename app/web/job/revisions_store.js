/** The revisions of a transcript, and how one of them differs from the newest. */

import { ApiError, request, requestJson } from "../core/api.js";
import { t } from "../core/text.js";
import { signal } from "../vendor/ui.js";
import { compareRevisions } from "./revision_diff.js";

/** @typedef {import("./types.js").Segment} Segment */
/** @typedef {{revision: number, created_at: string, changed: number}} Revision */
/** @typedef {{segments: Segment[], etag: string}} Text */
/** @typedef {ReturnType<typeof openRevisions>} Revisions */

/** @param {string} jobId */
export function openRevisions(jobId) {
  const path = `/v1/jobs/${jobId}/segments`;
  /** Newest first. @type {import("../vendor/ui.js").Signal<Revision[] | null>} */
  const revisions = signal(null);
  /** The number of the chosen one. @type {import("../vendor/ui.js").Signal<number | null>} */
  const chosen = signal(null);
  /** Of the chosen one. @type {import("../vendor/ui.js").Signal<import("./revision_diff.js").Change[] | null>} */
  const changes = signal(null);
  /** What failed last. @type {import("../vendor/ui.js").Signal<string>} */
  const failure = signal("");
  const isRestoring = signal(false);
  /** @type {Text | null} */
  let newest = null;

  /** @param {string} query @returns {Promise<Text>} */
  async function load(query) {
    const response = await request(`${path}${query}`, { cache: "no-store" });
    return { segments: (await response.json()).segments, etag: response.headers.get("ETag") ?? "" };
  }

  /** Load the list, and the newest text. */
  async function open() {
    const loading = Promise.all([
      requestJson(`/v1/jobs/${jobId}/revisions`, { cache: "no-store" }),
      load(""),
    ]);
    await guarded(async () => {
      const [answer, text] = await loading;
      [revisions.value, newest] = [answer.data, text];
    });
  }

  /** @param {number} number */
  async function choose(number) {
    chosen.value = number;
    changes.value = null;
    await guarded(async () => {
      const { segments } = await load(`?revision=${number}`);
      if (chosen.value === number) changes.value = compareRevisions(segments, newest?.segments ?? []);
    });
  }

  /**
   * Store the chosen revision again, as the newest one.
   * @returns {Promise<boolean>} Whether it is stored. Else `failure` says why not.
   */
  async function restore() {
    const [number, etag] = [chosen.value, newest?.etag];
    if (number === null || !etag || isRestoring.value) return false;
    isRestoring.value = true;
    try {
      await request(path, { method: "PUT", headers: { "If-Match": etag }, json: { revision: number } });
      return true;
    } catch (error) {
      const isConflict = error instanceof ApiError && error.status === 412;
      if (isConflict) {
        await open();
        await choose(number);
      }
      failure.value = isConflict ? t("revisions.conflict") : messageOf(error);
      return false;
    } finally {
      isRestoring.value = false;
    }
  }

  /** @param {() => Promise<void>} work */
  async function guarded(work) {
    failure.value = "";
    try {
      await work();
    } catch (error) {
      failure.value = messageOf(error);
    }
  }

  return { revisions, chosen, changes, failure, isRestoring, open, choose, restore };
}

/** @param {unknown} error */
function messageOf(error) {
  return error instanceof Error ? error.message : String(error);
}
