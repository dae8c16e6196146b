/** The menus of downloads and copies. */

import { Menu } from "../core/menu.js";
import { service } from "../core/service.js";
import { t } from "../core/text.js";
import { html } from "../vendor/ui.js";
import { copyResult, downloadRecording, downloadResult } from "./exports.js";
import { groupsOf } from "./exports_formats.js";

/** @typedef {import("./types.js").Job} Job */
/** @typedef {import("../core/menu.js").MenuItem} MenuItem */

/** @type {Record<string, import("../core/text.js").TextKey>} */
const HINTS = {
  srt: "format.srt",
  vtt: "format.vtt",
  txt: "format.txt",
  ass: "format.ass",
  ttml: "format.ttml",
  scc: "format.scc",
  stl: "format.stl",
  lrc: "format.lrc",
  tsv: "format.tsv",
  json: "format.json",
  verbose_json: "format.verbose_json",
};

/**
 * One item for each format of the service.
 * @param {(format: string) => void} run
 * @returns {MenuItem[]}
 */
export function formatItems(run) {
  const { first, rest } = groupsOf(service.formats ?? []);
  /** @param {string} format */
  const item = (format) => ({
    label: format === "verbose_json" ? t("format.detailedJson") : format.toUpperCase(),
    hint: format in HINTS ? t(HINTS[format]) : "",
    run: () => run(format),
  });
  return [...first.map(item), /** @type {const} */ ("separator"), ...rest.map(item)];
}

/**
 * @param {object} props
 * @param {Job} props.job
 * @param {import("./exports.js").Unsaved} [props.unsaved]
 * @param {boolean} [props.iconOnly]
 */
export function DownloadMenu({ job, unsaved, iconOnly = false }) {
  const items = formatItems((format) => downloadResult(job, format, { unsaved }));
  const recording = { label: t("export.recording"), icon: "file", run: () => downloadRecording(job) };
  return html`<${Menu} label=${t("export.download")} icon="download" iconOnly=${iconOnly}
    className=${iconOnly ? undefined : "button primary"} items=${[...items, "separator", recording]} />`;
}

/** @param {{job: Job, unsaved?: import("./exports.js").Unsaved}} props */
export function CopyMenu({ job, unsaved }) {
  const items = [
    { label: t("export.asText"), run: () => copyResult(job, "txt", unsaved) },
    { label: t("export.asSrt"), run: () => copyResult(job, "srt", unsaved) },
  ];
  return html`<${Menu} label=${t("export.copy")} icon="copy" items=${items} />`;
}
