/** The subtitles over the picture: those of the page, as the file will have them. */

/** @typedef {import("./cue_rows.js").CueRow} CueRow */
/** @typedef {ReturnType<typeof createCaptions>} Captions */

/** @param {HTMLVideoElement} element */
export function createCaptions(element) {
  const track = element.addTextTrack("captions");
  track.mode = "disabled";
  /** @type {Map<CueRow, VTTCue>} */
  const shown = new Map();
  return {
    /** @param {readonly CueRow[]} rows */
    show(rows) {
      track.mode = "showing";
      const wanted = new Set(rows);
      for (const [row, cue] of shown) {
        if (wanted.has(row)) continue;
        track.removeCue(cue);
        shown.delete(row);
      }
      for (const row of rows) {
        if (shown.has(row)) continue;
        const cue = new VTTCue(row.start, row.end, escapeCue(textOf(row)));
        track.addCue(cue);
        shown.set(row, cue);
      }
    },
    hide() {
      track.mode = "disabled";
    },
  };
}

/** What the service has not made yet is shown as it was said. @param {CueRow} row */
function textOf({ lines, parts }) {
  return lines.length ? lines.join("\n") : parts.map(({ segment }) => segment.text).join(" ");
}

/**
 * A text as WebVTT writes it in a cue.
 * @param {string} text
 */
export function escapeCue(text) {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}
