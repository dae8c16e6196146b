/** New recordings: files, folders, a URL or the microphone. */

import { FilesButton } from "../core/controls.js";
import { Icon } from "../core/icons.js";
import { service } from "../core/service.js";
import { remembered } from "../core/storage.js";
import { t } from "../core/text.js";
import { computed, effect, html, useLayoutEffect, useRef, useState } from "../vendor/ui.js";
import { jobs } from "./job_store.js";
import {
  hasTabSound,
  isAvailable,
  isStarting,
  permission,
  problem,
  recording,
  startRecording,
} from "./microphone.js";
import { MicrophoneBar } from "./microphone_bar.js";
import { Options } from "./options_form.js";
import { urlsIn } from "./upload_files.js";
import { UploadList } from "./upload_list.js";
import { addFiles, addUrls, uploads } from "./upload_store.js";
import { SampleButton, Welcome } from "./welcome.js";

/** Small once there is something to list. Remembered: while the list loads, the page must not jump. */
export const isCompact = remembered("compact", false);
const hasRows = computed(() => uploads.value.length > 0 || (jobs.value?.length ?? 0) > 0);
let isFirstList = true;
/** Nothing is dropped there, and there are no folders. */
const isTouch = matchMedia("(hover: none)").matches;

effect(() => {
  if (hasRows.value) isCompact.value = true;
  // Later, a search may have found nothing.
  else if (jobs.value !== null && isFirstList) isCompact.value = false;
  if (jobs.value !== null) isFirstList = false;
});

export function Intake() {
  const [isUrlOpen, openUrl] = useState(false);
  return html`<section class="intake" aria-labelledby="intake-title">
    <div class=${isCompact.value ? "card drop-zone compact" : "card drop-zone"}>
      <div class="drop-zone-text">
        <span class="drop-zone-icon"><${Icon} name="upload" /></span>
        <div>
          <h2 id="intake-title">${t(isCompact.value ? "intake.title" : "intake.firstTitle")}</h2>
          <p class="muted">${t(isTouch ? "intake.touchHint" : isCompact.value ? "intake.hint" : "intake.firstHint")}</p>
        </div>
      </div>
      ${
        recording.value
          ? html`<${MicrophoneBar} />`
          : html`<${Sources} isUrlOpen=${isUrlOpen} toggleUrl=${() => openUrl(!isUrlOpen)} />`
      }
      ${isUrlOpen && html`<${UrlForm} close=${() => openUrl(false)} />`}
      ${!isCompact.value && html`<${SampleButton} />`}
      <${MicrophoneProblem} />
      <${Options} />
    </div>
    ${!isCompact.value && html`<${Welcome} />`}
    <${UploadList} />
  </section>`;
}

/** @param {{isUrlOpen: boolean, toggleUrl: () => void}} props */
function Sources({ isUrlOpen, toggleUrl }) {
  return html`<div class="toolbar drop-zone-sources">
    <${FilesButton} class="button primary" icon="file" label=${t("intake.files")} take=${addFiles} multiple />
    ${!isTouch && html`<${FilesButton} icon="folder" label=${t("intake.folder")} take=${addFiles} multiple webkitdirectory />`}
    ${
      service.urls &&
      html`<button class="button" aria-expanded=${isUrlOpen} onClick=${toggleUrl}><${Icon} name="link" />${t("intake.url")}</button>`
    }
    ${
      isAvailable &&
      html`<button class="button" disabled=${isStarting.value} onClick=${() => startRecording(false)}>
        <${Icon} name="microphone" />${t("intake.record")}
      </button>`
    }
    ${
      hasTabSound &&
      html`<button class="button" title=${t("intake.recordTabHint")} disabled=${isStarting.value} onClick=${() => startRecording(true)}>
        <${Icon} name="volume" />${t("intake.recordTab")}
      </button>`
    }
  </div>`;
}

/** Before somebody speaks: what the microphone needs. Afterwards: why nothing is recorded. */
function MicrophoneProblem() {
  if (problem.value) return html`<p class="notice warning small" role="alert">${problem.value}</p>`;
  const isAsking = isStarting.value && permission.value !== "granted";
  const hint = !isAvailable
    ? "microphone.insecure"
    : permission.value === "denied"
      ? "microphone.refused"
      : isAsking && "microphone.asking";
  return hint && html`<p class="small muted" role="status">${t(hint)}</p>`;
}

/** @param {{close: () => void}} props */
function UrlForm({ close }) {
  const input = useRef(/** @type {HTMLInputElement | null} */ (null));
  const [isWrong, setWrong] = useState(false);
  useLayoutEffect(() => {
    const opener = document.activeElement;
    input.current?.focus();
    return () => opener instanceof HTMLElement && opener.focus();
  }, []);
  /** @param {SubmitEvent} event */
  const submit = (event) => {
    event.preventDefault();
    const urls = urlsIn(input.current?.value ?? "");
    setWrong(!urls.length);
    if (!urls.length) return;
    addUrls(urls);
    close();
  };
  return html`<form class="toolbar url-form" novalidate onSubmit=${submit} onKeyDown=${(/** @type {KeyboardEvent} */ event) => event.key === "Escape" && close()}>
    <label class="field">
      <span>${t("intake.urlLabel")}</span>
      <input ref=${input} type="url" inputmode="url" placeholder="https://" dir="ltr"
        aria-invalid=${isWrong} aria-describedby=${isWrong ? "url-wrong" : undefined} />
      ${isWrong && html`<small id="url-wrong" class="wrong" role="alert">${t("intake.urlWrong")}</small>`}
    </label>
    <button class="button primary" type="submit">${t("intake.urlAdd")}</button>
    <button class="button quiet" type="button" onClick=${close}>${t("cancel")}</button>
  </form>`;
}
