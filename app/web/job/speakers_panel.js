/** Who speaks: a colour, a name and a share for each, and corrections of all that someone says. */

import { announce } from "../core/announcer.js";
import { onSubmit } from "../core/controls.js";
import { Icon } from "../core/icons.js";
import { percent, t } from "../core/text.js";
import { toast } from "../core/toasts.js";
import { Swatch } from "../fleet/swatch.js";
import { html, useLayoutEffect, useRef, useState } from "../vendor/ui.js";
import { cleanSpeaker } from "./edits_rules.js";
import { correctSpeakers, NameField, renameSpeakers } from "./speaker_menu.js";
import { nameToKeep } from "./speakers.js";

/** @typedef {import("./segment_actions.js").Screen} Screen */
/** @typedef {"join" | "find"} Mode */

/** @param {{screen: Screen, isShown: boolean}} props `isShown`: with more than the names for fields. */
export function SpeakersPanel({ screen, isShown }) {
  const speakers = screen.view.speakers.value;
  return html`<datalist id="speaker-names">
      ${speakers.slice(0, 100).map(({ name }) => html`<option value=${name}></option>`)}
    </datalist>
    ${isShown && (speakers.length > 0 || canFind(screen)) && html`<${Panel} screen=${screen} />`}`;
}

/** Whether the service has speech and can compare its voices. @param {Screen} screen */
function canFind({ session }) {
  return (
    session.complete.value &&
    session.segments.value.length > 0 &&
    Boolean(session.job.value?.audio_expires_at)
  );
}

/** @param {{screen: Screen}} props */
function Panel({ screen }) {
  const { session, view } = screen;
  const [mode, setMode] = useState(/** @type {Mode | null} */ (null));
  const [renamed, setRenamed] = useState(/** @type {string | null} */ (null));
  const [chosen, setChosen] = useState(/** @type {ReadonlySet<string>} */ (new Set()));
  const { element, focusNext } = useFocus();
  const speakers = view.speakers.value;
  const canCorrect = session.complete.value && session.editable.value;
  const wasFound = session.job.value?.options?.diarize || speakers.some(({ name }) => /^S\d+$/.test(name));
  const findText = t(wasFound ? "speakers.findAgain" : "speakers.find");

  /** @param {string} name @param {string} wanted */
  const rename = async (name, wanted) => {
    const next = cleanSpeaker(wanted) ?? name;
    if (next === name || (await renameSpeakers(screen, [name], next))) leave(chipOf(next));
  };
  const joined = speakers.map(({ name }) => name).filter((name) => chosen.has(name));
  const join = async () => {
    const next = nameToKeep(joined);
    const others = joined.filter((name) => name !== next);
    if (await renameSpeakers(screen, others, next)) leave(chipOf(next));
  };
  /** @param {number | undefined} count */
  const find = async (count) => {
    if (!(await correctSpeakers(screen, count ? { num_speakers: count } : {}))) return;
    toast(t("speakers.found", { count: view.speakers.peek().length }));
    leave();
  };
  /** @param {string} [next] What gets the keyboard. */
  const leave = (next = `[data-mode="${mode}"]`) => {
    focusNext(next);
    setMode(null);
    setRenamed(null);
    setChosen(new Set());
  };
  /** @param {KeyboardEvent} event */
  const press = (event) => {
    if (event.key !== "Escape" || !(mode || renamed)) return;
    event.preventDefault();
    leave(renamed ? chipOf(renamed) : undefined);
  };
  /** @param {string} name */
  const toggle = (name) => {
    const next = new Set(chosen);
    if (!next.delete(name)) next.add(name);
    setChosen(next);
  };
  /** @param {Mode} wanted */
  const enter = (wanted) => {
    focusNext(wanted === "join" ? "[type=checkbox]" : "[type=number]");
    setMode(wanted);
  };
  /** @param {import("./speakers.js").Speaker} speaker */
  const chip = ({ name, share, colour }) => {
    const label = t("speakers.rename", { name });
    const swatch = html`<${Swatch} colour=${colour} />`;
    if (renamed === name)
      return html`<span class="speaker">${swatch}<${NameField} label=${label} value=${name}
        name=${(/** @type {string} */ next) => rename(name, next)} end=${() => setRenamed(null)} /></span>`;
    const face = html`${swatch}<span class="speaker-name one-line" dir="auto">${name}</span> <small class="muted numbers">${percent(share)}</small>`;
    return mode === "join"
      ? html`<label class="speaker"><input type="checkbox" checked=${chosen.has(name)} onChange=${() => toggle(name)} />${face}</label>`
      : html`<button class="speaker" data-speaker=${name} disabled=${!canCorrect} onClick=${() => setRenamed(name)} title=${label}>${face}</button>`;
  };
  return html`<section class="speakers" ref=${element} aria-label=${t("speakers.label")} onKeyDown=${press}>
    <ul class="toolbar speakers-list">
      ${speakers.map((speaker) => html`<li key=${speaker.name}>${chip(speaker)}</li>`)}
    </ul>
    ${
      !mode &&
      canCorrect &&
      html`${
        speakers.length > 1 &&
        html`<button class="button quiet" data-mode="join" aria-label=${t("speakers.join")} title=${t("speakers.join")} onClick=${() => enter("join")}>
            <${Icon} name="join" /><span>${t("speakers.join")}</span></button>`
      }
        <button class="button quiet" data-mode="find" aria-label=${findText} title=${findText} onClick=${() => enter("find")}>
          <${Icon} name=${wasFound ? "retry" : "person"} /><span>${findText}</span></button>`
    }
    ${mode === "join" && html`<${JoinSpeakers} names=${joined} join=${join} leave=${() => leave()} />`}
    ${mode === "find" && html`<${FindSpeakers} isAgain=${wasFound} find=${find} leave=${() => leave()} />`}
  </section>`;
}

