/** Brings back the corrections of closed tabs. */

import { t } from "../core/text.js";
import { toast } from "../core/toasts.js";
import { removeDraft, withWords } from "./drafts.js";
import { applyChanges, isSame } from "./edits_changes.js";
import { keptWords } from "./edits_words.js";
import { downloadCopy } from "./saving_copy.js";

/** @typedef {import("./types.js").Segment} Segment */
/** @typedef {import("./drafts.js").Draft} Draft */
/** @typedef {import("./session_document.js").Document} Document */
/** @typedef {import("./drafts_keeper.js").DraftKeeper} DraftKeeper */

/**
 * Put the drafts of closed tabs upon the transcript. Where two of them have changed the same segment, the newer one
 * counts, and the other one is offered as a text.
 * @param {Document} document
 * @param {import("./saving.js").Saving} saving
 * @param {DraftKeeper} drafts
 */
export async function restore(document, saving, drafts) {
  const found = await drafts.read();
  if (!found.length) return;
  const base = document.base.peek();
  /** @type {Map<string, import("./edits_changes.js").Change>} */
  const changes = new Map();
  for (const draft of found) {
    const older = draft.changes.filter((change) => changes.has(change.id));
    document.lose(older.filter((change) => !isSame(change.after, changes.get(change.id)?.after)));
    document.offer(draft.lost);
    for (const change of draft.changes) if (!changes.has(change.id)) changes.set(change.id, change);
  }
  const mine = withWords([...changes.values()], base, keptWords);
  if (found.every((draft) => draft.revision === saving.version.revision.peek())) document.receive(base, mine);
  else saving.mergeMine(applyChanges(base, mine, "before"), applyChanges(base, mine, "after"));
  if (saving.dirty.peek()) toast(t("saving.restored"));
  if (await drafts.write()) await removeAll(found);
}

/** @param {readonly Draft[]} found */
async function removeAll(found) {
  for (const draft of found) await removeDraft(draft.key);
}

/**
 * The job is deleted: its corrections can be had as a text. The drafts of closed tabs stay until then.
 * @param {Document} document
 * @param {DraftKeeper} drafts
 */
export async function offerCopy(document, drafts) {
  const mine = document.changes.peek().length ? document.segments.peek() : [];
  const found = await drafts.read();
  const theirs = found.flatMap(({ changes, lost }) => [...changes.map(({ after }) => after), ...lost]);
  const texts = /** @type {Segment[]} */ ([...mine, ...document.lost.peek(), ...theirs.filter(Boolean)]);
  if (!texts.some(({ text }) => text.trim())) return;
  const run = () => {
    downloadCopy(texts);
    removeAll(found);
  };
  toast(t("saving.gone"), { isError: true, action: { label: t("saving.copy"), run } });
}
