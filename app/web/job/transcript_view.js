/**
 * What the reader does with the transcript: which segments have the keyboard or are selected, what is edited,
 * what is searched.
 */

import { remembered } from "../core/storage.js";
import { GREY } from "../fleet/colours.js";
import { batch, computed, signal, untracked } from "../vendor/ui.js";
import { rangeInText, TEXT } from "./carets.js";
import { idOf } from "./cue_rows.js";
import { createCues } from "./cues.js";
import { remove } from "./edits.js";
import { speakerBook } from "./speakers.js";
import { createVirtualList } from "./virtual_list.js";

/** @typedef {import("./types.js").Segment} Segment */
/**
 * @template T
 * @typedef {import("../vendor/ui.js").Signal<T>} Signal
 */

/** @typedef {"text" | "start" | "speaker"} Field */

/**
 * @typedef {object} Editing
 * @property {string} id
 * @property {number} at Where in its text: of several subtitles, one is edited.
 * @property {boolean} [isWritten] `at` is before the caret.
 * @property {Field} field That gets the keyboard.
 * @property {{start: number, end: number} | null} selection In the text; null: the caret at its end.
 */

/**
 * @typedef {object} View
 * @property {Signal<string | null>} current The key of the segment or subtitle that has, or had, the keyboard.
 * @property {Signal<Editing | null>} editing
 * @property {Signal<"text" | "subtitles">} layout Remembered.
 * @property {import("./cues.js").Cues} cues
 * @property {Signal<boolean>} hasCaptions They are shown over the picture.
 * @property {(key: string) => Place | undefined} placeOf What a key stands for: a segment, or a subtitle.
 * @property {(id: string, at?: number) => string} keyAt Of the row that has this place of a segment's text.
 * @property {() => readonly Place[]} places All of the layout, in order. Reads signals.
 * @property {() => string[]} keys Theirs.
 * @property {() => string | undefined} editedKey
 * @property {{id: string, start: number, end: number} | null} word The word that was clicked or shown last, in its segment's text.
 * @property {Signal<boolean>} following The list scrolls along with what plays.
 * @property {Signal<"find" | "replace" | null>} search What the search bar shows.
 * @property {Selection} selection
 * @property {import("../vendor/ui.js").ReadonlySignal<readonly import("./speakers.js").Speaker[]>} speakers
 * @property {(name: string | null) => import("../fleet/colours.js").Colour} colourOf Reads a signal.
 * @property {import("./virtual_list.js").VirtualList} list
 * @property {(key: string, focus?: boolean, part?: Editing["selection"]) => void} go `part`: of the segment's text, that is selected.
 * @property {(key: string, selection?: Editing["selection"], field?: Field) => void} edit
 * @property {() => void} stop Stop editing. The keyboard stays where it is.
 * @property {() => void} leave Stop editing. The keyboard goes to the segment.
 * @property {() => void} focusWanted Gives the keyboard to the segment that `go` named, as soon as it is drawn.
 */

/** @typedef {Pick<import("./cue_rows.js").CueRow, "key" | "parts" | "lines" | "start" | "end">} Place */

const layout = remembered("transcript.layout", /** @type {"text" | "subtitles"} */ ("text"));

/**
 * @param {import("./types.js").Session} session
 * @returns {View}
 */
