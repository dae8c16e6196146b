/** The dialog that shows the beginning of a file in a format and its options, before it is downloaded or printed. */

import { request } from "../core/api.js";
import { fieldValue } from "../core/controls.js";
import { Dialog } from "../core/dialog.js";
import { Icon } from "../core/icons.js";
import { service } from "../core/service.js";
import { t } from "../core/text.js";
import { html, useEffect, useState } from "../vendor/ui.js";
import { FormatChoice, ProfileChoice } from "./cue_choice.js";
import { downloadResult, resultPath } from "./exports.js";
import { choose, chosen, DOCUMENTS, hasCues, optionsOf } from "./file_choice.js";
import { Sheet, shown } from "./sheet.js";

const LINES = 14;
const PAUSE_MS = 300; // while somebody types

/** @param {{job: import("./types.js").Job, session: import("./types.js").Session, onClose: () => void}} props */
export function PreviewDialog({ job, session, onClose }) {
  const formats = service.formats ?? [];
  const format = formats.includes(chosen.value.format) ? chosen.value.format : formats[0];
  const options = optionsOf(format);
  const isDocument = DOCUMENTS.includes(format);
  const download = () => downloadResult(job, format, { unsaved: session, options });
  return html`<${Dialog} name="preview" onClose=${onClose}>
    <div class="options-grid">
      <label class="field"><span>${t("preview.format")}</span><${FormatChoice} formats=${formats} value=${format} name="format" /></label>
      ${
        hasCues(format) &&
        html`<label class="field"><span>${t("option.profile")}</span><${ProfileChoice} /></label>
        <label class="field"><span>${t("option.max_line_chars")}</span>
          <input type="number" min="10" max="200" value=${chosen.value.width} placeholder=${t("options.automatic")}
            onInput=${(/** @type {Event} */ event) => choose({ width: fieldValue(event) })} /></label>`
      }
    </div>
    ${isDocument && html`<div class="toolbar"><${ShownCheck} name="speakers" /><${ShownCheck} name="times" /></div>`}
    ${
      format === "docx"
        ? html`<div class="preview-text" tabindex="0" role="group" aria-label=${t("preview.beginning")}><${Sheet} job=${job} segments=${session.segments.value} most=${4} /></div>`
        : html`<${Beginning} path=${format === "stl" ? "" : resultPath(job, format, null, options)} />`
    }
    <div class="toolbar dialog-actions">
      ${isDocument && html`<button class="button" onClick=${() => print()}><${Icon} name="file" />${t("preview.print")}</button>`}
      <button class="button primary" onClick=${download}><${Icon} name="download" />${t("export.download")}</button>
    </div>
  <//>`;
}

/** @param {{name: "times" | "speakers"}} props */
function ShownCheck({ name }) {
  const change = (/** @type {Event} */ { currentTarget }) => {
    shown.value = { ...shown.value, [name]: /** @type {HTMLInputElement} */ (currentTarget).checked };
  };
  return html`<label class="check"><input type="checkbox" checked=${shown.value[name]} onChange=${change} />${t(`preview.${name}`)}</label>`;
}

/** The first lines of a file. @param {{path: string}} props Empty: people cannot read it. */
function Beginning({ path }) {
  const [text, setText] = useState(/** @type {string | null} */ (null));
  const [failure, setFailure] = useState("");
  useEffect(() => {
    if (!path) return;
    const asking = new AbortController();
    const load = async () => {
      try {
        const file = await (await request(path, { cache: "no-store", signal: asking.signal })).text();
        setText(file.slice(0, 4000).split("\n").slice(0, LINES).join("\n"));
        setFailure("");
      } catch (error) {
        if (!asking.signal.aborted) setFailure(/** @type {Error} */ (error).message);
      }
    };
    const timer = setTimeout(load, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      asking.abort();
    };
  }, [path]);
  if (failure) return html`<p class="notice danger" role="alert" dir="auto">${failure}</p>`;
  if (!path) return html`<p class="muted">${t("preview.none")}</p>`;
  return html`<pre class="preview-text" dir="auto" tabindex="0" aria-label=${t("preview.beginning")} aria-busy=${text === null}>${text ?? t("loading")}</pre>`;
}
