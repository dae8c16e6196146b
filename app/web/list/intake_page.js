/** Recordings that are dropped or pasted anywhere on the page, on every screen. */

import { Icon } from "../core/icons.js";
import { go, route } from "../core/router.js";
import { service } from "../core/service.js";
import { t } from "../core/text.js";
import { toast } from "../core/toasts.js";
import { html, signal, useLayoutEffect } from "../vendor/ui.js";
import { restoreRecording } from "./microphone.js";
import { isOnScreen, MicrophoneBar } from "./microphone_bar.js";
import { filesOf, urlsIn } from "./upload_files.js";
import { addFiles, addUrls, restoreUploads } from "./upload_store.js";

const isDragging = signal(false);

/** Also shows a running recording on the other screens. */
export function IntakeEverywhere() {
  useLayoutEffect(() => {
    void restoreUploads();
    void restoreRecording();
    const ended = new AbortController();
    const { signal } = ended;
    addEventListener("dragenter", over, { signal });
    addEventListener("dragover", over, { signal });
    addEventListener("dragleave", leave, { signal });
    addEventListener("drop", drop, { signal });
    addEventListener("paste", paste, { signal });
    return () => ended.abort();
  }, []);
  return html`
    ${isDragging.value && html`<div class="drop-overlay"><p><${Icon} name="upload" />${t("intake.drop")}</p></div>`}
    ${route.value.screen !== "list" && !isOnScreen() && html`<div class="microphone-elsewhere"><${MicrophoneBar} /></div>`}
  `;
}

/** Parts of the page that are dragged are no files. @param {DragEvent} event */
function hasFiles(event) {
  return event.dataTransfer?.types.includes("Files") ?? false;
}

/** @param {DragEvent} event */
function over(event) {
  if (!hasFiles(event)) return;
  event.preventDefault();
  /** @type {DataTransfer} */ (event.dataTransfer).dropEffect = "copy";
  isDragging.value = true;
}

/** @param {DragEvent} event */
function leave(event) {
  // Between two elements of the page, the event names the one that is entered.
  if (!event.relatedTarget) isDragging.value = false;
}

/** @param {DragEvent} event */
async function drop(event) {
  isDragging.value = false;
  if (!hasFiles(event)) return;
  event.preventDefault();
  take(await filesOf(/** @type {DataTransfer} */ (event.dataTransfer)));
}

/** @param {ClipboardEvent} event */
async function paste(event) {
  const { target, clipboardData } = event;
  const isField =
    target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA)$/.test(target.tagName));
  if (isField || !clipboardData || document.querySelector("dialog[open]")) return;
  if (clipboardData.files.length) {
    event.preventDefault();
    return take(await filesOf(clipboardData));
  }
  const urls = urlsIn(clipboardData.getData("text/plain"));
  if (!urls.length) return;
  event.preventDefault();
  if (!service.urls) return void toast(t("intake.noUrls"));
  addUrls(urls);
  showOnOtherScreens(urls.length);
}

/** @param {{files: File[], unread: number}} found */
function take({ files, unread }) {
  if (unread) toast(t("intake.unread", { count: unread }), { isError: true });
  else if (!files.length) toast(t("intake.nothing"));
  const count = addFiles(files);
  if (count) showOnOtherScreens(count);
}

/** @param {number} count */
function showOnOtherScreens(count) {
  if (route.value.screen === "list") return;
  toast(t("upload.added", { count }), { action: { label: t("intake.show"), run: () => go("#/") } });
}
