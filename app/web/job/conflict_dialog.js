/** Asks which side of a conflict stays, for each part or for all. */

import { preciseClock } from "../core/format.js";
import { Icon } from "../core/icons.js";
import { showModal } from "../core/keys.js";
import { t } from "../core/text.js";
import { html, useSignal } from "../vendor/ui.js";
import { downloadCopy } from "./saving_copy.js";

/** @typedef {import("./types.js").Segment} Segment */
/** @typedef {import("./session_types.js").ConflictPart} ConflictPart */
/** @typedef {"mine" | "theirs"} Choice */

/** @param {{session: import("./session_types.js").Session, onClose: () => void}} props */
export function ConflictDialog({ session, onClose }) {
  const choices = useSignal(/** @type {ReadonlyMap<string, Choice>} */ (new Map()));
  const conflict = session.conflict.value;
  if (!conflict) return null;
  /** @param {Choice} choice */
  const chooseAll = (choice) => {
    choices.value = new Map(conflict.parts.map((part) => [part.id, choice]));
  };
  const open = conflict.parts.length - choices.value.size;
  return html`<dialog class="dialog conflict" ref=${showModal} onClose=${onClose} aria-labelledby="conflict-title">
    <div class="toolbar">
      <h2 id="conflict-title">${t("conflict.title")}</h2>
      <span class="space"></span>
      <button class="icon-button" aria-label=${t("conflict.later")} onClick=${onClose}><${Icon} name="close" /></button>
    </div>
    <p class="conflict-why">${t("conflict.why", { count: conflict.parts.length })}</p>
    <div class="toolbar">
      <button class="button" onClick=${() => chooseAll("mine")}>${t("conflict.allMine")}</button>
      <button class="button" onClick=${() => chooseAll("theirs")}>${t("conflict.allTheirs")}</button>
      <span class="space"></span>
      <button class="button quiet" onClick=${() => downloadCopy(session.segments.value)}>
        <${Icon} name="download" /> ${t("conflict.copy")}
      </button>
    </div>
    ${conflict.parts.map((part) => html`<${Part} key=${part.id} part=${part} choices=${choices} />`)}
    <div class="dialog-actions">
      <span class="small muted" role="status">${open > 0 && t("conflict.open", { count: open })}</span>
      <button class="button quiet" onClick=${onClose}>${t("conflict.later")}</button>
      <button class="button primary" disabled=${open > 0} onClick=${() => conflict.resolve(choices.value)}>
        ${t("conflict.save")}
      </button>
    </div>
  </dialog>`;
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
    <legend class="numbers">${t("conflict.at", { time: preciseClock(start) })}</legend>
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
