/** The transcripts of many jobs as ZIP files. */

import { request } from "../core/api.js";
import { saveBlob } from "../core/downloads.js";

/**
 * Download the transcripts of jobs. Rejected with ApiError.
 * @param {readonly string[]} ids
 * @param {string} format
 */
export async function downloadArchives(ids, format) {
  const batches = batchesOf(ids);
  for (const [index, batch] of batches.entries()) {
    const response = await request(`/v1/jobs/archive?ids=${batch.join(",")}&format=${format}`);
    const part = batches.length > 1 ? `-${index + 1}` : "";
    saveBlob(await response.blob(), `transcripts-${format}${part}.zip`);
  }
}

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
