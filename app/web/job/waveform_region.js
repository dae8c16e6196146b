/** The segment on the waveform whose edges can be dragged. */

/** @typedef {import("../vendor/wavesurfer.js").Region} Region */

const SHORTEST_S = 0.05;

/**
 * @param {import("../vendor/wavesurfer.js").WaveSurfer} surfer
 * @param {InstanceType<typeof import("../vendor/wavesurfer.js").RegionsPlugin>} regions
 * @param {import("./playback.js").Playback} playback
 */
export function createRegionView(surfer, regions, playback) {
  /** @type {Region | null} */
  let shown = null;

  /** @param {Region} region @param {boolean} isDone */
  function report(region, isDone) {
    const allowed = playback.changeRegion({ start: region.start, end: region.end }, isDone);
    place(region, allowed);
  }

  regions.on("region-update", (region) => report(region, false));
  regions.on("region-updated", (region) => report(region, true));

  return {
    /** @param {import("./playback.js").Region | null} wanted */
    show(wanted) {
      if (shown && shown.id !== wanted?.id) {
        shown.remove();
        shown = null;
      }
      if (!wanted) return;
      if (shown) return place(shown, wanted);
      shown = regions.addRegion({ ...wanted, drag: false, minLength: SHORTEST_S, color: "var(--region)" });
      paint(shown);
      reveal(surfer, wanted);
    },
  };
}

/** Wide handles in the page's colours: wavesurfer.js draws thin black ones. @param {Region} region */
function paint({ element }) {
  if (!element) return;
  Object.assign(element.style, { minWidth: "4px", borderRadius: "0" });
  for (const side of ["left", "right"]) {
    const handle = /** @type {HTMLElement | null} */ (
      element.querySelector(`[part~="region-handle-${side}"]`)
    );
    if (handle)
      handle.style.cssText += `;width:12px;border-${side}:3px solid var(--accent);touch-action:none`;
  }
}

/**
 * @param {Region} region
 * @param {import("./playback.js").Span} span
 */
function place(region, { start, end }) {
  if (region.start !== start || region.end !== end) region.setOptions({ start, end });
}

/**
 * Scroll to a span that is out of view.
 * @param {import("../vendor/wavesurfer.js").WaveSurfer} surfer
 * @param {import("./playback.js").Span} span
 */
function reveal(surfer, { start, end }) {
  const [width, left] = [surfer.getWidth(), surfer.getScroll()];
  const pixelsPerSecond = surfer.getWrapper().clientWidth / surfer.getDuration();
  const [from, to] = [start * pixelsPerSecond, end * pixelsPerSecond];
  if (from < left || to > left + width)
    surfer.setScroll(from - Math.max(width / 10, (width - (to - from)) / 2));
}
