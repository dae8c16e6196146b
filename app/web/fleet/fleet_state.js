/** The events of the fleet, folded into what the screen shows. No DOM, no clock of its own. */

/** @typedef {import("./types.js").Worker} Worker */
/** @typedef {import("./types.js").Block} Block */
/** @typedef {import("./types.js").Queue} Queue */

export const SPAN_S = 300; // of the timelines

/**
 * @typedef {object} Fleet
 * @property {number} offset Of the server's clock from the browser's (s).
 * @property {Worker[]} workers By slot.
 * @property {Queue} queue
 * @property {Map<number, Block[]>} blocks By slot, in order of their ends.
 * @property {Map<number, {at: number, state: import("./types.js").WorkerState}[]>} states By slot: its changes, in order.
 * @property {Map<number, {at: number, value: number}[]>} loads By slot: the utilisation of its GPU, in order.
 */

/** @returns {Fleet} */
export function newFleet() {
  const queue = { clips: 0, oldest_s: 0, jobs: 0, streams: 0 };
  const [blocks, states, loads] = [new Map(), new Map(), new Map()];
  return { offset: 0, workers: [], queue, blocks, states, loads };
}

/**
 * Take in an event.
 * @param {Fleet} fleet Changed in place: it may hold ten thousand blocks.
 * @param {string} type `fleet`: all of it. Any other has what is new.
 * @param {{time: number, workers?: Worker[], removed?: number[], queue?: Queue, blocks?: Block[]}} data
 * @param {number} localTime When it arrived (Unix seconds of the browser).
 */
export function applyEvent(fleet, type, { time, workers, removed, queue, blocks }, localTime) {
  const isAll = type === "fleet";
  // Events take time to arrive, so the largest offset is the truest.
  fleet.offset = isAll ? time - localTime : Math.max(time - localTime, fleet.offset);
  if (isAll) fleet.blocks.clear();
  if (workers) takeWorkers(fleet, workers, time, isAll);
  for (const slot of removed ?? []) removeWorker(fleet, slot);
  if (queue) fleet.queue = queue;
  for (const block of blocks ?? []) takeBlock(fleet, block);
  forget(fleet, time);
}

/**
 * @param {Fleet} fleet
 * @param {Worker[]} workers All of them, or those that have changed.
 * @param {number} now
 * @param {boolean} isAll
 */
function takeWorkers(fleet, workers, now, isAll) {
  const bySlot = new Map((isAll ? [] : fleet.workers).map((worker) => [worker.slot, worker]));
  for (const worker of workers) {
    bySlot.set(worker.slot, worker);
    const states = entry(fleet.states, worker.slot);
    if (states.at(-1)?.state !== worker.state) states.push({ at: now, state: worker.state });
    const value = worker.gpu?.utilisation;
    if (typeof value === "number") entry(fleet.loads, worker.slot).push({ at: now, value });
  }
  fleet.workers = [...bySlot.values()].sort((one, other) => one.slot - other.slot);
}

/**
 * Another worker may get the slot of one that is gone.
 * @param {Fleet} fleet
 * @param {number} slot
 */
function removeWorker(fleet, slot) {
  fleet.workers = fleet.workers.filter((worker) => worker.slot !== slot);
  for (const map of [fleet.blocks, fleet.states, fleet.loads]) map.delete(slot);
}

/**
 * @param {Fleet} fleet
 * @param {Block} block
 */
function takeBlock(fleet, block) {
  const blocks = entry(fleet.blocks, block.slot);
  // A stream that was connected again may repeat some.
  if (!blocks.length || block.id > blocks[blocks.length - 1].id) blocks.push(block);
}

/**
 * Drop what is older than the timelines. Events do it too, but an idle fleet has none.
 * @param {Fleet} fleet
 * @param {number} now The server's time.
 */
export function forget(fleet, now) {
  const before = now - SPAN_S;
  for (const blocks of fleet.blocks.values()) dropWhile(blocks, (block) => block.end < before);
  for (const states of fleet.states.values()) dropChanges(states, before);
  for (const loads of fleet.loads.values()) dropChanges(loads, before);
}

/**
 * @param {{at: number}[]} changes The last one before the span stays: it says what held when the span began.
 * @param {number} before
 */
function dropChanges(changes, before) {
  dropWhile(changes, (_, index) => (changes[index + 1]?.at ?? before) < before);
}

/**
 * @template T
 * @param {Map<number, T[]>} map
 * @param {number} slot
 * @returns {T[]}
 */
function entry(map, slot) {
  const found = map.get(slot) ?? [];
  map.set(slot, found);
  return found;
}

/**
 * @template T
 * @param {T[]} list Changed in place.
 * @param {(item: T, index: number) => boolean} isOld
 */
function dropWhile(list, isOld) {
  let count = 0;
  while (count < list.length && isOld(list[count], count)) count++;
  if (count) list.splice(0, count);
}
