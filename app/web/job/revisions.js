/** The dialog that shows earlier revisions of the text, and brings one back. */

import { dateTime, preciseClock } from "../core/format.js";
import { Icon } from "../core/icons.js";
import { closeDialog, showModal } from "../core/keys.js";
import { Menu } from "../core/menu.js";
import { language, t } from "../core/text.js";
import { toast } from "../core/toasts.js";
import { html, useEffect, useMemo, useState } from "../vendor/ui.js";
import { downloadResult } from "./exports.js";
import { formatItems } from "./exports_menu.js";
import { openRevisions } from "./revisions_store.js";

/** @typedef {import("./types.js").Job} Job */
/** @typedef {import("./revisions_store.js").Revision} Revision */
/** @typedef {import("./revisions_store.js").Revisions} Revisions */
/** @typedef {import("./revision_diff.js").Change} Change */
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
  return html`<dialog class="dialog revisions" ref=${showModal} onClose=${onClose} aria-labelledby="revisions-title">
    <div class="toolbar">
      <h2 id="revisions-title">${t("revisions.title")}</h2>
      <span class="space"></span>
      <button class="icon-button" aria-label=${t("close")} onClick=${closeDialog}><${Icon} name="close" /></button>
    </div>
    ${store.failure.value && html`<p class="notice danger" role="alert" dir="auto">${store.failure.value}</p>`}
    <div class="revisions-panes">
      <${List} store=${store} />
      <${Shown} store=${store} job=${job} onRestore=${restore} />
    </div>
  </dialog>`;
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
          <small class="muted numbers">${dateTime(revision.created_at, language.value)}</small>
          ${revision.revision > 0 && html`<small class="muted">${t("revisions.changed", { count: revision.changed })}</small>`}
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
        ? html`<${Changes} changes=${changes} isNewest=${isNewest} isAll=${isAll} setAll=${setAll} />`
        : html`<${Loading} store=${store} />`
    }
  </section>`;
}

/** @param {{store: Revisions}} props */
function Loading({ store }) {
  return store.failure.value ? null : html`<p class="muted" aria-busy="true">${t("loading")}</p>`;
}

/** @param {{changes: Change[], isNewest: boolean, isAll: boolean, setAll: (isAll: boolean) => void}} props */
function Changes({ changes, isNewest, isAll, setAll }) {
  const different = changes.filter((change) => change.kind !== "same");
  const explanation = isNewest
    ? "revisions.isNewest"
    : different.length
      ? "revisions.difference"
      : "revisions.same";
  const shown = isAll || !different.length ? changes : different;
  return html`
    <p class="small muted">${t(explanation)}</p>
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

/** @param {{change: Change}} props */
function ChangeRow({ change }) {
  return html`<li data-kind=${change.kind}>
    <span class="small muted numbers">
      ${preciseClock(change.start)}${change.isMoved && html` · ${t("revisions.moved")}`}
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
