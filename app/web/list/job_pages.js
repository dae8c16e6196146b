/** The list of jobs as it is put together from pages of the service's answers. Newest first. */

/** @typedef {import("../job/types.js").Job} Job */
/** @typedef {{jobs: readonly Job[], hasMore: boolean}} JobList `hasMore`: the service has older ones. */

/**
 * The list after an answer that begins at its top.
 *
 * Jobs that the page should have and lacks are gone. Older ones stay. If jobs may be missing between the page and
 * the older ones, these are dropped, to be loaded again.
 * @param {JobList} old
 * @param {readonly Job[]} page
 * @param {boolean} hasMore There are jobs after the page.
 * @returns {JobList}
 */
export function withNewest(old, page, hasMore) {
  const known = new Map(old.jobs.map((job) => [job.id, job]));
  const fresh = page.map((job) => same(known.get(job.id), job));
  const last = page.at(-1);
  if (!hasMore || !last) return { jobs: fresh, hasMore };
  const older = olderThan(old.jobs, last, new Set(page.map((job) => job.id)));
  return older.length ? { jobs: [...fresh, ...older], hasMore: old.hasMore } : { jobs: fresh, hasMore };
}

/**
 * The list with the page that follows it.
 * @param {JobList} old
 * @param {readonly Job[]} page
 * @param {boolean} hasMore
 * @returns {JobList}
 */
export function withFollowing(old, page, hasMore) {
  const known = new Set(old.jobs.map((job) => job.id));
  return { jobs: [...old.jobs, ...page.filter((job) => !known.has(job.id))], hasMore };
}

/**
 * How many jobs a request from the top needs to show all changes: it reaches the last one that is not done.
 * @param {readonly Job[]} jobs
 * @param {number} least
 */
export function reachOf(jobs, least) {
  const last = jobs.findLastIndex((job) => job.status === "queued" || job.status === "running");
  return Math.max(least, last + 1);
}

/**
 * @param {readonly Job[]} jobs
 * @param {Job} last
 * @param {Set<string>} covered
 */
function olderThan(jobs, last, covered) {
  const place = jobs.findIndex((job) => job.id === last.id);
  if (place >= 0) return jobs.slice(place + 1).filter((job) => !covered.has(job.id));
  if (!jobs.length || last.created_at > jobs[0].created_at) return [];
  return jobs.filter((job) => !covered.has(job.id) && job.created_at < last.created_at);
}

/**
 * The old object where nothing changed: its row need not be drawn again.
 * @param {Job | undefined} old
 * @param {Job} fresh
 */
function same(old, fresh) {
  return old && JSON.stringify(old) === JSON.stringify(fresh) ? old : fresh;
}
