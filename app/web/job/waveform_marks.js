/** What lies over the waveform: a veil over the part that is not transcribed, and the edges of segments. */

/** @typedef {import("./types.js").Segment} Segment */

const FEWEST_PIXELS = 24; // between two segments; closer ones would only be noise

/**
 * @param {import("../vendor/wavesurfer.js").WaveSurfer} surfer
 * @param {() => number} duration seconds
 */
export function createMarks(surfer, duration) {
  const veil = layer({ insetInlineEnd: "0", background: "var(--surface)", opacity: "0.7", display: "none" });
  const edges = layer({ insetInlineStart: "0", width: "100%" });
  veil.setAttribute("part", "veil");
  surfer.getWrapper().append(edges, veil);
  /** @type {readonly Segment[]} */
  let segments = [];
  let frame = 0;

  function drawNow() {
    frame = 0;
    const pixelsPerSecond = surfer.getWrapper().clientWidth / duration();
    const from = surfer.getScroll() / pixelsPerSecond;
    const to = from + surfer.getWidth() / pixelsPerSecond;
    const visible = segmentsWithin(segments, from, to);
    const isDense = visible.length * FEWEST_PIXELS > surfer.getWidth();
    edges.replaceChildren(...(isDense ? [] : visible.map((segment) => edgesOf(segment, duration()))));
  }

  function draw() {
    frame ||= requestAnimationFrame(drawNow);
  }

  for (const event of /** @type {const} */ (["scroll", "redraw", "ready"])) surfer.on(event, draw);
  surfer.on("destroy", () => cancelAnimationFrame(frame));
  return {
    draw,
    /** @param {readonly Segment[]} shown */
    setSegments(shown) {
      segments = shown;
      draw();
    },
    /** @param {number | null} seconds How far the transcript goes; null: it is complete. */
    setDone(seconds) {
      veil.style.display = seconds === null ? "none" : "block";
      veil.style.insetInlineStart = `${(Math.min(seconds ?? 0, duration()) / duration()) * 100}%`;
    },
  };
}

/**
 * The segments that overlap a span: of several speakers, also a long one among short ones.
 * @param {readonly Segment[]} segments
 * @param {number} from seconds
 * @param {number} to seconds
 */
export function segmentsWithin(segments, from, to) {
  return segments.filter(({ start, end }) => end > from && start < to);
}

/**
 * @param {Segment} segment
 * @param {number} duration seconds
 */
function edgesOf({ start, end }, duration) {
  return layer({
    left: `${(start / duration) * 100}%`,
    width: `${((end - start) / duration) * 100}%`,
    borderInline: "1px solid var(--border-strong)",
    opacity: "0.55",
  });
}

/** @param {Partial<CSSStyleDeclaration>} style */
function layer(style) {
  const element = document.createElement("div");
  Object.assign(element.style, {
    position: "absolute",
    insetBlock: "0",
    pointerEvents: "none",
    zIndex: "3",
    ...style,
  });
  return element;
}
