/**
 * Series of different steps on one list of times, stacking, and new rows. Rows are intervals that end at their time, so a series
 * with long rows has its value at every time within the row, and a drawing in steps stays exact.
 */

/** @typedef {import('./types').Chart} Chart */
/** @typedef {import('./types').Series} Series */
/** @typedef {import('./types').Value} Value */

/** @param {Series} series */
function times(series) {
  const { start, step, values } = series;
  return values.map((_, index) => start + index * step);
}

/** @param {Series} one @param {Series} other */
function sameTimes(one, other) {
  return one.start === other.start && one.step === other.step && one.values.length === other.values.length;
}

/** @param {Series} series @param {number} time */
function valueAt(series, time) {
  return series.values[Math.ceil((time - series.start) / series.step)] ?? null;
}

/**
 * All series over the times of all of them.
 * @param {Chart} chart
 * @returns {import('./types').Grid}
 */
export function gridOf(chart) {
  const series = chart.series.filter((one) => one.values.length > 0);
  if (series.length === 0) return { times: [], columns: chart.series.map(() => []) };
  if (chart.series.every((one) => sameTimes(one, series[0]))) {
    return { times: times(series[0]), columns: chart.series.map((one) => one.values) };
  }
  const all = [...new Set(series.flatMap(times))].sort((a, b) => a - b);
  return { times: all, columns: chart.series.map((one) => all.map((time) => valueAt(one, time))) };
}

/**
 * The tops of stacked elements. Unknown below or here makes the sum unknown, as in RRDtool.
 * @param {Value[]} below
 * @param {Value[]} column
 * @returns {Value[]}
 */
export function stackedOn(below, column) {
  return column.map((value, index) => {
    const base = below[index] ?? null;
    return value === null || base === null ? null : value + base;
  });
}

/**
 * What a chart is after the rows that a request with `since` brought; null when they do not fit, so that all must be fetched.
 * @param {Chart} old
 * @param {Chart} fresh
 * @returns {Chart | null}
 */
export function extended(old, fresh) {
  if (old.series.length !== fresh.series.length || old.elements.length !== fresh.elements.length) return null;
  /** @type {Series[]} */
  const series = [];
  for (const [index, one] of fresh.series.entries()) {
    const before = old.series[index];
    if (before.step !== one.step || before.name !== one.name) return null;
    if (one.values.length === 0) {
      series.push(before);
      continue;
    }
    const at = (one.start - before.start) / one.step;
    if (!Number.isInteger(at) || at < 0 || at > before.values.length) return null;
    // A row that ends where the range begins is not in it.
    const first = Math.max(0, Math.floor((fresh.start - before.start) / one.step) + 1);
    const values = [...before.values.slice(first, at), ...one.values];
    series.push({ ...one, start: before.start + Math.min(first, at) * one.step, values });
  }
  return { ...fresh, series };
}