export function createView(session) {
  /** @type {Signal<string | null>} */
  const current = signal(null);
  /** @type {Signal<Editing | null>} */
  const editing = signal(null);
  const list = createVirtualList(clearTop, clearBottom);
  const selected = createSelection(session);
  const speakersOf = speakerBook();
  const speakers = computed(() => speakersOf(session.segments.value));
  const hasCaptions = signal(false);
  const isWanted = computed(() => layout.value === "subtitles" || hasCaptions.value);
  const cues = createCues(session, isWanted, editing, editedKey);
  let wantsFocus = false;
  /** @type {{id: string, start: number, end: number} | null} */
  let wantedPart = null;

  /** @type {View["keyAt"]} */
  const keyAt = (id, at) => (layout.peek() === "text" ? id : (cues.rowAt(id, at)?.key ?? id));

  /** @type {View["editedKey"]} */
  function editedKey() {
    const edited = editing.peek();
    return edited ? keyAt(edited.id, edited.at) : undefined;
  }

  /** @type {View["placeOf"]} */
  function placeOf(key) {
    const row = layout.peek() === "subtitles" && (cues.row(key) ?? cues.rowAt(idOf(key)));
    if (row) return row;
    const segment = session.segments.peek().find(({ id }) => id === idOf(key));
    return segment && placeOfSegment(segment);
  }

  const places = () =>
    layout.value === "text" ? session.segments.value.map(placeOfSegment) : cues.rows.value;
  const keys = () => untracked(places).map(({ key }) => key);

  /** @type {View["go"]} */
  function go(wanted, focus = true, part = null) {
    const key = part ? keyAt(idOf(wanted), part.start) : (placeOf(wanted)?.key ?? wanted);
    if (editedKey() !== key) stop();
    current.value = key;
    list.reveal(key);
    wantsFocus = focus;
    wantedPart = part && { ...part, id: idOf(wanted) };
    focusWanted();
  }

  /** @type {View["edit"]} */
  function edit(wanted, selection = null, field = "text") {
    if (!session.editable.value) return go(wanted);
    const [part] = placeOf(wanted)?.parts ?? [];
    const id = selection ? idOf(wanted) : (part?.segment.id ?? idOf(wanted));
    const at = selection?.start ?? part?.from ?? 0;
    const key = keyAt(id, at);
    if (editedKey() !== key) stop();
    selected.clear();
    batch(() => {
      current.value = key;
      editing.value = { id, at, field, selection };
    });
    list.reveal(key);
  }

  /** A segment that was left without text goes: the service would not store it. */
  function stop() {
    const left = session.segments.peek().find(({ id }) => id === editing.peek()?.id);
    if (!editing.peek()) return;
    editing.value = null;
    if (left && view.word?.id === left.id) {
      const at = Math.min(view.word.start, left.text.length); // the word may be another one now
      view.word = { id: left.id, start: at, end: at };
    }
    if (left && !left.text.trim())
      session.edit("remove", (segments) => remove(segments, new Set([left.id])), left.id);
  }

  function leave() {
    const key = editedKey();
    const index = session.segments.peek().findIndex(({ id }) => id === editing.peek()?.id);
    stop();
    const after = session.segments.peek();
    const next = key !== undefined && placeOf(key) ? key : after[Math.min(index, after.length - 1)]?.id;
    if (next) go(next);
  }

  /** The row may be drawn only now. */
  function focusWanted() {
    const row = wantsFocus && current.value ? list.rowElement(current.value) : null;
    if (!row || editing.value) return;
    wantsFocus = false;
    row.focus({ preventScroll: true });
    /** @type {HTMLElement | null} */
    const text = wantedPart && row.querySelector(`${TEXT}[data-id="${CSS.escape(wantedPart.id)}"]`);
    const range = text && wantedPart && rangeInText(text, wantedPart);
    if (range)
      getSelection()?.setBaseAndExtent(
        range.startContainer,
        range.startOffset,
        range.endContainer,
        range.endOffset,
      );
    wantedPart = null;
  }

  /** @type {View} */
  const view = {
    current,
    editing,
    layout,
    cues,
    hasCaptions,
    placeOf,
    keyAt,
    places,
    keys,
    editedKey,
    word: null,
    following: signal(true),
    search: signal(null),
    selection: selected,
    speakers,
    colourOf: (name) => speakers.value.find((speaker) => speaker.name === name)?.colour ?? GREY,
    list,
    go,
    edit,
    stop,
    leave,
    focusWanted,
  };
  return view;
}

/** @param {Segment} segment @returns {Place} */
function placeOfSegment(segment) {
  const { id, start, end, text } = segment;
  return { key: id, start, end, lines: [], parts: [{ segment, from: 0, to: text.length }] };
}

/** The lower edge of what stays at the top of the window. */
function clearTop() {
  const covers = [...document.querySelectorAll(".top-bar, .job-top, .player-picture")];
  return Math.max(0, ...covers.filter(isOnTop).map((cover) => cover.getBoundingClientRect().bottom));
}

const SPARE_PX = 12;

/** The upper edge of what stays at the bottom. */
function clearBottom() {
  const player = document.querySelector(".player");
  return (player?.getBoundingClientRect().top ?? innerHeight) - SPARE_PX;
}

/** Beside the text it covers nothing. @param {Element} cover */
function isOnTop(cover) {
  const text = document.querySelector(".transcript")?.getBoundingClientRect();
  const box = cover.getBoundingClientRect();
  return (
    getComputedStyle(cover).position === "sticky" &&
    (!text || (box.left < text.right && box.right > text.left))
  );
}

/** @typedef {ReturnType<typeof createSelection>} Selection */

/** @type {ReadonlySet<string>} */
const NONE = new Set();

/**
 * @typedef {object} Part Less than whole segments.
 * @property {number} start Offset in the text of the first one.
 * @property {number} end In that of the last one.
 * @property {Range} range What of the page it is.
 */

/** @param {import("./types.js").Session} session */
export function createSelection(session) {
  const range = signal(/** @type {{from: string, to: string, part?: Part} | null} */ (null));
  const ids = computed(() => {
    if (!range.value) return NONE;
    const { from, to } = range.value;
    const segments = session.segments.value;
    const [first, last] = [idOf(from), idOf(to)]
      .map((id) => segments.findIndex((segment) => segment.id === id))
      .sort((one, other) => one - other);
    return first < 0 ? NONE : new Set(segments.slice(first, last + 1).map(({ id }) => id));
  });

  return {
    ids,
    part: computed(() => (ids.value.size && range.value?.part) || null),
    /** Select from one segment to another. @param {string} from @param {string} to @param {Part} [part] */
    select(from, to, part) {
      const { from: first, to: last, part: before } = range.peek() ?? {};
      const isSame =
        first === from && last === to && before?.start === part?.start && before?.end === part?.end;
      if (!isSame) range.value = { from, to, part };
    },
    /** Up to another segment. @param {string} to @param {string} from Where it begins, if nothing is selected. */
    extend(to, from) {
      range.value = { from: range.peek()?.from ?? from, to };
    },
    clear() {
      range.value = null;
    },
    /** The same, and no text is selected any more. */
    end() {
      range.value = null;
      getSelection()?.removeAllRanges();
    },
  };
}
