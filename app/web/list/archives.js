/** The transcripts of many jobs as ZIP files. */

import { request } from "../core/api.js";
import { saveBlob } from "../core/downloads.js";
import { batchesOf } from "./archive_batches.js";

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
