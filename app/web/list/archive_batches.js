/** The jobs of each archive, where one request cannot name all of them. */

const MOST_IDS = 1000; // of one archive; the service allows no more
const MOST_CHARS = 6000; // of the ids in an address: proxies often allow 8 KiB for all of it

/**
 * Parts of `ids` that one request each can name.
 * @param {readonly string[]} ids
 * @param {number} [mostIds]
 * @param {number} [mostChars]
 * @returns {string[][]}
 */
export function batchesOf(ids, mostIds = MOST_IDS, mostChars = MOST_CHARS) {
  /** @type {string[][]} */
  const batches = [];
  let chars = 0;
  for (const id of ids) {
    const last = batches.at(-1);
    chars += id.length + 1;
    if (last && last.length < mostIds && chars <= mostChars) last.push(id);
    else [chars] = [id.length + 1, batches.push([id])];
  }
  return batches;
}
