/** Numbers as the reader's language writes them. */

import { language, t } from "../core/text.js";

/**
 * @param {number} value
 * @param {number} [digits] After the decimal point, at most.
 */
export function number(value, digits = 0) {
  return new Intl.NumberFormat(language.value, { maximumFractionDigits: digits }).format(value);
}

/** A speed as a factor of real time. @param {number} value */
export function factor(value) {
  return `${number(value, value < 10 ? 1 : 0)} ×`;
}

/**
 * `12 s`, `3 min 05 s`, `2 h 10 min`.
 * @param {number} seconds
 * @param {number} [digits] Of seconds, below a minute.
 */
export function duration(seconds, digits = 0) {
  const whole = Math.round(seconds);
  if (whole < 60) return t("fleet.seconds", { s: number(seconds, digits) });
  const two = (/** @type {number} */ value) => String(value).padStart(2, "0");
  if (whole < 3600) return t("fleet.minutes", { min: Math.floor(whole / 60), s: two(whole % 60) });
  return t("fleet.hours", { h: Math.floor(whole / 3600), min: two(Math.floor(whole / 60) % 60) });
}

/**
 * `41.2 / 80 GB`. GPUs are sold by binary gigabytes, which NVIDIA's tools and most people call GB.
 * @param {number} used Bytes.
 * @param {number} total Bytes.
 */
export function memory(used, total) {
  const unit = 1024 ** 3;
  return t("fleet.memoryOf", {
    used: number(used / unit, 1),
    total: number(total / unit, total < 16 * unit ? 1 : 0),
  });
}
