/** The jobs of the service that match the search, kept up to date while the list is shown. */

import { ApiError, requestJson } from "../core/api.js";
import { listHash, replaceListQuery } from "../core/router.js";
import { isActive } from "../job/types.js";
import { computed, effect, signal, untracked, useEffect } from "../vendor/ui.js";
import { reachOf, withFollowing, withNewest } from "./job_pages.js";

/** @typedef {import("../job/types.js").Job} Job */

export const STATUSES = /** @type {const} */ (["queued", "running", "succeeded", "failed"]);

const PAGE = 50;
const LARGEST_PAGE = 100; // of the service
const BUSY_MS = 2000;
const IDLE_MS = 30_000;
const ERROR_MS = 5000;
const ANSWER_MS = 60_000;

/** @type {import("../vendor/ui.js").Signal<import("./job_pages.js").JobList | null>} */
const list = signal(null);

/** The ids of jobs that are about to leave the list. @type {import("../vendor/ui.js").Signal<ReadonlySet<string>>} */
export const hidden = signal(new Set());

/** The jobs that are loaded, without those that are hidden; null before the first answer. */
export const jobs = computed(() => list.value?.jobs.filter((job) => !hidden.value.has(job.id)) ?? null);
export const hasMore = computed(() => list.value?.hasMore ?? false);

/** Why the list could not be loaded the last time. @type {import("../vendor/ui.js").Signal<Error | null>} */
export const listError = signal(null);
export const isLoadingMore = signal(false);

/** What the list is narrowed to. */
export const filter = computed(() => {
  const query = new URLSearchParams(listHash.value.split("?")[1]);
  const status = query.get("status") ?? "";
  const isKnown = STATUSES.some((known) => known === status);
  const trash = query.get("trash") === "true" ? "true" : "";
  return { q: query.get("q") ?? "", status: isKnown ? status : "", tag: query.get("tag") ?? "", trash };
});

export const isFiltered = computed(() => Object.values(filter.value).some((value) => value.trim() !== ""));

/** @param {{q?: string, status?: string, tag?: string, trash?: string}} change */
export function setFilter(change) {
  const wanted = { ...filter.value, ...change };
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(wanted)) if (value) query.set(name, value);
  replaceListQuery(query);
}

const turns = inTurns();
/** @type {ReturnType<typeof setTimeout> | undefined} */
let timer;
let isShown = false;
let loadedHash = "";

/**
 * Load what is new. Resolved when the list has all that the service has now; never rejected: see `listError`.
 * @param {boolean} [isWhole] Jobs may be gone, or back, anywhere in the list.
 */
export function refresh(isWhole = false) {
  return turns.add(`refresh ${isWhole}`, (isCurrent) =>
    change(isCurrent, async () => {
      const known = list.peek()?.jobs ?? [];
      const reach = isWhole ? Math.max(PAGE, known.length) : reachOf(known, PAGE);
      const { jobs: page, hasMore: isCut } = await fromTop(reach);
      return withNewest(list.peek() ?? { jobs: [], hasMore: isCut }, page, isCut);
    }),
  );
}

/** Load the next page. Never rejected, either. */
export async function loadMore() {
  if (isLoadingMore.value) return;
  isLoadingMore.value = true;
  await turns.add("more", (isCurrent) =>
    change(isCurrent, async () => {
      const old = list.peek() ?? { jobs: [], hasMore: false };
      const last = old.jobs.at(-1);
      if (!last) return old;
      const page = await load({ limit: PAGE, after: last.id });
      return withFollowing(old, page.data, page.has_more);
    }),
  );
  isLoadingMore.value = false;
}

/**
 * @param {() => boolean} isCurrent Whether the list is still that of the same search.
 * @param {() => Promise<import("./job_pages.js").JobList>} step
 */
async function change(isCurrent, step) {
  clearTimeout(timer);
  /** @type {Error | null} */
  let failure = null;
  try {
    const changed = await step();
    if (isCurrent()) list.value = changed;
  } catch (error) {
    failure = /** @type {Error} */ (error);
  }
  if (!isCurrent()) return;
  if (failure instanceof ApiError && failure.param === "after") {
    list.value = null; // the last job of a page is deleted: begin anew
    return void refresh();
  }
  listError.value = failure;
  schedule();
}

/** Keep the list up to date while the calling component is shown. */
export function useJobs() {
  useEffect(() => {
    isShown = true;
    const stop = effect(() => {
      const hash = listHash.value; // another search begins a new list
      untracked(() => {
        if (hash !== loadedHash) {
          list.value = null;
          isLoadingMore.value = false;
          turns.forget();
        }
        loadedHash = hash;
        refresh();
      });
    });
    document.addEventListener("visibilitychange", refreshIfVisible);
    return () => {
      isShown = false;
      stop();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", refreshIfVisible);
    };
  }, []);
}

function refreshIfVisible() {
  if (document.visibilityState === "visible" && !needsKey()) refresh();
}

/** Whether the user gave no key: the page asks for it again on demand alone. */
function needsKey() {
  const error = listError.peek();
  return error instanceof ApiError && error.status === 401;
}

function schedule() {
  if (!isShown || needsKey()) return;
  const isBusy = document.visibilityState === "visible" && list.peek()?.jobs.some(isActive);
  timer = setTimeout(refresh, listError.peek() ? ERROR_MS : isBusy ? BUSY_MS : IDLE_MS);
}

/** @param {number} wanted How many jobs, at least. */
async function fromTop(wanted) {
  /** @type {Job[]} */
  const page = [];
  for (;;) {
    const limit = Math.min(LARGEST_PAGE, wanted - page.length);
    const answer = await load({ limit, after: page.at(-1)?.id ?? "" });
    page.push(...answer.data);
    if (!answer.has_more || page.length >= wanted) return { jobs: page, hasMore: answer.has_more };
  }
}

/** A page of the list. @param {{limit: number, after: string}} page */
function load({ limit, after }) {
  const query = new URLSearchParams({ limit: String(limit) });
  const wanted = { after, ...filter.peek() };
  for (const [name, value] of Object.entries(wanted)) if (value.trim()) query.set(name, value);
  // Others wait for their turn: one whose connection is dead must end.
  return requestJson(`/v1/jobs?${query}`, { signal: AbortSignal.timeout(ANSWER_MS) });
}

/** @typedef {(isCurrent: () => boolean) => Promise<void>} Step Not rejected. `isCurrent`: it is not forgotten. */

export function inTurns() {
  /** @type {Map<string, Promise<void>>} */
  let waiting = new Map();
  let last = Promise.resolve();

  return {
    /**
     * @param {string} name
     * @param {Step} step
     * @returns {Promise<void>} Resolved when a step of this name has ended that began after this call.
     */
    add(name, step) {
      const known = waiting.get(name);
      if (known) return known;
      const mine = waiting;
      last = last.then(() => {
        mine.delete(name);
        return mine === waiting ? step(() => mine === waiting) : undefined;
      });
      waiting.set(name, last);
      return last;
    },

    /** Wait for none of the steps so far. */
    forget() {
      waiting = new Map();
      last = Promise.resolve();
    },
  };
}
