/** Times, sizes and dates as people read them. */

/**
 * `1:02:03`, or `2:03` below an hour.
 * @param {number} seconds
 */
export function clock(seconds) {
  const total = Math.max(0, Math.floor(seconds || 0));
  const [hours, minutes, rest] = [Math.floor(total / 3600), Math.floor(total / 60) % 60, total % 60];
  const end = String(rest).padStart(2, "0");
  return hours ? `${hours}:${String(minutes).padStart(2, "0")}:${end}` : `${minutes}:${end}`;
}

/**
 * `2:03.45`, with hundredths of a second: the times of segments.
 * @param {number} seconds
 */
export function preciseClock(seconds) {
  const hundredths = Math.round(Math.max(0, seconds || 0) * 100);
  return `${clock(Math.floor(hundredths / 100))}.${String(hundredths % 100).padStart(2, "0")}`;
}

/**
 * The seconds of `1:02:03.45`, `2:03`, `7.5` or `7,5`.
 * @param {string} text
 * @returns {number | null} null if it is no time.
 */
export function parseClock(text) {
  const match = /^(?:(?:(\d+):)?([0-5]?\d):)?(\d+(?:[.,]\d+)?)$/.exec(text.trim());
  if (!match) return null;
  const rest = Number(match[3].replace(",", "."));
  if (match[2] !== undefined && rest >= 60) return null;
  return Number(match[1] ?? 0) * 3600 + Number(match[2] ?? 0) * 60 + rest;
}

/**
 * @param {number} count
 * @param {string} language
 */
export function bytes(count, language) {
  const units = ["byte", "kilobyte", "megabyte", "gigabyte", "terabyte"];
  const power = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, count)) / 3));
  const options = {
    style: "unit",
    unit: units[power],
    unitDisplay: "short",
    maximumFractionDigits: power > 1 ? 1 : 0,
  };
  return new Intl.NumberFormat(language, /** @type {Intl.NumberFormatOptions} */ (options)).format(
    count / 1000 ** power,
  );
}

/**
 * A day of this or another year.
 * @param {string} moment ISO 8601
 * @param {string} language
 */
export function day(moment, language) {
  return new Intl.DateTimeFormat(language, { month: "short", day: "numeric" }).format(new Date(moment));
}

/**
 * A date and time as short as it can be: without the year if it is this one.
 * @param {string} moment ISO 8601
 * @param {string} language
 * @param {Date} [now]
 */
export function shortDateTime(moment, language, now = new Date()) {
  const date = new Date(moment);
  /** @type {Intl.DateTimeFormatOptions} */
  const options = { month: "short", day: "numeric", hour: "numeric", minute: "2-digit" };
  if (date.getFullYear() !== now.getFullYear()) options.year = "numeric";
  return new Intl.DateTimeFormat(language, options).format(date);
}
