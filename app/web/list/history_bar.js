/** Above the list: its search and filter, and what can be done with the selection. */

import { fieldValue, IconButton, Select } from "../core/controls.js";
import { Icon } from "../core/icons.js";
import { useShortcuts } from "../core/keys.js";
import { Menu } from "../core/menu.js";
import { service } from "../core/service.js";
import { t } from "../core/text.js";
import { toast, toastError } from "../core/toasts.js";
import { isSmall } from "../core/window_size.js";
import { formatItems } from "../job/exports.js";
import { html, useEffect, useRef, useSignal, useSignalEffect } from "../vendor/ui.js";
import { downloadArchives } from "./archives.js";
import { removeJobs, restoreJobs } from "./deletions.js";
import { filter, jobs, STATUSES, setFilter } from "./job_store.js";
import { selectAll, selected, selectedJobs } from "./selection.js";
import { TagsMenu } from "./tags_menu.js";

const PAUSE_MS = 250; // in typing, until the search begins
const MOST_CHARS = 200; // of the service

export function SearchBar() {
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  const { typed, type } = useTyping();
  useShortcuts([{ keys: "/", text: "history.searchKey", run: () => field.current?.focus() }], [], "move");
  /** @param {KeyboardEvent} event */
  const onKey = (event) => {
    if (event.key === "Enter") type(typed.value, 0);
    if (event.key === "Escape" && typed.value) [event.preventDefault(), type("", 0)];
  };
  /** @param {string} value */
  const choose = (value) =>
    setFilter(value === "trash" ? { status: "", trash: "true" } : { status: value, trash: "" });
  const { status, tag, trash } = filter.value;
  const choices = [["", t("history.any")], ...STATUSES.map((name) => [name, t(`status.${name}`)])];
  if (service.trash) choices.push(["trash", t("history.trash")]);
  return html`<div class="toolbar history-search" role="search">
    <span class="search-field">
      <${Icon} name="search" />
      <input ref=${field} class="input" type="search" enterkeyhint="search" maxlength=${MOST_CHARS} dir="auto"
        aria-label=${t("history.search")} placeholder=${t("history.search")} value=${typed.value} onKeyDown=${onKey}
        onInput=${(/** @type {Event} */ event) => type(fieldValue(event))} />
    </span>
    <${Select} class="input" aria-label=${t("history.filter")} value=${trash ? "trash" : status} choices=${choices} choose=${choose} />
    ${
      tag &&
      html`<button class="button" title=${t("history.anyTag")} onClick=${() => setFilter({ tag: "" })}>
        <span dir="auto">${tag}</span><${Icon} name="close" /><span class="visually-hidden">${t("history.anyTag")}</span>
      </button>`
    }
  </div>`;
}

/** The text of the search field. The address follows it after a pause. */
function useTyping() {
  const typed = useSignal(filter.peek().q);
  const timer = useRef(0);
  const send = () => {
    timer.current = 0;
    setFilter({ q: typed.peek().trim() });
  };
  useEffect(() => () => clearTimeout(timer.current), []);
  useSignalEffect(() => {
    const { q } = filter.value;
    if (!timer.current && q !== typed.peek().trim()) typed.value = q; // the address has changed
  });
  /**
   * @param {string} text
   * @param {number} [pause] ms
   */
  const type = (text, pause = PAUSE_MS) => {
    typed.value = text;
    clearTimeout(timer.current);
    timer.current = 0;
    if (pause) timer.current = window.setTimeout(send, pause);
    else send();
  };
  return { typed, type };
}

export function SelectionBar() {
  const count = selected.value.size;
  const shown = jobs.value?.length ?? 0;
  const chosen = selectedJobs.value;
  const remove = t(filter.value.trash ? "history.forEver" : "history.delete");
  /** @param {HTMLInputElement | null} box */
  const mark = (box) => {
    if (box) box.indeterminate = count > 0 && count < shown;
  };
  /** @param {(jobs: readonly import("../job/types.js").Job[]) => void} work */
  const act = (work) => () => {
    document.getElementById("history-all")?.focus();
    work(chosen);
  };
  return html`<div class="toolbar history-selection">
    <label class="check">
      <input id="history-all" type="checkbox" ref=${mark} checked=${count > 0 && count === shown}
        onClick=${(/** @type {Event} */ event) => selectAll(/** @type {HTMLInputElement} */ (event.target).checked)} />
      <span class=${count ? "numbers" : "muted"}>
        ${count ? t("history.selected", { count }) : t("history.selectAll")}
      </span>
    </label>
    ${
      count > 0 &&
      html`
      <${IconButton} icon="close" label=${t("history.unselect")} onClick=${() => selectAll(false)} />
      <span class="space"></span>
      ${
        filter.value.trash
          ? html`<${IconButton} icon="undo" label=${t("history.restore")} onClick=${act(restoreJobs)} />`
          : html`<${TagsMenu} chosen=${chosen} /><${ArchiveMenu} chosen=${chosen} />`
      }
      <${IconButton} icon="trash" label=${remove} onClick=${act(removeJobs)} />`
    }
  </div>`;
}

/** @param {{chosen: import("../job/types.js").Job[]}} props */
function ArchiveMenu({ chosen }) {
  const ids = chosen.filter((job) => job.status === "succeeded").map((job) => job.id);
  if (!ids.length) {
    const explain = () => toast(t("history.noneDone"));
    return html`<button class="button" onClick=${explain}><${Icon} name="download" />${t("export.download")}</button>`;
  }
  const items = formatItems((format) => {
    if (ids.length > 20) toast(t("history.archiveBegins"));
    downloadArchives(ids, format).catch(toastError);
  });
  return html`<${Menu} label=${t("history.downloadAs", { count: ids.length })} icon="download" iconOnly=${isSmall.value} items=${items} />`;
}
