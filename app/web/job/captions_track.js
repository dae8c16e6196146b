/** The text tracks of a media element: the service's subtitles, or the segments as they are on the screen. */

import { linkTo } from "../core/links.js";
import { captionsOf, changes, escapeCue } from "./captions.js";

/** @typedef {import("./types.js").Segment} Segment */

/**
 * @typedef {object} Captions
 * @property {(segments: readonly Segment[]) => void} showSegments
 * @property {(revision: number) => void} showSubtitles The service's own, which break lines as files do.
 * @property {() => void} hide
 */

/**
 * @param {string} jobId
 * @param {HTMLVideoElement} element
 * @param {() => readonly Segment[]} segmentsOf Shown if the service's subtitles cannot be had.
 * @returns {Captions}
 */
export function createCaptions(jobId, element, segmentsOf) {
  const live = liveTrack(element);
  const file = document.createElement("track");
  file.kind = "captions";
  let wanted = 0; // counts what was asked for: a link that comes late is useless

  /** @param {"live" | "file" | "none"} shown */
  function show(shown) {
    wanted++;
    live.track.mode = shown === "live" ? "showing" : "disabled";
    file.track.mode = shown === "file" ? "showing" : "disabled";
  }

  /** @param {readonly Segment[]} segments */
  function showSegments(segments) {
    live.update(segments);
    show("live");
  }

  /** @param {number} revision */
  async function showSubtitles(revision) {
    const own = ++wanted;
    try {
      const href = await linkTo(jobId, "result", { format: "vtt", revision: revision || "original" });
      if (own !== wanted) return;
      if (file.src !== href) file.src = href;
      if (!file.isConnected) element.append(file);
      show("file");
    } catch {
      if (own === wanted) showSegments(segmentsOf());
    }
  }

  file.addEventListener("error", () => {
    if (file.track.mode === "showing") showSegments(segmentsOf());
  });
  return { showSegments, showSubtitles, hide: () => show("none") };
}

/** @param {HTMLVideoElement} element */
function liveTrack(element) {
  const track = element.addTextTrack("captions");
  track.mode = "disabled";
  /** @type {Map<Segment, VTTCue[]>} */
  const shown = new Map();
  return {
    track,
    /** @param {readonly Segment[]} segments */
    update(segments) {
      // A disabled track has no list of cues.
      if (track.mode === "disabled") track.mode = "hidden";
      const { removed, added } = changes(new Set(shown.keys()), segments);
      for (const segment of removed) {
        for (const cue of shown.get(segment) ?? []) track.removeCue(cue);
        shown.delete(segment);
      }
      for (const segment of added) {
        const cues = captionsOf(segment).map(
          ({ start, end, text }) => new VTTCue(start, end, escapeCue(text)),
        );
        for (const cue of cues) track.addCue(cue);
        shown.set(segment, cues);
      }
    },
  };
}
