/** Find and replace, and the marks of what was found. */

import { announce } from "../core/announcer.js";
import { fieldValue, IconButton } from "../core/controls.js";
import { Icon } from "../core/icons.js";
import { t } from "../core/text.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "../vendor/ui.js";
import { rangeInText, TEXT } from "./carets.js";
import { toastStep } from "./segment_actions.js";

/** @typedef {import("./find.js").Search} Search */
/** @typedef {import("./segment_actions.js").Screen} Screen */
/** @typedef {import("./edits.js").Match} Match */

/** @param {{screen: Screen, search: Search}} props */
export function FindBar({ screen, search }) {
  const mode = search.mode.value;
  const canReplace = screen.session.editable.value;
  useLayoutEffect(() => focusField(search), [mode]);
  useEffect(() => hideMatches, []);
  if (!mode) return null;
  const isNone = !search.matches.value.length;

  const close = () => {
    const shown = search.matches.peek()[search.at.peek()];
    search.mode.value = null;
    const id = shown?.id ?? screen.view.current.peek();
    if (id) screen.view.go(id);
  };
  /** @param {KeyboardEvent} event */
  const press = (event) => {
    // Undo and redo of these fields are the browser's.
    const isInField = event.target instanceof HTMLInputElement;
    if (isInField && (event.ctrlKey || event.metaKey) && /^[zy]$/i.test(event.key)) event.stopPropagation();
    if (event.key === "Escape") {
      event.preventDefault();
      close();
    }
  };
  return html`<div class="find-bar" role="search" onKeyDown=${press}>
    <div class="toolbar find-line">
      <${QueryField} screen=${screen} search=${search} />
      <${Count} search=${search} />
      <${IconButton} class="find-up" icon="chevron" label=${t("find.previous")} disabled=${isNone} onClick=${() => search.move(-1)} />
      <${IconButton} icon="chevron" label=${t("find.next")} disabled=${isNone} onClick=${() => search.move(1)} />
      <${Toggle} state=${search.matchCase} text="find.matchCase" label=${html`<span aria-hidden="true">Aa</span>`} search=${search} />
      <${Toggle} state=${search.wholeWord} text="find.wholeWord" label=${html`<${Icon} name="wholeWord" />`} search=${search} />
      ${
        canReplace &&
        html`<${IconButton} icon="replace" label=${t("find.replaceMode")} aria-pressed=${mode === "replace"}
          onClick=${() => (search.mode.value = mode === "replace" ? "find" : "replace")} />`
      }
      <${IconButton} icon="close" label=${t("close")} onClick=${close} />
    </div>
    ${mode === "replace" && canReplace && html`<${Replacement} screen=${screen} search=${search} />`}
  </div>`;
}

/** The cursor goes where one types next: what is known is not asked for again. @param {Search} search */
export function focusField({ mode, query }) {
  const bar = document.querySelector(".find-bar");
  const isKnown = mode.peek() === "replace" && query.peek() !== "";
  /** @type {HTMLInputElement | null | undefined} */
  const field = bar?.querySelector(isKnown ? "[name=replacement]" : "[name=query]");
  field?.focus({ preventScroll: true }); // the bar is in sight, wherever one reads
  field?.select();
}

/** @param {{screen: Screen, search: Search}} props */
function QueryField({ screen, search }) {
  const { view } = screen;
  const origin = useRef(/** @type {string | null} */ (null)); // where one reads: the query leads away, letter by letter
  /** @param {Event} event */
  const write = (event) => {
    if (origin.current === null || !search.query.peek())
      origin.current = view.list.seen(view.current.peek()) ?? null;
    search.query.value = fieldValue(event);
    search.begin(origin.current);
  };
  /** @param {KeyboardEvent} event */
  const press = (event) => {
    if (event.key !== "Enter" || event.isComposing) return;
    event.preventDefault();
    search.move(event.shiftKey ? -1 : 1);
    announce(countText(search));
  };
  return html`<input class="input" name="query" type="search" dir="auto" autocomplete="off" aria-label=${t("find.query")}
    placeholder=${t("find.query")} value=${search.query.value} onInput=${write} onKeyDown=${press} />`;
}

