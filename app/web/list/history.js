/** All jobs of the service: search, state, downloads. */

import { announce } from "../core/announcer.js";
import { isReachable } from "../core/health.js";
import { useShortcuts } from "../core/keys.js";
import { service } from "../core/service.js";
import { t } from "../core/text.js";
import { html, useEffect, useRef } from "../vendor/ui.js";
import { undoLast } from "./deletions.js";
import { SearchBar, SelectionBar } from "./history_bar.js";
import { JobRow } from "./job_row.js";
import {
  filter,
  hasMore,
  isFiltered,
  isLoadingMore,
  jobs,
  listError,
  loadMore,
  refresh,
  setFilter,
  useJobs,
} from "./job_store.js";
import { selected } from "./selection.js";

export function History() {
  useJobs();
  useResultsSpoken();
  useShortcuts([
    { keys: "Delete", text: "history.deleteKey", run: () => {} }, // rows have it; here for the list of keys
    { keys: "Control+z", text: "history.undoKey", run: undoLast },
  ]);
  const isEmpty = jobs.value?.length === 0;
  const title = t(filter.value.trash ? "history.trash" : "history.title");
  return html`<section class="history" aria-labelledby="history-title">
    <h2 id="history-title" class=${isEmpty && !isFiltered.value ? "visually-hidden" : ""}>${title}</h2>
    ${!(isEmpty && !isFiltered.value) && html`<${SearchBar} />`}
    ${listError.value && isReachable.value && html`<${LoadError} error=${listError.value} />`}
    ${isEmpty ? html`<${Empty} />` : html`<${Rows} />`}
  </section>`;
}

function Rows() {
  if (!jobs.value) {
    return !listError.value && html`<p class="history-loading muted" aria-busy="true">${t("loading")}</p>`;
  }
  return html`
    <div class="card history-list">
      <${SelectionBar} />
      <ul aria-label=${t("history.list")}>
        ${jobs.value.map((job) => html`<${JobRow} key=${job.id} job=${job} isSelected=${selected.value.has(job.id)} />`)}
      </ul>
      ${hasMore.value && html`<${More} count=${jobs.value.length} />`}
    </div>
  `;
}

/** The next page comes when the end of the list is near. @param {{count: number}} props */
function More({ count }) {
  const place = useRef(/** @type {HTMLElement | null} */ (null));
  useEffect(() => {
    if (!place.current) return;
    const load = (/** @type {IntersectionObserverEntry[]} */ entries) => {
      if (entries.some((entry) => entry.isIntersecting)) loadMore();
    };
    const observer = new IntersectionObserver(load, { rootMargin: "600px" });
    observer.observe(place.current);
    return () => observer.disconnect();
  }, [count]); // observed anew after each page: the end may still be in view
  return html`<p class="history-more" ref=${place}>
    <button class="button quiet" aria-disabled=${isLoadingMore.value} onClick=${loadMore}>${t("history.more")}</button>
  </p>`;
}

function Empty() {
  if (!isFiltered.value) {
    return html`<p class="muted">${t("history.empty")} ${service.trash && html`<a href="#/?trash=true">${t("history.trash")}</a>`}</p>`;
  }
  return html`<div class="empty">
    <p>${t(filter.value.trash ? "history.trashEmpty" : "history.notFound")}</p>
    <p><button class="button" onClick=${() => setFilter({ q: "", status: "", tag: "", trash: "" })}>${t("history.showAll")}</button></p>
  </div>`;
}

/** @param {{error: Error}} props */
function LoadError({ error }) {
  return html`<div class="notice danger toolbar" role="alert">
    <span dir="auto">${error.message}</span>
    <span class="space"></span>
    <button class="button quiet" onClick=${() => refresh()}>${t("history.retry")}</button>
  </div>`;
}

/** How many a search has found, once: what the list does later is not spoken. */
function useResultsSpoken() {
  const { q, status, tag, trash } = filter.value;
  const isLoaded = jobs.value !== null;
  const isFirst = useRef(true);
  useEffect(() => {
    if (!isLoaded) return;
    if (!isFirst.current && isFiltered.value && !hasMore.value) {
      announce(t("history.found", { count: jobs.value?.length ?? 0 }));
    }
    isFirst.current = false;
  }, [q, status, tag, trash, isLoaded]);
}
