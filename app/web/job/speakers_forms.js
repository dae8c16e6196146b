/** The forms of the panel of speakers: several that are one, and how many there are. */

import { announce } from "../core/announcer.js";
import { t } from "../core/text.js";
import { html, useState } from "../vendor/ui.js";
import { nameToKeep } from "./speakers.js";

/** @param {{names: readonly string[], join: () => void, leave: () => void}} props `names`: the chosen ones. */
export function JoinSpeakers({ names, join, leave }) {
  return html`<div class="speakers-tools">
    <button class="button primary" disabled=${names.length < 2} onClick=${join}>
      ${names.length < 2 ? t("speakers.join") : t("speakers.joinAs", { next: nameToKeep(names) })}
    </button>
    <button class="button quiet" onClick=${leave}>${t("cancel")}</button>
  </div>`;
}

/** @param {{find: (count: number | undefined) => Promise<void>, leave: () => void}} props */
export function FindSpeakers({ find, leave }) {
  const [isBusy, setBusy] = useState(false);
  /** @param {SubmitEvent} event */
  const submit = async (event) => {
    event.preventDefault();
    if (isBusy) return;
    const data = new FormData(/** @type {HTMLFormElement} */ (event.currentTarget));
    setBusy(true);
    announce(t("speakers.finding"));
    await find(Number(data.get("count")) || undefined);
    setBusy(false);
  };
  return html`<form class="speakers-tools" onSubmit=${submit} aria-busy=${isBusy}>
    <label class="segment-field"><span>${t("option.num_speakers")}</span>
      <input class="input numbers" name="count" type="number" inputmode="numeric" min="1" max="100" step="1"
        placeholder=${t("options.automatic")} /></label>
    <button class="button primary">${t(isBusy ? "speakers.finding" : "speakers.findAgain")}</button>
    <button type="button" class="button quiet" onClick=${leave}>${t("cancel")}</button>
  </form>`;
}
