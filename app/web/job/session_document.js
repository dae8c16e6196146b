/** The transcript of a session: what the service has, what this page made of it, and the steps between. */

import { batch, computed, signal } from "../vendor/ui.js";
import { joined } from "./conflict.js";
import { applyChanges, changesBetween, inOrder, isSame } from "./edits_rules.js";

/** @typedef {import("./types.js").Segment} Segment */
/** @typedef {import("./edits_rules.js").Change} Change */
/** @typedef {import("./types.js").EditName} EditName */
/** @typedef {import("./types.js").Step} Step */
/**
 * @template T
 * @typedef {import("../vendor/ui.js").Signal<T>} Signal
 */

/** @typedef {readonly Segment[]} Segments */
/** @typedef {ReturnType<typeof createDocument>} Document */

export function createDocument() {
  /** @type {Signal<Segments>} */
  const base = signal([]);
  /** @type {Signal<Segments>} */
  const segments = signal([]);
  /** @type {Signal<Segments>} */
  const lost = signal([]);
  const history = signal(EMPTY_HISTORY);
  const changes = computed(() => changesBetween(base.value, segments.value, isSame));
  const edits = signal(0); // counts all of them, undone ones too

  /**
   * @param {EditName} name
   * @param {(segments: Segments) => Segments} change
   * @param {string | null} focusId
   */
  function edit(name, change, focusId) {
    const before = segments.peek();
    const after = change(before);
    if (after === before) return false;
    batch(() => {
      history.value = recorded(history.peek(), { name, focusId, at: Date.now() }, before, after);
      segments.value = after;
      edits.value++;
    });
    return true;
  }

  /**
   * @param {typeof undone} move
   * @returns {Step | null}
   */
  function travel(move) {
    const moved = move(history.peek(), segments.peek());
    if (!moved) return null;
    batch(() => {
      history.value = moved.history;
      segments.value = moved.segments;
      edits.value++;
    });
    return { name: moved.step.name, focusId: moved.step.focusId };
  }

  /**
   * Take in what the service has now, below the changes of this page. Changes whose segments are gone are lost.
   * @param {Segments} next
   * @param {readonly Change[]} [mine]
   */
  function receive(next, mine = changesBetween(base.peek(), segments.peek())) {
    const reused = reusing(base.peek(), inOrder(next));
    const isRestart = !reused.length && base.peek().length > 0;
    const now = new Map(reused.map((segment) => [segment.id, segment]));
    const fits = mine.filter(({ id, before }) => (before ? isSame(now.get(id) ?? null, before) : !isRestart));
    batch(() => {
      base.value = reused;
      segments.value = applyChanges(reused, fits, "after");
      lose(mine.filter((change) => !fits.includes(change)));
    });
  }

  /** Offer changes whose segments are gone. @param {readonly Change[]} gone */
  function lose(gone) {
    if (!gone.length) return;
    const texts = gone.map((change) => change.after).filter((after) => after?.text.trim());
    offer(/** @type {Segment[]} */ (texts));
    history.value = EMPTY_HISTORY;
  }

  /** Offer corrected segments that have no place. @param {Segments} found */
  function offer(found) {
    if (found.length) lost.value = [...lost.peek(), ...found];
  }

  /**
   * Take in what the service has stored of the segments that were sent. Later edits stay.
   * @param {Segments} sent
   * @param {Segments} answer
   */
  function stored(sent, answer) {
    const before = new Map(sent.map((segment) => [segment.id, segment]));
    const next = inOrder(answer).map((segment) => withTextOf(segment, before.get(segment.id)));
    const now = new Map(next.map((segment) => [segment.id, segment]));
    const had = new Set([...base.peek(), ...sent].map(({ id }) => id));
    const meanwhile = next.filter(({ id }) => !had.has(id)); // of a job that runs
    batch(() => {
      base.value = next;
      const mine = segments
        .peek()
        .map((segment) => (before.get(segment.id) === segment ? (now.get(segment.id) ?? segment) : segment));
      segments.value = meanwhile.length ? inOrder([...mine, ...meanwhile]) : mine;
    });
  }

  /**
   * Take in another version of the service.
   * @param {Segments} theirs
   * @param {Segments} merged With the changes of this page.
   * @param {EditName | null} name Of a step that can be undone; null: others have changed it, and undo leaves it alone.
   * @returns {boolean} Whether the text is another one now.
   */
  function merged(theirs, merged, name) {
    const before = segments.peek();
    const after = reusing(before, merged);
    const changed = changesBetween(before, after, isSame);
    batch(() => {
      base.value = reusing(base.peek(), inOrder(theirs));
      if (changed.length && name) return edit(name, () => after, null);
      segments.value = after; // words alone are no step
      history.value = rebased(history.peek(), changed);
    });
    return changed.length > 0;
  }

  return {
    base,
    segments,
    lost,
    changes,
    edits,
    canUndo: computed(() => history.value.past.length > 0),
    canRedo: computed(() => history.value.future.length > 0),
    edit,
    undo: () => travel(undone),
    redo: () => travel(redone),
    receive,
    lose,
    offer,
    stored,
    merged,
  };
}