/** @param {string} name */
function chipOf(name) {
  return `[data-speaker="${CSS.escape(name)}"]`;
}

/** Gives the keyboard to a part of the panel as soon as it is drawn. */
function useFocus() {
  const element = useRef(/** @type {HTMLElement | null} */ (null));
  const [wanted, focusNext] = useState("");
  useLayoutEffect(() => {
    if (!wanted) return;
    /** @type {HTMLElement | null | undefined} */ (element.current?.querySelector(wanted))?.focus();
    focusNext("");
  }, [wanted]);
  return { element, focusNext };
}

/** @param {{names: readonly string[], join: () => void, leave: () => void}} props `names`: the chosen ones. */
function JoinSpeakers({ names, join, leave }) {
  return html`<div class="toolbar">
    <button class="button primary" disabled=${names.length < 2} onClick=${join}>
      ${names.length < 2 ? t("speakers.join") : t("speakers.joinAs", { next: nameToKeep(names) })}
    </button>
    <button class="button quiet" onClick=${leave}>${t("cancel")}</button>
  </div>`;
}

/** @param {{isAgain: boolean, find: (count: number | undefined) => Promise<void>, leave: () => void}} props */
function FindSpeakers({ isAgain, find, leave }) {
  const [isBusy, setBusy] = useState(false);
  const submit = onSubmit(async (fields) => {
    if (isBusy) return;
    setBusy(true);
    announce(t("speakers.finding"));
    await find(Number(fields.get("count")) || undefined);
    setBusy(false);
  });
  return html`<form class="toolbar" onSubmit=${submit} aria-busy=${isBusy}>
    <label class="segment-field small muted"><span>${t("option.num_speakers")}</span>
      <input class="input numbers" name="count" type="number" inputmode="numeric" min="1" max="100" step="1"
        placeholder=${t("options.automatic")} /></label>
    <button class="button primary">${t(isBusy ? "speakers.finding" : isAgain ? "speakers.findAgain" : "speakers.find")}</button>
    <button type="button" class="button quiet" onClick=${leave}>${t("cancel")}</button>
  </form>`;
}
