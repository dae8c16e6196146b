/** The transcript as a document: title, paragraphs with who speaks and when, and nothing else. On paper, too. */

import { clock } from "../core/format.js";
import { remembered } from "../core/storage.js";
import { html, render, useEffect } from "../vendor/ui.js";
import { contentFacts, timeFacts } from "./job_facts.js";
import { directionOf, paragraphsOf } from "./transcript_rows.js";
import { otherLanguage, titleOf } from "./types.js";
import { piecesOf } from "./words.js";

/** @typedef {import("./types.js").Segment} Segment */

/** What documents show. */
export const shown = remembered("documents", { times: false, speakers: true });

/**
 * @param {object} props
 * @param {import("./types.js").Job} props.job
 * @param {readonly Segment[]} props.segments
 * @param {number} [props.most] Paragraphs.
 */
export function Sheet({ job, segments, most = Number.POSITIVE_INFINITY }) {
  const { times, speakers } = shown.value;
  const first = most === Number.POSITIVE_INFINITY ? segments : segments.slice(0, 100);
  const paragraphs = paragraphsOf(first.flatMap(turnsOf), job.failed_spans, job).filter(
    ({ segments }) => segments,
  );
  return html`<article class="sheet" dir=${directionOf(job.language)} lang=${job.language ?? undefined}>
    <h1 dir="auto">${titleOf(job)}</h1>
    <p class="sheet-facts">${[...timeFacts(job), ...contentFacts(job)].filter(Boolean).join(" · ")}</p>
    ${paragraphs.slice(0, most).map(
      ({ segments: parts = [], key }) => html`<p key=${key} dir="auto"
        lang=${otherLanguage(job, parts[0]) ?? undefined}>
        ${times && html`<span class="sheet-time numbers">${clock(parts[0].start)} </span>`}
        ${speakers && parts[0].speaker && html`<strong><bdi>${parts[0].speaker}</bdi>: </strong>`}
        ${parts.map(({ text }) => text.trim()).join(" ")}
      </p>`,
    )}
  </article>`;
}

/** The parts of a segment that one person speaks each. @param {Segment} segment @returns {Segment[]} */
function turnsOf(segment) {
  const turns = [{ ...segment, text: "", words: /** @type {Segment["words"]} */ ([]) }];
  for (const { text, word } of piecesOf(segment)) {
    const last = turns[turns.length - 1];
    const speaker = word?.word.speaker ?? last.speaker;
    if (word && speaker !== last.speaker) {
      last.end = word.word.start;
      turns.push({
        ...last,
        id: `${segment.id}-${turns.length}`,
        start: last.end,
        end: segment.end,
        speaker,
        text,
      });
    } else last.text += text;
  }
  return turns.filter(({ text }) => text.trim());
}

/** While the page is printed, the sheet stands for it: the list has the rows near the view alone. @param {import("./types.js").Session} session */
export function usePrinting(session) {
  useEffect(() => {
    const place = document.createElement("div");
    place.className = "print-only";
    const show = () => {
      const job = session.job.peek();
      if (!job) return;
      document.body.append(place);
      render(html`<${Sheet} job=${job} segments=${session.segments.peek()} />`, place);
    };
    const hide = () => {
      render(null, place);
      place.remove();
    };
    const listening = new AbortController();
    addEventListener("beforeprint", show, { signal: listening.signal });
    addEventListener("afterprint", hide, { signal: listening.signal });
    return () => {
      listening.abort();
      hide();
    };
  }, [session]);
}
