/** What a chart draws, in order: its elements with stacking done, and, below them, the same of an earlier period. */

import { areaColor, lineColor, withAlpha } from './colors.js';
import { gridOf, stackedOn } from './grid.js';

/** @typedef {import('./types').Chart} Chart */
/** @typedef {import('./types').Value} Value */

/** How many lines are drawn before someone asks for all. */
export const LINES_MAX = 30;

/**
 * @typedef {object} Layer
 * @property {number} element index in the chart's elements
 * @property {Value[]} raw values as they are
 * @property {Value[]} top values as drawn
 * @property {Value[] | null} base what it stands on
 * @property {boolean} filled
 * @property {string} stroke
 * @property {string | undefined} fill
 * @property {number} width
 * @property {number[]} dashes
 * @property {boolean} earlier whether it belongs to an earlier period
 */

/**
 * @typedef {object} Appearance
 * @property {boolean} stacked lines too
 * @property {boolean} logarithmic
 * @property {boolean} dark
 * @property {boolean} everything also lines beyond `LINES_MAX`
 * @property {Set<number>} hidden elements
 */

/** Elements that are lines or areas over a series, with their number. @param {Chart} chart */
function drawnElements(chart) {
  return chart.elements
    .map((element, index) => ({ element, index }))
    .filter(({ element }) => (element.kind === 'line' || element.kind === 'area') && element.series !== null);
}

/**
 * Whether an element is hidden: by itself, or, when it has no name in the legend, with the named one of its colour, as the band between
 * minimum and maximum goes with its line.
 * @param {Chart} chart @param {number} index @param {Set<number>} hidden
 */
function isHidden(chart, index, hidden) {
  if (hidden.has(index)) return true;
  const { label, color } = chart.elements[index];
  if (label !== '' || color === null) return false;
  return chart.elements.some((other, at) => hidden.has(at) && other.label !== '' && other.color === color);
}

/**
 * The layers of one period.
 * @param {Chart} chart
 * @param {Value[][]} columns
 * @param {Appearance} appearance
 * @param {boolean} earlier
 * @returns {Layer[]}
 */
function layersOf(chart, columns, appearance, earlier) {
  /** @type {Layer[]} */
  const layers = [];
  /** @type {Value[] | null} */
  let below = null;
  let lines = 0;
  for (const { element, index } of drawnElements(chart)) {
    // A hidden layer takes no room in a stack.
    if (isHidden(chart, index, appearance.hidden)) continue;
    const raw = columns[/** @type {number} */ (element.series)] ?? [];
    const stacked = element.stack || (appearance.stacked && element.color !== null);
    /** @type {Value[] | null} */
    const base = stacked ? below : null;
    /** @type {Value[]} */
    const top = base ? stackedOn(base, raw) : raw;
    below = top;
    if (element.color === null) continue;
    if (!appearance.everything && lines++ >= LINES_MAX) continue;
    const filled = !earlier && (element.kind === 'area' || appearance.stacked);
    const line = lineColor(element.color, appearance.dark);
    const area = areaColor(element.color, appearance.dark);
    layers.push({
      element: index,
      raw,
      top: appearance.logarithmic ? top.map((value) => (value !== null && value > 0 ? value : null)) : top,
      base,
      filled,
      stroke: earlier ? withAlpha(line, 0.55) : withAlpha(filled ? area : line, element.alpha),
      fill: filled ? withAlpha(area, appearance.stacked ? Math.min(element.alpha, 0.8) : element.alpha) : undefined,
      width: earlier ? 1 : filled ? 1 : Math.max(1, element.width),
      dashes: earlier ? [3, 3] : (element.dashes ?? []),
      earlier,
    });
  }
  return layers;
}

/**
 * Times and layers of a chart, and of an earlier period moved onto it.
 * @param {Chart} chart
 * @param {{chart: Chart, shift: number} | null} before the earlier period, and the seconds that it is moved
 * @param {Appearance} appearance
 * @returns {{times: number[], layers: Layer[], columns: Value[][]}}
 */
export function layersAndTimes(chart, before, appearance) {
  const moved = (before?.chart.series ?? []).map((series) => ({ ...series, start: series.start + (before?.shift ?? 0) }));
  const grid = gridOf({ ...chart, series: [...chart.series, ...moved] });
  const columns = grid.columns.slice(0, chart.series.length);
  const layers = layersOf(chart, columns, appearance, false);
  if (before) {
    layers.unshift(...layersOf(before.chart, grid.columns.slice(chart.series.length), appearance, true));
  }
  return { times: grid.times, layers, columns };
}
