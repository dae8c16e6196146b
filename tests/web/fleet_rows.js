// Blocks and workers as the service sends them, for tests of the page's fleet.

export const NOW = 1_700_000_000;

/** A block of two seconds that has ended two seconds ago. @param {object} [changes] @returns {any} */
export function block(changes = {}) {
  const jobs = [{ job: "a1", kind: "job", clips: 2 }];
  return {
    id: 1,
    slot: 0,
    jobs,
    start: NOW - 4,
    end: NOW - 2,
    clips: 2,
    audio_s: 40,
    outcome: "ok",
    ...changes,
  };
}

/** @param {object} [changes] @returns {any} */
export function worker(changes = {}) {
  return { slot: 0, state: "idle", error: null, gpu: null, working: [], ...changes };
}
