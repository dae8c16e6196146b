/** Who speaks: a colour, a name and a share for each, and corrections of all that someone says. */

import { announce } from "../core/announcer.js";
import { Icon } from "../core/icons.js";
import { t } from "../core/text.js";
import { toast, toastError } from "../core/toasts.js";
import { html, useLayoutEffect, useRef, useState } from "../vendor/ui.js";
import { cleanSpeaker } from "./edits_segment.js";
import { nameToKeep } from "./speakers.js";
import { SpeakerChip } from "./speakers_chip.js";
import { FindSpeakers, JoinSpeakers } from "./speakers_forms.js";

/** @typedef {import("./segment_actions.js").Screen} Screen */
/** @typedef {import("./saving_speakers.js").SpeakersBody} SpeakersBody */
/** @typedef {"join" | "find"} Mode */

/** @param {{screen: Screen}} props */
export function SpeakersPanel({ screen }) {
  const speakers = screen.view.speakers.value;
  return html`<datalist id="speaker-names">
      ${speakers.slice(0, 100).map(({ name }) => html`<option value=${name}></option>`)}
    </datalist>
    ${speakers.length > 0 && html`<${Panel} screen=${screen} />`}`;
}

/** @param {{screen: Screen}} props */
function Panel({ screen: { session, view } }) {
  const [mode, setMode] = useState(/** @type {Mode | null} */ (null));
  const [renamed, setRenamed] = useState(/** @type {string | null} */ (null));
  const [chosen, setChosen] = useState(/** @type {ReadonlySet<string>} */ (new Set()));
  const { element, focusNext } = useFocus();
  const speakers = view.speakers.value;
  const canCorrect = session.complete.value && session.editable.value;

  /**
   * @param {SpeakersBody} body
   * @returns {Promise<boolean>} Whether it is done.
   */
  const correct = async (body) => {
    try {
      await session.correctSpeakers(body);
      return true;
    } catch (error) {
      toastError(error);
      return false;
    }
  };
  /** @param {readonly string[]} those @param {string} next The name of all of them. */
  const nameAll = async (those, next) => {
    const isDone = await correct({ names: Object.fromEntries(those.map((name) => [name, next])) });
    if (isDone) announce(t("speakers.renamed", { name: those.join(", "), next }));
    return isDone;
  };
  /** @param {string} name @param {string} wanted */
  const rename = async (name, wanted) => {
    const next = cleanSpeaker(wanted) ?? name;
    if (next === name || (await nameAll([name], next))) leave(chipOf(next));
  };
  const joined = speakers.map(({ name }) => name).filter((name) => chosen.has(name));
  const join = async () => {
    const next = nameToKeep(joined);
    const others = joined.filter((name) => name !== next);
    if (await nameAll(others, next)) leave(chipOf(next));
  };
  /** @param {number | undefined} count */
  const find = async (count) => {
    if (!(await correct(count ? { num_speakers: count } : {}))) return;
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
  return html`<section class="speakers" ref=${element} aria-label=${t("speakers.label")} onKeyDown=${press}>
    <ul class="speakers-list">
      ${speakers.map(
        (speaker) => html`<li key=${speaker.name}>
          <${SpeakerChip} speaker=${speaker} canRename=${canCorrect} isRenaming=${renamed === speaker.name}
            begin=${() => setRenamed(speaker.name)} end=${() => setRenamed(null)}
            rename=${(/** @type {string} */ next) => rename(speaker.name, next)}
            choice=${mode === "join" ? { isChosen: chosen.has(speaker.name), toggle: () => toggle(speaker.name) } : null} />
        </li>`,
      )}
    </ul>
    ${
      !mode &&
      canCorrect &&
      html`<div class="speakers-tools">
        ${
          speakers.length > 1 &&
          html`<button class="button quiet" data-mode="join" onClick=${() => enter("join")}>
            <${Icon} name="join" />${t("speakers.join")}</button>`
        }
        <button class="button quiet" data-mode="find" onClick=${() => enter("find")}>
          <${Icon} name="retry" />${t("speakers.findAgain")}</button>
      </div>`
    }
    ${mode === "join" && html`<${JoinSpeakers} names=${joined} join=${join} leave=${() => leave()} />`}
    ${mode === "find" && html`<${FindSpeakers} find=${find} leave=${() => leave()} />`}
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
