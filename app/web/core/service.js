/** What the server says about itself in the page. */

/**
 * @typedef {object} Service
 * @property {string} version
 * @property {boolean} keys Requests need an API key, or a login.
 * @property {boolean} login A proxy can say who the user is: at `login`.
 * @property {boolean} urls Jobs may name a URL.
 * @property {boolean} trash Deleted jobs can be restored for a while.
 * @property {number} max_upload_mb
 * @property {string[]} aliases Other names of models.
 * @property {Record<string, string>} languages English names by code.
 * @property {string[]} formats Of results.
 * @property {Record<string, unknown>} options The default of each option of a job.
 */

/** @type {Service} */
export const service = JSON.parse(document.getElementById("service")?.textContent ?? "{}");

/**
 * The address of a path of the service. A proxy may put a prefix before all paths.
 * @param {string} path Such as `/v1/jobs`, or a link that the service has made.
 */
export function address(path) {
  const base = new URL(".", document.baseURI);
  if (path.startsWith(base.pathname)) return new URL(path, base).href;
  return new URL(path.replace(/^\//, ""), base).href;
}
