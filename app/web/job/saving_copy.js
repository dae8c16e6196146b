/** A transcript as a text file that the page makes itself: for corrections that the service does not take. */

import { saveBlob } from "../core/downloads.js";
import { preciseClock } from "../core/format.js";

/** @typedef {import("./types.js").Segment} Segment */

/** @param {readonly Segment[]} segments */
function copyText(segments) {
  return segments
    .filter((segment) => segment.text.trim())
    .map(({ start, end, speaker, text }) => {
      const times = `[${preciseClock(start)} – ${preciseClock(end)}]`;
      return `${times} ${speaker ? `${speaker}: ` : ""}${text.trim()}\n`;
    })
    .join("");
}

/** @param {readonly Segment[]} segments */
export function downloadCopy(segments) {
  saveBlob(new Blob([copyText(segments)], { type: "text/plain" }), "corrections.txt");
}
