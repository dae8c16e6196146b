/** The format of subtitles and the options of files, as they are seen, shown before a download, and downloaded. */

import { service } from "../core/service.js";
import { remembered } from "../core/storage.js";
import { shown } from "./sheet.js";

const CUES = ["srt", "vtt", "ass", "ttml", "scc", "stl", "lrc"];
export const DOCUMENTS = ["docx", "md", "txt"];

/** `format`: of the preview; `subtitles`: of the view of that name. */
export const chosen = remembered("preview", { format: "docx", subtitles: "srt", profile: "", width: "" });

/** @param {Partial<typeof chosen.value>} change */
export function choose(change) {
  chosen.value = { ...chosen.value, ...change };
}

export function cueFormats() {
  return (service.formats ?? []).filter((format) => CUES.includes(format));
}

/** Whether a format has subtitles. @param {string} format */
export function hasCues(format) {
  return CUES.includes(format);
}

/** The parameters of a result. @param {string} format @returns {Record<string, string>} */
export function optionsOf(format) {
  const { times, speakers } = shown.value;
  if (DOCUMENTS.includes(format)) return { times: String(times), speakers: String(speakers) };
  if (!hasCues(format)) return {};
  const { profile, width } = chosen.value;
  const isWidth = /^\d+$/.test(width) && Number(width) >= 10 && Number(width) <= 200;
  return { ...(profile && { profile }), ...(isWidth && { max_line_chars: width }) };
}
