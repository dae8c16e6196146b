/** Whether the corrections are saved, and what to do if not. */

import { announce } from "../core/announcer.js";
import { t } from "../core/text.js";
import { html, useEffect, useSignal } from "../vendor/ui.js";
import { ConflictDialog } from "./conflict_dialog.js";
import { downloadCopy } from "./saving_copy.js";

/** @typedef {import("./session_types.js").Session} Session */

/** States that the user waits for, or has to act on. */
const SPOKEN = new Set(["offline", "conflict", "refused"]);

/**
 * The state in a line, with a button for what can be done, and the dialog of a conflict.
 * @param {{session: Session}} props
 */
export function SaveStatus({ session }) {
  const state = session.saveState.value;
  const isChoosing = useSignal(true);
  const isUnkept = (state === "unsaved" || state === "offline") && session.unkept.value;
  const isSpoken = SPOKEN.has(state) || isUnkept;
  const text = isUnkept ? t("saving.unkept") : textOf(session, state);
  const reason =
    state === "refused" ? session.refusal.value?.message : state === "offline" && session.delay.value;
  useEffect(() => {
    if (isSpoken) announce(text);
  }, [text]);
  useEffect(() => {
    isChoosing.value = true;
  }, [state]);
  const canSave = session.complete.value && ["unsaved", "offline", "refused"].includes(state);
  const needsCopy = state === "refused" || (isUnkept && (state === "offline" || !session.complete.value));
  return html`<div class="save-status" data-state=${state}>
    <span class=${isSpoken ? "badge danger" : "small muted"}>${text}</span>
    ${reason && html`<span class="small" dir="auto">${reason}</span>`}
    ${canSave && html`<button class="button quiet" onClick=${() => session.save()}>${t("saving.now")}</button>`}
    ${
      needsCopy &&
      html`<button class="button quiet" onClick=${() => downloadCopy(session.segments.value)}>${t("saving.copy")}</button>`
    }
    ${
      state === "conflict" &&
      html`<button class="button" onClick=${() => (isChoosing.value = true)}>${t("saving.choose")}</button>`
    }
    ${
      state === "conflict" &&
      isChoosing.value &&
      html`<${ConflictDialog} session=${session} onClose=${() => (isChoosing.value = false)} />`
    }
  </div>`;
}

/**
 * @param {Session} session
 * @param {import("./session_types.js").SaveState} state
 */
function textOf(session, state) {
  if (state === "unsaved" && !session.complete.value) return t("saving.later");
  if (state === "offline" && session.delay.value) return t("saving.unsaved");
  return t(`saving.${state}`);
}

/**
 * Corrected segments that are gone, because the job began anew.
 * @param {{session: Session}} props
 */
export function LostCorrections({ session }) {
  const lost = session.lost.value;
  if (!lost.length) return null;
  const dismiss = () => {
    session.lost.value = [];
  };
  return html`<div class="notice warning lost" role="group" aria-label=${t("saving.lostTitle")}>
    <p>${t("saving.lost", { count: lost.length })}</p>
    <ul>
      ${lost.slice(0, 5).map((segment) => html`<li key=${segment.id} dir="auto">${segment.text}</li>`)}
    </ul>
    <div class="toolbar">
      <button class="button" onClick=${() => downloadCopy(lost)}>${t("saving.copy")}</button>
      <button class="button quiet" onClick=${dismiss}>${t("saving.dismiss")}</button>
    </div>
  </div>`;
}
