/** Merges what someone else has stored with the corrections of this page, and asks where both changed the same. */

import { t } from "../core/text.js";
import { toast } from "../core/toasts.js";
import { batch, signal } from "../vendor/ui.js";
import { merge, resolved } from "./conflict.js";
import { applyChanges, changesBetween, isSame } from "./edits_changes.js";
import { separated } from "./edits_order.js";
import { fetchSegments } from "./saving_request.js";

/** @typedef {import("./types.js").Segment} Segment */
/** @typedef {import("./session_types.js").Conflict} Conflict */
/** @typedef {ReturnType<typeof createMerging>} Merging */

/**
 * @param {string} job
 * @param {import("./session_document.js").Document} document
 * @param {import("./saving_version.js").Version} version
 * @param {() => void} onResolved The user has chosen.
 */
export function createMerging(job, document, version, onResolved) {
  const conflict = signal(/** @type {Conflict | null} */ (null));

  /**
   * Take in what the service has.
   * @returns {Promise<boolean>} Whether nothing needs a choice.
   */
  async function takeTheirs() {
    const stored = await fetchSegments(job, { etag: version.etag() });
    if (!stored || version.isOwn(stored)) return true;
    const [base, mine] = [document.base.peek(), document.segments.peek()];
    return mergeWith(version.accept(stored), base, mine);
  }

  /**
   * Take in what the service has made of all speakers, below what was corrected meanwhile.
   * @param {import("./saving_request.js").Stored} stored
   */
  function takeAnswer(stored) {
    const [base, mine] = [document.base.peek(), document.segments.peek()];
    return mergeWith(version.accept(stored), base, mine, "speaker");
  }

  /**
   * @param {readonly Segment[]} theirs
   * @param {readonly Segment[]} base
   * @param {readonly Segment[]} mine
   * @param {"theirs" | "speaker"} [name] Of the step.
   */
  function mergeWith(theirs, base, mine, name = "theirs") {
    const outcome = merge(base, mine, theirs);
    const isMixed =
      changesBetween(base, mine, isSame).length > 0 && changesBetween(mine, theirs, isSame).length > 0;
    batch(() => {
      // Until there is a choice, the draft and the screen have mine. Speakers who became one may have talked at once.
      document.merged(theirs, separated(resolved(outcome, new Map())), name);
      if (outcome.parts.length) conflict.value = { parts: outcome.parts, resolve };
    });
    if (isMixed && name === "theirs" && !outcome.parts.length) toast(t("saving.merged"));
    return !outcome.parts.length;
  }

  /** @param {ReadonlyMap<string, "mine" | "theirs">} choices */
  function resolve(choices) {
    const theirs = conflict.peek()?.parts.filter((part) => choices.get(part.id) === "theirs") ?? [];
    const changes = theirs.flatMap((part) => changesBetween(part.mine, part.theirs));
    batch(() => {
      conflict.value = null;
      document.edit("theirs", (segments) => applyChanges(segments, changes, "after"), null);
    });
    onResolved();
  }

  return {
    conflict,
    takeTheirs,
    takeAnswer,
    /**
     * Put changes of another base upon what the service has.
     * @param {readonly Segment[]} base
     * @param {readonly Segment[]} mine
     */
    mergeMine: (base, mine) => mergeWith(document.base.peek(), base, mine),
  };
}
