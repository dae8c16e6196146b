/** What leaves the service, and its menus: results, the recording, and texts for the clipboard. */

import { request } from "../core/api.js";
import { saveBlob, saveFrom } from "../core/downloads.js";
import { linkTo } from "../core/links.js";
import { hasSound } from "../core/me.js";
import { Menu } from "../core/menu.js";
import { service } from "../core/service.js";
import { t, textIfAny } from "../core/text.js";
import { toast, toastError } from "../core/toasts.js";
import { html } from "../vendor/ui.js";
import { hasCues, optionsOf } from "./file_choice.js";
import { fileNameOf, groupsOf, nameOf } from "./types.js";

/** @typedef {import("./types.js").Job} Job */
/** @typedef {import("../core/menu.js").MenuItems} MenuItems */

const NAMES = { docx: "Word", md: "Markdown" };

/** @param {string} format */
export function formatName(format) {
  if (format === "verbose_json") return t("format.detailedJson");
  return NAMES[/** @type {keyof typeof NAMES} */ (format)] ?? format.toUpperCase();
}

/**
 * One item for each format of the service that most people want, and one for the rest.
 * @param {(format: string) => void} run
 * @returns {MenuItems}
 */
export function formatItems(run) {
  const { first, rest } = groupsOf(service.formats ?? []);
  /** @param {string} format */
  const item = (format) => ({
    label: formatName(format),
    hint: textIfAny(`format.${format}`),
    run: () => run(format),
  });
  return [...first.map(item), rest.length > 0 && { label: t("export.moreFormats"), items: rest.map(item) }];
}

/**
 * @param {object} props
 * @param {Job} props.job
 * @param {Unsaved} [props.unsaved]
 * @param {() => void} [props.openPreview]
 * @param {boolean} [props.iconOnly]
 */
export function DownloadMenu({ job, unsaved, openPreview, iconOnly = false }) {
  return html`<${Menu} label=${t("export.download")} icon="download" iconOnly=${iconOnly}
    className=${iconOnly ? undefined : "button primary"} items=${downloadItems(job, unsaved, openPreview)} />`;
}

/** @param {Job} job @param {Unsaved} [unsaved] @param {() => void} [openPreview] @returns {MenuItems} */
export function downloadItems(job, unsaved, openPreview) {
  return [
    ...formatItems((format) => downloadResult(job, format, { unsaved })),
    (openPreview || hasSound.value) && "separator",
    openPreview && { label: t("preview.open"), icon: "search", run: openPreview },
    hasSound.value && { label: t("export.recording"), icon: "file", run: () => downloadRecording(job) },
  ];
}

/** @param {Job} job @param {Unsaved} [unsaved] @returns {MenuItems} */
export function copyItems(job, unsaved) {
  return [
    { label: t("export.asText"), run: () => copyResult(job, "txt", unsaved) },
    { label: t("export.asSrt"), run: () => copyResult(job, "srt", unsaved) },
  ];
}

/**
 * @typedef {object} Unsaved What an editor may have that the service lacks.
 * @property {{readonly value: boolean}} [dirty]
 * @property {() => Promise<unknown>} [save]
 */

/**
 * Download a result. A message says why, if the format cannot hold it: a link could not.
 * @param {Job} job
 * @param {string} format
 * @param {{revision?: number | null, unsaved?: Unsaved, options?: Record<string, string>}} [details] `options`: of the file;
 *   by default those that its subtitles are shown with.
 */
export async function downloadResult(job, format, details = {}) {
  const { revision = null, unsaved, options = cueOptions(format) } = details;
  try {
    await saveEdits(unsaved);
    const response = await request(resultPath(job, format, revision, options), { cache: "no-store" });
    saveBlob(await response.blob(), fileNameOf(job, format, revision));
  } catch (error) {
    toastError(error);
  }
}

/**
 * Copy a result to the clipboard.
 * @param {Job} job
 * @param {string} format
 * @param {Unsaved} [unsaved]
 */
export async function copyResult(job, format, unsaved) {
  const load = async () => {
    await saveEdits(unsaved);
    return (await request(resultPath(job, format, null, cueOptions(format)), { cache: "no-store" })).text();
  };
  try {
    await copy(load());
    toast(t("export.copied"));
  } catch (error) {
    toastError(error);
  }
}

/** @param {string} format */
function cueOptions(format) {
  return hasCues(format) ? optionsOf(format) : {};
}

/** Download the recording as it came. @param {Job} job */
export async function downloadRecording(job) {
  try {
    // The browser streams the file, and would store no message: ask first whether there is one.
    await request(`/v1/jobs/${job.id}/audio`, { headers: { Range: "bytes=0-0" } });
    saveFrom(await linkTo(job.id, "audio"), nameOf(job));
  } catch (error) {
    toastError(error);
  }
}

/** Corrections go out with the file. @param {Unsaved | undefined} unsaved */
async function saveEdits(unsaved) {
  if (!unsaved?.dirty?.value) return;
  await unsaved.save?.();
  if (unsaved.dirty.value) toast(t("export.savedText"));
}

/**
 * @param {Job} job
 * @param {string} format
 * @param {number | null} revision
 * @param {Record<string, string>} [options] Of the file.
 */
export function resultPath(job, format, revision, options = {}) {
  const query = new URLSearchParams({ format, ...options });
  if (revision !== null) query.set("revision", String(revision));
  return `/v1/jobs/${job.id}/result?${query}`;
}

/** @param {Promise<string>} text */
export async function copy(text) {
  if (navigator.clipboard?.write && typeof ClipboardItem === "function") {
    // With a promise the browser knows at once that the click asks for it.
    const blob = text.then((loaded) => new Blob([loaded], { type: "text/plain" }));
    try {
      return await navigator.clipboard.write([new ClipboardItem({ "text/plain": blob })]);
    } catch {
      await text; // its own error says more
    }
  }
  if (!copyBySelection(await text)) throw new Error(t("export.notCopied"));
}

/** For pages that browsers do not call secure. @param {string} text @returns {boolean} Whether it is copied. */
function copyBySelection(text) {
  const focused = document.activeElement;
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "visually-hidden";
  (focused?.closest("dialog") ?? document.body).append(area); // outside of an open dialog, nothing can be selected
  area.select();
  const isCopied = document.execCommand("copy");
  area.remove();
  if (focused instanceof HTMLElement) focused.focus();
  return isCopied;
}
