/** The text tracks of a media element: the service's subtitles, or the segments as they are on the screen. */

import { linkTo } from "../core/links.js";
import { captionsOf, changes, escapeCue } from "./captions.js";

/** @typedef {import("./types.js").Segment} Segment */

/**
 * @typedef {object} Captions
 * @property {(segments: readonly Segment[]) => void} showSegments
 * @property {(revision: number) => Promise<void>} showSubtitles The service's own, which break lines as files do.
 * @property {() => void} hide
 */

/**
 * @param {string} jobId
 * @param {HTMLVideoElement} element
 * @returns {Captions}
 */
export function createCaptions(jobId, element) {
  const live = liveTrack(element);
  const file = document.createElement("track");
  file.kind = "captions";
  let wanted = "";

  /** @param {boolean} isLive @param {boolean} isFile */
  function setModes(isLive, isFile) {
    live.track.mode = isLive ? "showing" : "disabled";
    file.track.mode = isFile ? "showing" : "disabled";
  }

  return {
    showSegments(segments) {
      wanted = "";
      live.update(segments);
      setModes(true, false);
    },
    async showSubtitles(revision) {
      const query = { format: "vtt", revision: revision || "original" };
      wanted = `${revision}`;
      const href = await linkTo(jobId, "result", query);
      if (wanted !== `${revision}`) return;
      if (file.src !== href) file.src = href;
      if (!file.isConnected) element.append(file);
      setModes(false, true);
    },
    hide() {
      wanted = "";
      setModes(false, false);
    },
  };
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
