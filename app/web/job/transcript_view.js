/**
 * What the reader does with the transcript: which segments have the keyboard or are selected, what is edited,
 * what is searched.
 */

import { remembered } from "../core/storage.js";
import { batch, computed, signal } from "../vendor/ui.js";
import { rangeIn } from "./carets.js";
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
 * @property {Field} field That gets the keyboard.
 * @property {{start: number, end: number} | null} selection In the text; null: the caret at its end.
 */

/**
 * @typedef {object} View
 * @property {Signal<string | null>} current The segment that has, or had, the keyboard.
 * @property {Signal<Editing | null>} editing
 * @property {Signal<"text" | "subtitles">} layout Paragraphs, or a row for each segment. Remembered.
 * @property {{id: string, start: number, end: number} | null} word The word that was clicked or shown last, in its segment's text.
 * @property {Signal<boolean>} following The list scrolls along with what plays.
 * @property {Signal<"find" | "replace" | null>} search What the search bar shows.
 * @property {Selection} selection
 * @property {import("../vendor/ui.js").ReadonlySignal<readonly import("./speakers.js").Speaker[]>} speakers
 * @property {import("./virtual_list.js").VirtualList} list
 * @property {(id: string, focus?: boolean, part?: Editing["selection"]) => void} go To a segment. `part`: of its text, that is selected.
 * @property {(id: string, selection?: Editing["selection"], field?: Field) => void} edit
 * @property {() => void} stop Stop editing. The keyboard stays where it is.
 * @property {() => void} leave Stop editing. The keyboard goes to the segment.
 * @property {() => void} focusWanted Gives the keyboard to the segment that `go` named, as soon as it is drawn.
 */

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
  let wantsFocus = false;
  /** @type {Editing["selection"]} */
  let wantedPart = null;

  /** @type {View["go"]} */
  function go(id, focus = true, part = null) {
    if (editing.value?.id !== id) stop();
    current.value = id;
    list.reveal(id);
    [wantsFocus, wantedPart] = [focus, part];
    focusWanted();
  }

  /** @type {View["edit"]} */
  function edit(id, selection = null, field = "text") {
    if (!session.editable.value) return go(id);
    if (editing.value?.id !== id) stop();
    selected.clear();
    batch(() => {
      current.value = id;
      editing.value = { id, field, selection };
    });
    list.reveal(id);
  }

  /** A segment that was left without text goes: the service would not store it. */
  function stop() {
    const left = session.segments.peek().find(({ id }) => id === editing.peek()?.id);
    editing.value = null;
    if (left && view.word?.id === left.id) {
      const at = Math.min(view.word.start, left.text.length); // the word may be another one now
      view.word = { id: left.id, start: at, end: at };
    }
    if (left && !left.text.trim())
      session.edit("remove", (segments) => remove(segments, new Set([left.id])), left.id);
  }

  function leave() {
    const id = editing.peek()?.id;
    const index = session.segments.peek().findIndex((segment) => segment.id === id);
    stop();
    const after = session.segments.peek();
    const next = after.find((segment) => segment.id === id) ?? after[Math.min(index, after.length - 1)];
    if (next) go(next.id);
  }

  /** The row may be drawn only now. */
  function focusWanted() {
    const row = wantsFocus && current.value ? list.rowElement(current.value) : null;
    if (!row || editing.value) return;
    wantsFocus = false;
    row.focus({ preventScroll: true });
    const text = wantedPart && row.querySelector(".segment-text");
    const range = text && wantedPart && rangeIn(text, wantedPart.start, wantedPart.end);
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
    word: null,
    following: signal(true),
    search: signal(null),
    selection: selected,
    speakers: computed(() => speakersOf(session.segments.value)),
    list,
    go,
    edit,
    stop,
    leave,
    focusWanted,
  };
  return view;
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
    const [first, last] = [from, to]
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
