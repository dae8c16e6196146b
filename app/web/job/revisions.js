/** The dialog that shows earlier revisions of the text, and brings one back. */

import { ApiError, request, requestJson } from "../core/api.js";
import { Dialog } from "../core/dialog.js";
import { preciseClock, shortDateTime } from "../core/format.js";
import { Icon } from "../core/icons.js";
import { Menu } from "../core/menu.js";
import { language, t } from "../core/text.js";
import { messageOf, toast } from "../core/toasts.js";
import { computed, html, signal, useEffect, useMemo, useState } from "../vendor/ui.js";
import { downloadResult, formatItems } from "./exports.js";
import { compareRevisions } from "./revision_diff.js";

const UNNAMED = /^key-[0-9a-f]{16}$/; // the owner of a key without a name

/** @typedef {import("./types.js").Job} Job */
/** @typedef {import("./revision_diff.js").Change} Change */
/** @typedef {import("./types.js").Segment} Segment */

/**
 * @typedef {import("./exports.js").Unsaved & {reload?: () => Promise<void>}} Editing
 *   What the job's session does for corrections.
 */

/** @param {{job: Job, session: Editing, onClose: () => void}} props */
export function RevisionsDialog({ job, session, onClose }) {
  const store = useMemo(() => openRevisions(job.id), [job.id]);
  useEffect(() => {
    // Corrections that are not saved yet become a revision of their own, which can be brought back as well.
    const saving = session.dirty?.value ? session.save?.() : undefined;
    Promise.resolve(saving).finally(store.open);
  }, [store]);
  /** @param {Event} event */
  const restore = async ({ currentTarget }) => {
    const dialog = /** @type {HTMLElement} */ (currentTarget).closest("dialog");
    const name = nameOf(store.chosen.value ?? 0);
    if (!(await store.restore())) return;
    dialog?.close(); // the focus goes back to where it was
    toast(t("revisions.restored", { name }));
    await session.reload?.();
  };
  return html`<${Dialog} name="revisions" onClose=${onClose} failure=${store.failure.value}>
    <div class="revisions-panes">
      <${List} store=${store} />
      <${Shown} store=${store} job=${job} onRestore=${restore} />
    </div>
  <//>`;
}

/** @param {{store: Revisions}} props */
function List({ store }) {
  const revisions = store.revisions.value;
  if (!revisions) return html`<${Loading} store=${store} />`;
  return html`<ul class="revisions-list" aria-label=${t("revisions.list")}>
    ${revisions.map(
      (revision, index) => html`<li key=${revision.revision}>
        <button type="button" data-revision=${revision.revision} aria-pressed=${store.chosen.value === revision.revision}
          onClick=${() => store.choose(revision.revision)}>
          <strong>${nameOf(revision.revision)}${index === 0 && html` <span class="badge">${t("revisions.newest")}</span>`}</strong>
          <small class="small muted numbers">${shortDateTime(revision.created_at, language.value)}</small>
          ${revision.revision > 0 && html`<small class="small muted" dir="auto">${factsOf(revision).join(" · ")}</small>`}
        </button>
      </li>`,
    )}
  </ul>`;
}

/** @param {{store: Revisions, job: Job, onRestore: (event: Event) => void}} props */
function Shown({ store, job, onRestore }) {
  const [isAll, setAll] = useState(false);
  const revisions = store.revisions.value ?? [];
  const chosen = store.chosen.value;
  if (chosen === null) {
    const text = revisions.length === 1 ? t("revisions.only") : revisions.length ? t("revisions.choose") : "";
    return html`<p class="revisions-shown muted">${text}</p>`;
  }
  const isNewest = revisions[0]?.revision === chosen;
  const changes = store.changes.value;
  const items = formatItems((format) => downloadResult(job, format, { revision: chosen }));
  return html`<section class="revisions-shown" aria-label=${nameOf(chosen)}>
    <div class="toolbar">
      <button class="button primary" disabled=${isNewest || !changes || store.isRestoring.value} onClick=${onRestore}>
        <${Icon} name="history" />${t("revisions.restore")}
      </button>
      <${Menu} label=${t("export.download")} icon="download" items=${items} />
    </div>
    ${
      changes
        ? html`<${Changes} changes=${changes} before=${store.before.value} isAll=${isAll} setAll=${setAll} />`
        : html`<${Loading} store=${store} />`
    }
  </section>`;
}

