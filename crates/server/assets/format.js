/** Numbers and times as texts: SI prefixes of base 1000 or 1024, dates of a zone in the order of ISO 8601. */

import uPlot from './vendor/uPlot.js';

const LARGE = ['', 'k', 'M', 'G', 'T', 'P', 'E', 'Z'];
const BINARY = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei', 'Zi'];
const SMALL = ['', 'm', 'µ', 'n', 'p'];
/** Units whose small values people say with a prefix: 5 ms, but 0.35 for a load. */
const PREFIXED = /^(s|V|A|W|Hz|seconds?|volts?|watts?|amperes?)$/i;

/**
 * The exponent of the prefix that suits a value: 2 for millions, -1 for thousandths.
 * @param {number} value
 * @param {number} base
 * @param {string | null} unit
 */
function exponent(value, base, unit) {
  const size = Math.abs(value);
  if (size === 0 || !Number.isFinite(size) || unit === '%') return 0;
  if (size < 1) {
    if (!PREFIXED.test(unit ?? '')) return 0;
    return Math.max(-4, Math.floor(Math.log(size) / Math.log(1000) + 1e-9));
  }
  // What would be rounded to 1000 takes the next prefix.
  return Math.min(7, Math.floor(Math.log(size * 1.0005) / Math.log(base)));
}

/** @param {number} power @param {number} base */
function prefix(power, base) {
  if (power < 0) return SMALL[-power];
  return base === 1024 ? BINARY[power] : LARGE[power];
}

/**
 * A value with four digits that count, such as `1.234 M`.
 * @param {import('./types').Value | undefined} value
 * @param {1000 | 1024} base
 * @param {string | null} unit decides about prefixes only; it is not part of the text
 */
export function number(value, base, unit) {
  if (value === null || value === undefined) return '–';
  if (!Number.isFinite(value)) return value > 0 ? '∞' : '−∞';
  const power = exponent(value, base, unit);
  const scaled = value / (power < 0 ? 1000 : base) ** power;
  const size = Math.abs(scaled);
  let digits = size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3;
  if (size > 0 && size < 0.1) digits = Math.min(6, 2 - Math.floor(Math.log10(size)));
  if (Number.isInteger(scaled)) digits = 0;
  const text = scaled.toFixed(digits).replace('-', '−');
  return power === 0 ? text : `${text} ${prefix(power, base)}`;
}

/**
 * Texts for the marks of an axis: one prefix for all, and no more digits than they need.
 * @param {number[]} marks
 * @param {1000 | 1024} base
 * @param {string | null} unit
 */
export function axisNumbers(marks, base, unit) {
  const largest = Math.max(...marks.map(Math.abs));
  const power = exponent(largest, base, unit);
  const factor = (power < 0 ? 1000 : base) ** power;
  const steps = marks.length > 1 ? Math.abs(marks[1] - marks[0]) / factor : largest / factor;
  let digits = 0;
  while (digits < 6 && Math.abs(steps * 10 ** digits - Math.round(steps * 10 ** digits)) > 1e-6) digits++;
  return marks.map((mark) => {
    if (mark === 0) return '0';
    const text = (mark / factor).toFixed(digits).replace('-', '−');
    return power === 0 ? text : `${text} ${prefix(power, base)}`;
  });
}

/** A length of time, such as `5 min`. @param {number} seconds */
export function duration(seconds) {
  /** @type {[number, string][]} */
  const units = [[86400 * 365, 'y'], [86400 * 7, 'wk'], [86400, 'd'], [3600, 'h'], [60, 'min']];
  for (const [length, name] of units) {
    // 160 s says more than 2.7 min.
    if (seconds >= length && (seconds >= 600 || seconds % length === 0)) {
      const count = seconds / length;
      return `${count >= 10 || Number.isInteger(count) ? Math.round(count) : count.toFixed(1)} ${name}`;
    }
  }
  return `${Math.round(seconds * 10) / 10} s`;
}

/** A time of the clock in a zone; null is the browser's own. @param {number} seconds @param {string | null} zone */
export function localDate(seconds, zone) {
  const date = new Date(seconds * 1000);
  return zone === null ? date : uPlot.tzDate(date, zone);
}

const DAY = uPlot.fmtDate('{YYYY}-{MM}-{DD}');
const MINUTE = uPlot.fmtDate('{HH}:{mm}');
const SECOND = uPlot.fmtDate('{HH}:{mm}:{ss}');

/**
 * Date and time of day; seconds only where rows are shorter than a minute.
 * @param {number} seconds
 * @param {number} step
 * @param {string | null} zone
 */
export function dateTime(seconds, step, zone) {
  const date = localDate(seconds, zone);
  return `${DAY(date)} ${step % 60 === 0 ? MINUTE(date) : SECOND(date)}`;
}

const HOUR_MARK = uPlot.fmtDate('{HH}:{mm}');
const SECOND_MARK = uPlot.fmtDate('{HH}:{mm}:{ss}');
const WEEKDAY = uPlot.fmtDate('{WWW} {D} {MMM}');
const DAY_MARK = uPlot.fmtDate('{D} {MMM}');
const MONTH_MARK = uPlot.fmtDate('{MMM}');
const YEAR_MARK = uPlot.fmtDate('{YYYY}');

/** How texts of a time axis are written: marks at least so many seconds apart, their text, and what they belong to. @type {[number, (date: Date) => string, ((date: Date) => string) | null][]} */
const TIME_MARKS = [
  [360 * 86400, YEAR_MARK, null],
  [28 * 86400, MONTH_MARK, YEAR_MARK],
  [86400, DAY_MARK, YEAR_MARK],
  [60, HOUR_MARK, WEEKDAY],
  [0, SECOND_MARK, WEEKDAY],
];

/**
 * Texts for the marks of a time axis. The day or year stands in a second line at its first mark, but not at the first mark of all
 * when the next day follows so soon that both would overlap.
 * @param {number[]} marks seconds
 * @param {number} distance seconds between marks
 * @param {string | null} zone
 */
export function axisTimes(marks, distance, zone) {
  const [, text, whole] = TIME_MARKS.find(([least]) => distance >= least) ?? TIME_MARKS[0];
  const dates = marks.map((mark) => localDate(mark, zone));
  const wholes = dates.map((date) => whole?.(date) ?? '');
  return dates.map((date, index) => {
    const begins = wholes[index] !== wholes[index - 1];
    const crowded = index === 0 && wholes[1] !== undefined && wholes[1] !== wholes[0];
    return begins && !crowded ? `${text(date)}\n${wholes[index]}` : text(date);
  });
}