/** @param {Search} search */
function countText(search) {
  const count = search.matches.value.length;
  if (!search.query.value) return "";
  if (!count) return t("find.none");
  const at = search.at.value;
  if (at < 0) return t("find.count", { count });
  return t(at > 0 && at === search.first.value ? "find.fromHere" : "find.place", { at: at + 1, count });
}

/** @param {{search: Search}} props */
function Count({ search }) {
  return html`<span class="find-count small muted numbers">${countText(search)}</span>`;
}

/**
 * @param {{search: Search, state: import("../vendor/ui.js").Signal<boolean>, text: "find.matchCase" | "find.wholeWord", label: unknown}} props
 */
function Toggle({ search, state, text, label }) {
  const toggle = () => {
    state.value = !state.value;
    search.begin(search.matches.peek()[search.at.peek()]?.id ?? null);
  };
  return html`<${IconButton} label=${t(text)} aria-pressed=${state.value} onClick=${toggle}>${label}<//>`;
}

/**
 * What would only delete asks first: its button becomes the question.
 * @param {{screen: Screen, search: Search}} props
 */
function Replacement({ screen, search }) {
  const [asked, ask] = useState(/** @type {"one" | "all" | null} */ (null));
  const { length: found } = search.matches.value;
  const text = search.replacement.value;
  useLayoutEffect(() => ask(null), [text, search.query.value]); // at once: Enter may come in the frame that shows it
  /** @param {"one" | "all"} which */
  const replace = (which) => {
    const count = which === "all" ? found : 1;
    const isShown = which === "all" || search.at.peek() >= 0; // else the first one is shown only
    if (!text && isShown && asked !== which) {
      ask(which);
      return announce(t("find.remove", { count }));
    }
    if (which === "one") return search.replaceOne();
    if (search.replaceEvery()) toastStep(screen, t("find.replaced", { count }));
    focusField(search); // its button is off now
  };
  /** @param {KeyboardEvent} event */
  const press = (event) => {
    if (event.key !== "Enter" || event.isComposing) return;
    event.preventDefault();
    if (found) replace("one");
  };
  return html`<div class="toolbar find-line">
    <input class="input" name="replacement" dir="auto" autocomplete="off" aria-label=${t("find.replacement")} placeholder=${t("find.replacement")}
      value=${text} onKeyDown=${press}
      onInput=${(/** @type {Event} */ event) => (search.replacement.value = fieldValue(event))} />
    ${
      /** @type {const} */ (["one", "all"]).map(
        (
          which,
        ) => html`<button class=${asked === which ? "button danger" : "button"} disabled=${!found} onClick=${() => replace(which)}>
        ${asked === which ? t("find.remove", { count: which === "all" ? found : 1 }) : t(which === "all" ? "find.replaceAll" : "find.replace")}
      </button>`,
      )
    }
  </div>`;
}

/** The matches of each segment, for the lists that the search makes. @type {WeakMap<readonly Match[], Map<string, Match[]>>} */
const grouped = new WeakMap();

/**
 * @param {readonly Match[]} matches
 * @param {Match | null} shown
 */
export function showMatches(matches, shown) {
  const [found, current] = [new Highlight(), new Highlight()];
  const groups = groupsOf(matches);
  const texts = /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll(TEXT));
  for (const text of texts) {
    for (const match of groups.get(text.dataset.id ?? "") ?? []) {
      const range = rangeInText(text, match);
      if (range) (match === shown ? current : found).add(range);
    }
  }
  CSS.highlights.set("found", found);
  CSS.highlights.set("found-current", current);
}

/** The ranges of a screen that is left would keep its rows in memory. */
export function hideMatches() {
  CSS.highlights.delete("found");
  CSS.highlights.delete("found-current");
}

/** @param {readonly Match[]} matches */
function groupsOf(matches) {
  const groups = grouped.get(matches) ?? Map.groupBy(matches, ({ id }) => id);
  grouped.set(matches, groups);
  return groups;
}
