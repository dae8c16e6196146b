/** Whether the corrections are saved, and what to do if not. */

import { announce } from "../core/announcer.js";
import { Dialog } from "../core/dialog.js";
import { saveBlob } from "../core/downloads.js";
import { preciseClock } from "../core/format.js";
import { Icon } from "../core/icons.js";
import { t } from "../core/text.js";
import { html, useEffect, useSignal } from "../vendor/ui.js";

/** @typedef {import("./types.js").Session} Session */
/** @typedef {import("./types.js").Segment} Segment */
/** @typedef {import("./types.js").ConflictPart} ConflictPart */

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
  const canSave = session.takesCorrections.value && ["unsaved", "offline", "refused"].includes(state);
  const needsCopy =
    state === "refused" || (isUnkept && (state === "offline" || !session.takesCorrections.value));
  return html`<div class="toolbar save-status" data-state=${state}>
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
 * @param {import("./types.js").SaveState} state
 */
function textOf(session, state) {
  if (!session.takesCorrections.value && state === "saved") return ""; // the job runs
  if (!session.takesCorrections.value && state === "unsaved") return t("saving.later");
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

/** @typedef {"mine" | "theirs"} Choice */

/** @param {{session: import("./types.js").Session, onClose: () => void}} props */
export function ConflictDialog({ session, onClose }) {
  const choices = useSignal(/** @type {ReadonlyMap<string, Choice>} */ (new Map()));
  const conflict = session.conflict.value;
  if (!conflict) return null;
  /** @param {Choice} choice */
  const chooseAll = (choice) => {
    choices.value = new Map(conflict.parts.map((part) => [part.id, choice]));
  };
  const open = conflict.parts.length - choices.value.size;
  return html`<${Dialog} name="conflict" onClose=${onClose}>
    <p>${t("conflict.why", { count: conflict.parts.length })}</p>
    <div class="toolbar">
      <button class="button" onClick=${() => chooseAll("mine")}>${t("conflict.allMine")}</button>
      <button class="button" onClick=${() => chooseAll("theirs")}>${t("conflict.allTheirs")}</button>
      <span class="space"></span>
      <button class="button quiet" onClick=${() => downloadCopy(session.segments.value)}>
        <${Icon} name="download" /> ${t("conflict.copy")}
      </button>
    </div>
    ${conflict.parts.map((part) => html`<${Part} key=${part.id} part=${part} choices=${choices} />`)}
    <div class="toolbar dialog-actions">
      <span class="small muted" role="status">${open > 0 && t("conflict.open", { count: open })}</span>
      <button class="button quiet" onClick=${onClose}>${t("conflict.later")}</button>
      <button class="button primary" disabled=${open > 0} onClick=${() => conflict.resolve(choices.value)}>
        ${t("conflict.save")}
      </button>
    </div>
  <//>`;
}

/** @param {{part: ConflictPart, choices: import("../vendor/ui.js").Signal<ReadonlyMap<string, Choice>>}} props */
function Part({ part, choices }) {
  const chosen = choices.value.get(part.id);
  const start = Math.min(...[...part.base, ...part.mine, ...part.theirs].map((segment) => segment.start));
  /** @param {Choice} choice */
  const option = (choice) => html`<label class="conflict-side">
    <input
      type="radio"
      name=${`conflict-${part.id}`}
      checked=${chosen === choice}
      onChange=${() => (choices.value = new Map([...choices.value, [part.id, choice]]))}
    />
    <span>${t(choice === "mine" ? "conflict.mine" : "conflict.theirs")}</span>
    <${Side} segments=${part[choice]} />
  </label>`;
  return html`<fieldset class="conflict-part">
    <legend class="small muted numbers">${t("conflict.at", { time: preciseClock(start) })}</legend>
    ${option("mine")} ${option("theirs")}
  </fieldset>`;
}

/** @param {{segments: readonly Segment[]}} props */
function Side({ segments }) {
  if (!segments.length) return html`<p class="muted">${t("conflict.removed")}</p>`;
  return segments.map(
    ({ id, start, end, speaker, text }) => html`<p key=${id}>
      <small class="numbers muted">${preciseClock(start)} – ${preciseClock(end)} ${speaker ?? ""}</small>
      <span dir="auto">${text}</span>
    </p>`,
  );
}

/** @param {readonly Segment[]} segments */
function copyText(segments) {
  return segments
    .filter((segment) => segment.text.trim())
    .map(({ start, end, speaker, text }) => {
      const times = `[${preciseClock(start)} – ${preciseClock(end)}]`;
      return `${times} ${speaker ? `${speaker}: ` : ""}${text.trim()}\n`;
    })
    .join("");
}

/** @param {readonly Segment[]} segments */
export function downloadCopy(segments) {
  saveBlob(new Blob([copyText(segments)], { type: "text/plain" }), "corrections.txt");
}
