/** What people call a job: its title, notes and tags, and the dialog that changes them. */

import { requestJson } from "../core/api.js";
import { IconButton } from "../core/controls.js";
import { Dialog } from "../core/dialog.js";
import { sharedLink } from "../core/shared_link.js";
import { t } from "../core/text.js";
import { html, useState } from "../vendor/ui.js";

/** @typedef {import("./types.js").Job} Job */

/** The address of the list of all jobs with a tag. @param {string} tag */
const tagHash = (tag) => `#/?${new URLSearchParams({ tag })}`;

/** @param {{tags?: readonly string[]}} props None in what an earlier version of the service has said of a job. */
export function Tags({ tags = [] }) {
  if (!tags.length) return null;
  return html`<ul class="toolbar tags small" aria-label=${t("details.tags")}>
    ${tags.map((tag) => html`<li key=${tag}><a class="badge" href=${tagHash(tag)} dir="auto">${tag}</a></li>`)}
  </ul>`;
}

/** The notes and the tags, and the button to change them and the title. @param {{job: Job, session: import("./types.js").Session}} props */
export function Details({ job, session }) {
  const [isOpen, setOpen] = useState(false);
  if (sharedLink) return null;
  return html`<${Tags} tags=${job.tags} />
    <${IconButton} icon="edit" label=${t("details.title")} onClick=${() => setOpen(true)} />
    ${job.notes && html`<p class="job-notes" dir="auto">${job.notes}</p>`}
    ${isOpen && html`<${DetailsDialog} job=${job} session=${session} onClose=${() => setOpen(false)} />`}`;
}

/** @param {{job: Job, session: import("./types.js").Session, onClose: () => void}} props */
function DetailsDialog({ job, session, onClose }) {
  const [failure, setFailure] = useState("");
  /** Only what the reader has changed is sent: somebody else may have changed the rest. @param {SubmitEvent} event */
  const save = async (event) => {
    event.preventDefault();
    const form = /** @type {HTMLFormElement} */ (event.currentTarget);
    const fields = /** @type {HTMLInputElement[]} */ ([...form.elements]).filter((field) => field.name);
    const changed = fields.filter(({ value, defaultValue }) => value !== defaultValue);
    const json = Object.fromEntries(
      changed.map(({ name, value }) => [name, name === "tags" ? value.split(",") : value]),
    );
    try {
      const path = `/v1/jobs/${job.id}`;
      if (changed.length) session.job.value = await requestJson(path, { method: "PATCH", json });
      onClose();
    } catch (error) {
      setFailure(/** @type {Error} */ (error).message);
    }
  };
  return html`<${Dialog} name="details" onClose=${onClose} failure=${failure}>
    <form onSubmit=${save}>
      <label class="field"><span>${t("details.name")}</span>
        <input class="input" name="title" dir="auto" autocomplete="off" autofocus maxlength="200" defaultValue=${job.title ?? ""}
          placeholder=${job.filename ?? ""} /></label>
      <label class="field"><span>${t("details.tags")}</span>
        <input class="input" name="tags" dir="auto" autocomplete="off" defaultValue=${(job.tags ?? []).join(", ")} aria-describedby="details-commas" />
        <small class="muted" id="details-commas">${t("details.commas")}</small></label>
      <label class="field"><span>${t("details.notes")}</span>
        <textarea class="input" name="notes" dir="auto" rows="4" maxlength="5000" defaultValue=${job.notes ?? ""}></textarea></label>
      <div class="toolbar dialog-actions"><button class="button primary">${t("details.save")}</button></div>
    </form>
  <//>`;
}
