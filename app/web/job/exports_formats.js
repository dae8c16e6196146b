/** The formats of results, as people choose them. */

const FIRST = ["srt", "vtt", "txt"];
const LONGEST_STEM = 120; // characters

/**
 * The formats of the service: those that most people want, and the rest in its order.
 * @param {readonly string[]} formats
 * @returns {{first: string[], rest: string[]}}
 */
export function groupsOf(formats) {
  return {
    first: FIRST.filter((format) => formats.includes(format)),
    rest: formats.filter((format) => !FIRST.includes(format)),
  };
}

/**
 * The name of a downloaded result, such as `talk.srt`.
 * @param {import("./types.js").Job} job
 * @param {string} format
 * @param {number | null} [revision] null: the newest
 */
export function fileNameOf(job, format, revision = null) {
  const name = job.filename ?? job.id;
  const stem = [...name.replace(/\.[^.\s]{1,8}$/, "")].slice(0, LONGEST_STEM).join("") || job.id;
  const version = revision === null ? "" : revision ? `.revision-${revision}` : ".original";
  return `${stem}${version}.${format === "verbose_json" ? "json" : format}`;
}
