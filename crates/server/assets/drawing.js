/** Drawing on uPlot's canvas: rows as steps, areas between two columns, rules, ticks, and hatching where nothing is known. */

import uPlot from './vendor/uPlot.js';

/** @typedef {import('./types').Value} Value */

/**
 * Runs of known values, as [first, last] index.
 * @param {Value[]} values @param {number} from @param {number} to
 * @returns {[number, number][]}
 */
function runs(values, from, to) {
  /** @type {[number, number][]} */
  const found = [];
  let first = -1;
  for (let index = from; index <= to + 1; index++) {
    const known = index <= to && values[index] !== null && values[index] !== undefined;
    if (known && first < 0) first = index;
    if (!known && first >= 0) {
      found.push([first, index - 1]);
      first = -1;
    }
  }
  return found;
}

/**
 * A builder of uPlot's paths for one column: in steps, because a row has one value from its beginning to its end, or with slopes.
 * @param {object} shape
 * @param {() => Value[] | null} shape.base what the area stands on now; null for zero
 * @param {boolean} shape.filled
 * @param {boolean} shape.slope
 * @param {number} shape.step seconds of the first row, which has no row before it
 * @returns {uPlot.Series.PathBuilder}
 */
export function rowPaths({ base, filled, slope, step }) {
  return (plot, seriesIndex, from, to) => {
    const times = /** @type {number[]} */ (plot.data[0]);
    const values = /** @type {Value[]} */ (plot.data[seriesIndex]);
    const x = (/** @type {number} */ time) => plot.valToPos(time, 'x', true);
    const y = (/** @type {number} */ value) => plot.valToPos(value, 'y', true);
    const begin = (/** @type {number} */ index) => x(index > 0 ? times[index - 1] : times[0] - step);
    const last = values.length - 1;
    const stroke = new Path2D();
    const fill = filled ? new Path2D() : null;
    const logarithmic = plot.scales.y.distr === 3;
    const below = base();
    const zero = logarithmic ? plot.bbox.top + plot.bbox.height : y(0);
    const ground = (/** @type {number} */ index) => {
      const value = below?.[index] ?? 0;
      return logarithmic && value <= 0 ? zero : y(value);
    };
    for (const [first, end] of runs(values, Math.max(0, from - 1), Math.min(last, to + 1))) {
      for (const path of fill ? [stroke, fill] : [stroke]) {
        trace(path, first, end, false, (index) => y(/** @type {number} */ (values[index])));
      }
      if (fill) {
        trace(fill, first, end, true, ground);
        fill.closePath();
      }
    }

    /** @param {Path2D} path @param {number} first @param {number} end @param {boolean} backwards @param {(index: number) => number} height */
    function trace(path, first, end, backwards, height) {
      for (let count = 0; count <= end - first; count++) {
        const index = backwards ? end - count : first + count;
        const [left, right, level] = [begin(index), x(times[index]), height(index)];
        if (count === 0 && !backwards) path.moveTo(left, level);
        const flat = !slope || count === 0 || (backwards && index === first);
        if (backwards) {
          path.lineTo(right, level);
          if (flat) path.lineTo(left, level);
        } else {
          if (flat) path.lineTo(left, level);
          path.lineTo(right, level);
        }
      }
    }

    return { stroke, fill };
  };
}

/**
 * Where no column has a value, as [from, to] in seconds, up to the newest row.
 * @param {number[]} times @param {Value[][]} columns @param {number} newest @param {number} start of the window
 * @returns {[number, number][]}
 */
export function unknownSpans(times, columns, newest, start) {
  /** @type {[number, number][]} */
  const spans = [];
  let from = start;
  for (const [index, time] of times.entries()) {
    const before = index > 0 ? times[index - 1] : from;
    if (columns.some((column) => column[index] !== null && column[index] !== undefined)) {
      if (before > from) spans.push([from, before]);
      from = time;
    }
  }
  const end = Math.min(newest, times.at(-1) ?? newest);
  if (end > from) spans.push([from, end]);
  return spans;
}

/**
 * Hatches spans of time.
 * @param {uPlot} plot @param {[number, number][]} spans @param {string} color @param {string} label written where there is room
 */
export function hatch(plot, spans, color, label) {
  const { ctx, bbox } = plot;
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.strokeStyle = color;
  ctx.fillStyle = color;
  ctx.lineWidth = ratio;
  for (const [from, to] of spans) {
    const left = Math.max(bbox.left, plot.valToPos(from, 'x', true));
    const right = Math.min(bbox.left + bbox.width, plot.valToPos(to, 'x', true));
    if (right - left < 2 * ratio) continue;
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, bbox.top, right - left, bbox.height);
    ctx.clip();
    ctx.beginPath();
    const gap = 7 * ratio;
    for (let at = Math.floor((left - bbox.height) / gap) * gap; at < right; at += gap) {
      ctx.moveTo(at, bbox.top + bbox.height);
      ctx.lineTo(at + bbox.height, bbox.top);
    }
    ctx.globalAlpha = 0.35;
    ctx.stroke();
    ctx.restore();
    if (right - left > 90 * ratio) {
      ctx.font = `${11 * ratio}px system-ui, sans-serif`;
      ctx.textAlign = 'center';
      ctx.fillText(label, (left + right) / 2, bbox.top + 14 * ratio);
    }
  }
  ctx.restore();
}

/**
 * A horizontal rule at a value or a vertical one at a time.
 * @param {uPlot} plot
 * @param {{value: number, color: string, width: number, dashes: number[], vertical: boolean}} rule
 */
export function drawRule(plot, { value, color, width, dashes, vertical }) {
  const { ctx, bbox } = plot;
  const at = Math.round(plot.valToPos(value, vertical ? 'x' : 'y', true));
  const [low, size] = vertical ? [bbox.left, bbox.width] : [bbox.top, bbox.height];
  if (!Number.isFinite(at) || at < low || at > low + size) return;
  ctx.save();
  ctx.strokeStyle = color;
  ctx.lineWidth = width * devicePixelRatio;
  ctx.setLineDash(dashes.map((dash) => dash * devicePixelRatio));
  ctx.beginPath();
  ctx.moveTo(vertical ? at : bbox.left, vertical ? bbox.top : at);
  ctx.lineTo(vertical ? at : bbox.left + bbox.width, vertical ? bbox.top + bbox.height : at);
  ctx.stroke();
  ctx.restore();
}

/**
 * RRDtool's TICK: a mark at each row that is known and not zero.
 * @param {uPlot} plot @param {number[]} times @param {Value[]} column @param {string} color @param {number} fraction of the height
 */
export function drawTicks(plot, times, column, color, fraction) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.strokeStyle = color;
  ctx.lineWidth = devicePixelRatio;
  ctx.beginPath();
  for (const [index, time] of times.entries()) {
    if (!column[index]) continue;
    const at = plot.valToPos(time, 'x', true);
    if (at < bbox.left || at > bbox.left + bbox.width) continue;
    const bottom = fraction >= 0 ? bbox.top + bbox.height : bbox.top;
    ctx.moveTo(at, bottom);
    ctx.lineTo(at, bottom - bbox.height * fraction);
  }
  ctx.stroke();
  ctx.restore();
}
