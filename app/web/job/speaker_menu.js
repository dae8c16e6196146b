/** A speaker's name in the text, as a menu: other names, who speaks in a part, and how the voice sounds. */

import { announce } from "../core/announcer.js";
import { hasSound } from "../core/me.js";
import { Menu } from "../core/menu.js";
import { t } from "../core/text.js";
import { toastError } from "../core/toasts.js";
import { Swatch } from "../fleet/swatch.js";
import { html, useLayoutEffect, useRef, useState } from "../vendor/ui.js";
import { cleanSpeaker, MOST_SPEAKER_CHARS } from "./edits_rules.js";
import { giveSpeaker } from "./segment_actions.js";
import { sampleOf } from "./speakers.js";

/** @typedef {import("./segment_actions.js").Screen} Screen */
/** @typedef {"rename" | "part" | "onwards"} Question What a name is asked for. */

const MOST_OFFERED = 9; // as many as have keys
const SAMPLE_S = 8; // at most
const INEXACT_S = 0.1; // players seek to a place near the wanted one, and end before the end

/**
 * @typedef {object} SpeakerMenuProps
 * @property {Screen} screen
 * @property {string} name
 * @property {import("../fleet/colours.js").Colour} colour
 * @property {() => ReadonlySet<string>} part The ids of the segments below the name, in order, as neighbours.
 * @property {number} [tabindex]
 */

/** @param {SpeakerMenuProps} props */
export function SpeakerMenu({ screen, name, colour, part, tabindex }) {
  const [question, ask] = useState(/** @type {Question | null} */ (null));
  const { session, view } = screen;
  const swatch = html`<${Swatch} colour=${colour} />`;
  const canEdit = session.editable.value;

  const onwards = () => {
    const [first] = part();
    const segments = session.segments.peek();
    const from = segments.findIndex(({ id }) => id === first);
    return new Set(
      segments
        .slice(from)
        .filter(({ speaker }) => speaker === name)
        .map(({ id }) => id),
    );
  };
  /** @param {Question} asked @param {string} next */
  const answer = async (asked, next) => {
    ask(null);
    const [first] = part();
    const wanted = cleanSpeaker(next);
    if (wanted && wanted !== name) {
      if (asked === "rename") await renameSpeakers(screen, [name], wanted);
      else giveSpeaker(screen, asked === "part" ? part() : onwards(), wanted);
    }
    view.go(first);
  };
  if (question) {
    const label = question === "rename" ? t("speakers.rename", { name }) : t("edit.speaker");
    const leave = (/** @type {KeyboardEvent} */ event) => {
      if (event.key === "Escape") answer(question, name);
    };
    return html`<span class="speaker" onKeyDown=${leave}>${swatch}<${NameField} label=${label} value=${question === "rename" ? name : ""}
      name=${(/** @type {string} */ next) => answer(question, next)} end=${() => ask(null)} /></span>`;
  }
  /** @param {Question} asked */
  const names = (asked) => [
    ...view.speakers.value
      .filter((other) => other.name !== name)
      .slice(0, MOST_OFFERED)
      .map((other) => ({ label: other.name, run: () => void answer(asked, other.name) })),
    { label: t("speakers.another"), icon: "plus", run: () => ask(asked) },
  ];
  const sample = sampleOf(session.segments.value, name);
  const canRename = canEdit && session.complete.value;
  /** @type {import("../core/menu.js").MenuItems} */
  const items = [
    canRename && { label: t("speakers.rename", { name }), icon: "edit", run: () => ask("rename") },
    canEdit && { label: t("speakers.part"), icon: "person", items: names("part") },
    canEdit && { label: t("speakers.onwards"), icon: "next", items: names("onwards") },
    hasSound.value &&
      sample && { label: t("speakers.sample"), icon: "volume", run: () => playSample(screen, sample) },
  ];
  return html`<${Menu} label=${`${t("edit.speaker")}: ${name}`} className="speaker-menu" tabindex=${tabindex}
    face=${html`${swatch}${name}`} items=${items} disabled=${!items.some(Boolean)} />`;
}

/**
 * Play a part of what someone says, and go back to where it was, playing or not.
 * @param {Screen} screen
 * @param {import("./playback.js").Span} span
 */
function playSample({ playback, view }, { start, end }) {
  const [back, isFollowing] = [playback.time.peek(), view.following.peek()];
  const wasPlaying = playback.playing.peek();
  const until = Math.min(end, start + SAMPLE_S, playback.duration.peek() || Infinity) - INEXACT_S;
  view.following.value = false; // the text stays where it is
  playback.play(start);
  const stop = playback.time.subscribe((now) => {
    if (now < until && now >= start - INEXACT_S) return;
    queueMicrotask(() => stop());
    view.following.value = isFollowing;
    if (now < start || now > until + 1) return; // the reader has gone elsewhere
    if (!wasPlaying) playback.pause();
    playback.seek(back);
  });
}

/**
 * Let the service correct all speakers.
 * @param {Screen} screen
 * @param {import("./saving_merge.js").SpeakersBody} body
 * @returns {Promise<boolean>} Whether it is done.
 */
export async function correctSpeakers({ session }, body) {
  try {
    await session.correctSpeakers(body);
    return true;
  } catch (error) {
    toastError(error);
    return false;
  }
}

/**
 * @param {Screen} screen
 * @param {readonly string[]} names
 * @param {string} next The name of all of them.
 */
export async function renameSpeakers(screen, names, next) {
  const isDone = await correctSpeakers(screen, {
    names: Object.fromEntries(names.map((name) => [name, next])),
  });
  if (isDone) announce(t("speakers.renamed", { name: names.join(", "), next }));
  return isDone;
}

/** @param {{label: string, value: string, name: (next: string) => void, end: () => void}} props */
export function NameField({ label, value, name, end }) {
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  useLayoutEffect(() => field.current?.select(), []);
  /** @param {KeyboardEvent} event */
  const press = (event) => {
    // Undo and redo of the field are the browser's.
    if ((event.ctrlKey || event.metaKey) && /^[zy]$/i.test(event.key)) event.stopPropagation();
    if (event.key !== "Enter" || event.isComposing) return;
    event.preventDefault();
    name(/** @type {HTMLInputElement} */ (event.target).value);
  };
  return html`<input class="input" ref=${field} dir="auto" list="speaker-names" autocomplete="off" maxlength=${MOST_SPEAKER_CHARS}
    aria-label=${label} placeholder=${label} value=${value} onKeyDown=${press} onBlur=${end} />`;
}