/** @param {{store: Revisions}} props */
function Loading({ store }) {
  return store.failure.value ? null : html`<p class="muted" aria-busy="true">${t("loading")}</p>`;
}

/**
 * @param {{changes: Change[], before: number | null, isAll: boolean, setAll: (isAll: boolean) => void}} props
 *   `before`: the revision that they are compared with.
 */
function Changes({ changes, before, isAll, setAll }) {
  const different = changes.filter((change) => change.kind !== "same");
  const isOfSpeakers = different.every(
    ({ speakers, isMoved, parts }) => speakers && !isMoved && parts.every(isSame),
  );
  const explanation =
    before === null
      ? "revisions.isOriginal"
      : !different.length
        ? "revisions.same"
        : isOfSpeakers
          ? "revisions.speakersAlone"
          : "revisions.difference";
  const shown = isAll || !different.length ? changes : different;
  return html`
    <p class="small muted">${t(explanation, { name: nameOf(before ?? 0) })}</p>
    ${
      different.length > 0 &&
      html`<label class="check small">
      <input type="checkbox" checked=${isAll} onChange=${() => setAll(!isAll)} />${t("revisions.all")}
    </label>`
    }
    <ol class="revisions-text" tabindex="0">
      ${shown.map((change) => html`<${ChangeRow} key=${`${change.kind}-${change.id}`} change=${change} />`)}
    </ol>
  `;
}

/** @param {import("./revision_diff.js").Part} part */
function isSame({ kind }) {
  return kind === "same";
}

/** @param {{change: Change}} props */
function ChangeRow({ change }) {
  const { speakers } = change;
  return html`<li data-kind=${change.kind}>
    <span class="small muted numbers">
      ${preciseClock(change.start)}${change.isMoved && html` · ${t("revisions.moved")}`}${speakers && html` · <span dir="auto">${speakers.from ?? "–"} → ${speakers.to ?? "–"}</span>`}
    </span>
    <p dir="auto">
      ${change.parts.map(({ kind, text }) => {
        if (kind === "added") return html`<ins>${text}</ins>`;
        return kind === "removed" ? html`<del>${text}</del>` : text;
      })}
    </p>
  </li>`;
}

/** @param {number} revision */
function nameOf(revision) {
  return revision ? t("revisions.number", { number: revision }) : t("revisions.original");
}

/** What was done, why, and by whom, as far as that is known. @param {Revision} revision */
function factsOf({ reason, restored, changed, by_link, owner }) {
  const why = reason && t(`revisions.${reason}`, { name: nameOf(restored ?? 0) });
  const who = by_link ? t("revisions.byLink") : owner && !UNNAMED.test(owner) && owner;
  return [why, t("revisions.changed", { count: changed }), who].filter(Boolean);
}

/**
 * @typedef {{revision: number, created_at: string, changed: number, by_link: boolean,
 *   reason: "corrected" | "speakers" | "restored" | "transcribed_again" | null, restored: number | null,
 *   owner: string | null}} Revision
 */
/** @typedef {{segments: Segment[], etag: string}} Text */
/** @typedef {ReturnType<typeof openRevisions>} Revisions */

/** @param {string} jobId */
export function openRevisions(jobId) {
  const path = `/v1/jobs/${jobId}/segments`;
  /** Newest first. @type {import("../vendor/ui.js").Signal<Revision[] | null>} */
  const revisions = signal(null);
  /** The number of the chosen one. @type {import("../vendor/ui.js").Signal<number | null>} */
  const chosen = signal(null);
  /** The one before the chosen one; null: this is the oldest. */
  const before = computed(() => {
    const place = revisions.value?.findIndex(({ revision }) => revision === chosen.value) ?? -1;
    return (place >= 0 && revisions.value?.[place + 1]?.revision) ?? null;
  });
  /** What the chosen one changed. @type {import("../vendor/ui.js").Signal<import("./revision_diff.js").Change[] | null>} */
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
      const wanted = [number, before.value ?? number].map((revision) => load(`?revision=${revision}`));
      const [shown, earlier] = await Promise.all(wanted);
      if (chosen.value === number) changes.value = compareRevisions(shown.segments, earlier.segments);
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

  return { revisions, chosen, before, changes, failure, isRestoring, open, choose, restore };
}