/**
 * The next segments, with the objects of equal earlier ones: views compare objects.
 * @param {Segments} earlier
 * @param {Segments} next
 */
function reusing(earlier, next) {
  const known = new Map(earlier.map((segment) => [segment.id, segment]));
  return next.map((segment) => {
    const old = known.get(segment.id);
    return old && old.text === segment.text && isSame(old, segment) && hasSameWords(old, segment)
      ? old
      : segment;
  });
}

/**
 * The stored segment as the page has it: the service removes spaces at the ends, where someone may be typing.
 * @param {Segment} segment
 * @param {Segment | undefined} sent
 */
function withTextOf(segment, sent) {
  if (!sent || !isSame(segment, sent)) return segment;
  return hasSameWords(segment, sent) ? sent : { ...segment, text: sent.text };
}

/**
 * @param {Segment} one
 * @param {Segment} other
 */
function hasSameWords(one, other) {
  return (
    one.words.length === other.words.length &&
    one.words.every((word, index) => {
      const { word: text, start, end, probability, speaker } = other.words[index];
      return (
        word.word === text &&
        word.start === start &&
        word.end === end &&
        word.probability === probability &&
        word.speaker === speaker
      );
    })
  );
}

/** @typedef {{name: EditName, focusId: string | null, changes: readonly Change[], at: number}} PastStep `at`: in ms. */
/** @typedef {{past: readonly PastStep[], future: readonly PastStep[]}} History The newest step of each list is its last. */

export const MOST_STEPS = 500;
const ONE_STEP_MS = 1000; // between key presses that are undone together
const CONTINUED = new Set(["text", "times"]);

/** @type {History} */
export const EMPTY_HISTORY = { past: [], future: [] };

/**
 * @param {History} history
 * @param {{name: EditName, focusId: string | null, at: number}} step
 * @param {Segments} before
 * @param {Segments} after
 * @returns {History}
 */
export function recorded(history, step, before, after) {
  const changes = changesBetween(before, after);
  const last = history.past.at(-1);
  const continues =
    last &&
    CONTINUED.has(step.name) &&
    last.name === step.name &&
    last.focusId === step.focusId &&
    step.at - last.at < ONE_STEP_MS &&
    !history.future.length;
  const added = { ...step, changes: continues ? combined(last.changes, changes) : changes };
  const past = continues ? history.past.slice(0, -1) : history.past;
  return { past: [...past, added].slice(-MOST_STEPS), future: [] };
}

/**
 * @param {readonly Change[]} earlier
 * @param {readonly Change[]} later
 * @returns {Change[]}
 */
function combined(earlier, later) {
  const all = new Map(earlier.map((change) => [change.id, change]));
  for (const change of later)
    all.set(change.id, { ...change, before: (all.get(change.id) ?? change).before });
  return [...all.values()];
}

/**
 * @param {History} history
 * @param {Segments} segments
 * @returns {{history: History, segments: Segments, step: PastStep} | null} null: there is nothing to undo.
 */
export function undone({ past, future }, segments) {
  const step = past.at(-1);
  if (!step) return null;
  const history = { past: past.slice(0, -1), future: [...future, { ...step, at: 0 }] };
  return { history, segments: applyChanges(segments, step.changes, "before"), step };
}

/**
 * @param {History} history
 * @param {Segments} segments
 * @returns {{history: History, segments: Segments, step: PastStep} | null} null: there is nothing to redo.
 */
export function redone({ past, future }, segments) {
  const step = future.at(-1);
  if (!step) return null;
  const history = { past: [...past, step], future: future.slice(0, -1) };
  return { history, segments: applyChanges(segments, step.changes, "after"), step };
}

/**
 * The history after others have changed segments: undone or redone, a step changes nothing of theirs. Where it cannot,
 * because both have changed the same, it is gone.
 * @param {History} history
 * @param {readonly Change[]} theirs
 * @returns {History}
 */
export function rebased({ past, future }, theirs) {
  const byId = new Map(theirs.map((change) => [change.id, change]));
  /** @param {readonly PastStep[]} steps */
  const all = (steps) => steps.map((step) => rebasedStep(step, byId)).filter((step) => step !== null);
  return { past: all(past), future: all(future) };
}

/**
 * @param {PastStep} step
 * @param {ReadonlyMap<string, Change>} theirs
 * @returns {PastStep | null}
 */
function rebasedStep(step, theirs) {
  const changes = step.changes.map((change) => rebasedChange(change, theirs.get(change.id)));
  const kept = changes.filter((change) => change !== null);
  // A half of a split or of a join would double or lose text.
  const isWhole = step.changes.every(({ before, after }) => before && after);
  return kept.length === changes.length || (isWhole && kept.length) ? { ...step, changes: kept } : null;
}

/**
 * @param {Change} change
 * @param {Change | undefined} their Of the same segment.
 * @returns {Change | null}
 */
function rebasedChange(change, their) {
  if (!their) return change;
  /** @param {Segment | null} mine */
  const follow = (mine) =>
    mine && their.before && joined({ id: change.id, base: their.before, mine, theirs: their.after });
  const [before, after] = [follow(change.before), follow(change.after)];
  return before && after ? { id: change.id, before, after } : null;
}
