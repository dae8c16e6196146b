/** The text of a segment, or a part of it: its words, those that the model doubted, and where other people begin to speak. */

import { t } from "../core/text.js";
import { hueOf } from "../fleet/swatch.js";
import { html, useMemo } from "../vendor/ui.js";
import { isUnsure, piecesOf, termsIn } from "./words.js";

/** @type {import("./cue_rows.js").LineStart[]} */
const NONE = [];

/**
 * @param {object} props
 * @param {import("./types.js").Segment} props.segment
 * @param {import("./transcript_view.js").View["colourOf"]} props.colourOf
 * @param {number} [props.from] Offset in its text.
 * @param {number} [props.to]
 * @param {readonly import("./cue_rows.js").LineStart[]} [props.starts] Where lines of a subtitle begin. What they add is no text of the page: offsets stay true.
 */
export function SegmentText({ segment, colourOf, from = 0, to = segment.text.length, starts = NONE }) {
  const pieces = useMemo(() => {
    let word = 0;
    let { speaker } = segment;
    const terms = termsIn(segment);
    return piecesOf(segment).flatMap((piece) => {
      const isBlank = !piece.text.trim();
      const next = piece.word?.word.speaker ?? speaker;
      const turn = isBlank || next === speaker ? null : next;
      if (!isBlank) speaker = next;
      const name = piece.word && isUnsure(piece.word.word) ? "unsure" : "";
      const term = terms.find(
        ({ start, end }) => piece.start < end && start < piece.start + piece.text.length,
      );
      const attributes = {
        title: term && t("terms.heard", term),
        class: turn ? `${name} turn` : name || undefined,
        style: turn ? hueOf(colourOf(turn)) : undefined,
        "data-turn": turn ?? undefined,
        "data-word": piece.word ? word++ : undefined,
      };
      return cut(piece, from, to, starts).map(([begin, end]) => {
        const text = segment.text.slice(begin, end);
        const line = starts.find(({ at }) => at === begin);
        return html`${line && html`<${LineStart} ...${line} />`}${isBlank ? text : html`<span ...${attributes} data-at=${begin}>${text}</span>`}`;
      });
    });
  }, [segment, from, to, starts]);
  return html`<span class="segment-text" data-id=${segment.id} data-from=${from}>${pieces}</span>`;
}

/** @param {import("./cue_rows.js").LineStart} props */
function LineStart({ isFirst, lead }) {
  return html`${!isFirst && html`<br />`}${lead && html`<span class="cue-lead" data-lead=${lead}></span>`}`;
}

/**
 * What is drawn of a piece, in parts that begin where lines do.
 * @param {import("./words.js").Piece} piece
 * @param {number} from
 * @param {number} to
 * @param {readonly import("./cue_rows.js").LineStart[]} starts
 * @returns {[number, number][]} Offsets in the text of the segment.
 */
function cut({ start, text }, from, to, starts) {
  const [begin, end] = [Math.max(from, start), Math.min(to, start + text.length)];
  if (begin >= end) return [];
  const edges = [begin, ...starts.map(({ at }) => at).filter((at) => at > begin && at < end), end];
  return edges.slice(1).map((edge, index) => [edges[index], edge]);
}
