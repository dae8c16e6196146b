/** The description of a block, beside it. */

import { t } from "../core/text.js";
import { html } from "../vendor/ui.js";
import { now } from "./fleet_store.js";
import { JobName } from "./job_name.js";
import { nameOf } from "./job_names.js";
import { clipsByJob } from "./measures.js";
import { duration, factor } from "./numbers.js";

const SHOWN = 5; // jobs of one block

/** @param {{choice: import("./stage.js").Choice, isAbove: boolean}} props */
export function BlockTip({ choice, isAbove }) {
  const { block, isPinned, x } = choice;
  const shares = [...clipsByJob(block)];
  // The tip stays inside the timeline: `--at` is where the block is, in its width.
  const classes = ["tip raised", isPinned && "pinned", isAbove && "above"].filter(Boolean).join(" ");
  return html`<div class=${classes} style=${{ "--at": `${x}px` }}>
    <ul>
      ${shares.slice(0, SHOWN).map(
        ([key, clips]) => html`<li class="share">
          <${JobName} id=${key} isLink=${isPinned} />
          <span class="muted numbers">${t("fleet.clips", { count: clips, shown: clips })}</span>
        </li>`,
      )}
    </ul>
    ${shares.length > SHOWN && html`<p class="muted">${t("fleet.moreJobs", { count: shares.length - SHOWN })}</p>`}
    <p class="muted numbers">${facts(block)}</p>
    ${block.outcome !== "ok" && html`<p class=${block.outcome === "failed" ? "wrong" : "doubtful"}>${t(`fleet.outcome.${block.outcome}`)}</p>`}
  </div>`;
}

/** @param {import("./types.js").Block} block */
function facts({ id, start, end, audio_s }) {
  if (!id) return t("fleet.running", { time: duration(Math.max(0, now.value - start), 1) });
  const took = Math.max(end - start, 1e-3);
  const values = {
    audio: duration(audio_s, 1),
    time: duration(took, took < 1 ? 2 : 1),
    speed: factor(audio_s / took),
  };
  return t("fleet.blockFacts", values);
}

/**
 * A block in one sentence.
 * @param {import("./types.js").Block} block
 */
export function describe(block) {
  const names = [...clipsByJob(block).keys()].map(nameOf);
  const outcome = block.outcome === "ok" ? "" : t(`fleet.outcome.${block.outcome}`);
  return [names.slice(0, SHOWN).join(", "), facts(block), outcome].filter(Boolean).join(". ");
}
