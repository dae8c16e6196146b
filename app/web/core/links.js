/** Addresses that players and downloads can use, which send no key. */

import { requestJson } from "./api.js";
import { address, service } from "./service.js";

const SPARE_MS = 10 * 60 * 1000; // a link is made anew when it has less left than that

/** @type {Map<string, {href: string, expires: number}>} */
const made = new Map();

/**
 * The address of a job's sound or result.
 * @param {string} jobId
 * @param {"audio" | "result"} path
 * @param {Record<string, string | number>} [query] Parameters of `…/audio` or `…/result`.
 * @param {{renew?: boolean}} [options] `renew`: the service has refused the link that was made before.
 * @returns {Promise<string>}
 */
export async function linkTo(jobId, path, query = {}, { renew = false } = {}) {
  const plain = pathTo(jobId, path, query);
  if (!service.keys) return address(plain);
  const known = made.get(plain);
  if (!renew && known && known.expires - Date.now() > SPARE_MS) return known.href;
  const link = await requestJson(`/v1/jobs/${jobId}/links`, { method: "POST", json: { path, ...query } });
  const href = address(link.path);
  made.set(plain, { href, expires: Date.parse(link.expires_at) });
  return href;
}

/**
 * The path of a job's sound or result, for requests that send the key.
 * @param {string} jobId
 * @param {"audio" | "result"} path
 * @param {Record<string, string | number>} query
 */
export function pathTo(jobId, path, query) {
  const parameters = new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)]));
  return `/v1/jobs/${jobId}/${path}${parameters.size ? `?${parameters}` : ""}`;
}
