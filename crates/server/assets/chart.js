/** One live chart: a thin layer over uPlot that draws what `POST /api/v1/charts` answers as RRDtool would. */

import { isDark, lineColor, withAlpha } from './colors.js';
import { drawRule, drawTicks, hatch, rowPaths, unknownSpans } from './drawing.js';
import { axisNumbers, axisTimes, localDate } from './format.js';
import { layersAndTimes } from './layers.js';
import { texts } from './texts.js';
import uPlot from './vendor/uPlot.js';

/** @typedef {import('./types').Chart} Chart */

/**
 * @typedef {object} View what is shown of a chart
 * @property {Chart} chart
 * @property {{chart: Chart, shift: number} | null} before an earlier period
 * @property {boolean} logarithmic
 * @property {boolean} stacked
 * @property {boolean} percentile
 * @property {boolean} slope lines from row to row instead of steps
 * @property {boolean} everything
 * @property {Set<number>} hidden
 * @property {string | null} zone of the times; null is the browser's
 */

/**
 * @typedef {object} Events
 * @property {(from: number, to: number) => void} select a span was dragged
 * @property {() => void} back a double click
 * @property {() => void} move the cursor moved
 * @property {() => boolean} held whether the cursor is pinned
 */

/** Distances between marks of an axis of base 1024: powers of two. */
const BINARY_STEPS = Array.from({ length: 90 }, (_, index) => 2 ** (index - 20));

export class LiveChart {
  /**
   * @param {HTMLElement} host
   * @param {View} view
   * @param {Events} events
   */
  constructor(host, view, events) {
    this.host = host;
    this.view = view;
    this.events = events;
    this.window = { min: view.chart.start, max: view.chart.end };
    this.built = this.#layers();
    this.plot = this.#plot();
    this.observer = new ResizeObserver(() => this.#resize());
    this.observer.observe(host);
  }

  /** Shows another view, in the same canvas where only values differ. @param {View} view @param {boolean} rebuild */
  show(view, rebuild) {
    const old = this.view;
    this.view = view;
    this.window = { min: view.chart.start, max: view.chart.end };
    const before = this.built.layers;
    this.built = this.#layers();
    const alike =
      !rebuild &&
      old.chart.base === view.chart.base &&
      before.length === this.built.layers.length &&
      before.every((layer, index) => layer.element === this.built.layers[index].element);
    if (!alike) {
      this.plot.destroy();
      this.plot = this.#plot();
      return;
    }
    this.plot.batch(() => {
      this.plot.setData(this.#data(), false);
      this.plot.setScale('x', this.window);
    });
  }

  /** Shows a part of what is there, until the rows for it have come. @param {number} min @param {number} max */
  preview(min, max) {
    this.window = { min, max };
    this.plot.setScale('x', this.window);
  }

  /** The row at the cursor, or null. */
  get cursorIndex() {
    const { left, idx } = this.plot.cursor;
    return (left ?? -1) >= 0 && idx !== null && idx !== undefined ? idx : null;
  }

  /** The time at the cursor, or null. */
  get cursorTime() {
    const left = this.plot.cursor.left ?? -1;
    return left >= 0 ? this.plot.posToVal(left, 'x') : null;
  }

  /** Moves the cursor to a time, or away, without telling. @param {number | null} time */
  putCursor(time) {
    const inside = time !== null && time >= this.window.min && time <= this.window.max;
    const left = inside ? this.plot.valToPos(time, 'x') : -10;
    this.plot.setCursor({ left, top: inside ? 0 : -10 }, false);
  }

  /** Moves the cursor by rows, or to the first or last one. @param {number} rows may be infinite */
  stepCursor(rows) {
    const { times } = this.built;
    if (times.length === 0) return;
    const from = this.cursorIndex ?? (rows > 0 ? this.#rowAt(this.window.min) - 1 : this.#rowAt(this.window.max) + 1);
    const low = this.#rowAt(this.window.min);
    const high = Math.min(this.#rowAt(this.window.max), times.length - 1);
    const index = Math.max(low, Math.min(high, from + rows));
    this.plot.setCursor({ left: this.plot.valToPos(times[index], 'x'), top: 0 }, false);
  }

  destroy() {
    this.observer.disconnect();
    this.plot.destroy();
  }

  /** The first row that ends at or after a time. @param {number} time */
  #rowAt(time) {
    const { times } = this.built;
    let [low, high] = [0, times.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (times[middle] < time) low = middle + 1;
      else high = middle;
    }
    return Math.min(low, times.length - 1);
  }

  #layers() {
    const { chart, before, stacked, logarithmic, everything, hidden } = this.view;
    return layersAndTimes(chart, before, { stacked, logarithmic, everything, hidden, dark: isDark() });
  }

  /** @returns {uPlot.AlignedData} */
  #data() {
    return [this.built.times, ...this.built.layers.map((layer) => layer.top)];
  }

  #size() {
    return { width: Math.max(120, this.host.clientWidth), height: Math.max(90, this.host.clientHeight) };
  }

  #resize() {
    const { width, height } = this.#size();
    if (width !== this.plot.width || height !== this.plot.height) this.plot.setSize({ width, height });
  }

  #plot() {
    const style = getComputedStyle(this.host);
    const color = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
    const { zone } = this.view;
    const { unit, base } = this.view.chart;
    const font = '11px system-ui, sans-serif';
    const axis = { stroke: color('--axis'), font, ticks: { show: false }, grid: { stroke: color('--grid'), width: 1 } };
    /** @type {uPlot.Options} */
    const options = {
      ...this.#size(),
      padding: [8, 12, 0, 0],
      tzDate: (/** @type {number} */ time) => localDate(time, zone),
      legend: { show: false },
      scales: {
        x: { time: true, auto: false, min: this.window.min, max: this.window.max },
        y: { distr: this.view.logarithmic ? 3 : 1, range: (_, min, max) => this.#range(min, max) },
      },
      axes: [
        { ...axis, values: (_, marks, __, ___, distance) => axisTimes(marks, distance, zone), space: 60, size: 36, gap: 4 },
        {
          ...axis,
          size: 58,
          space: 28,
          ...(base === 1024 ? { incrs: BINARY_STEPS } : {}),
          values: (_, marks) => this.#marks(marks, base, unit),
        },
      ],
      series: [{}, ...this.built.layers.map((layer, index) => this.#series(layer, index))],
      cursor: this.#cursor(),
      select: /** @type {any} */ ({ show: true }),
      hooks: {
        drawAxes: [(plot) => this.#hatch(plot, color('--axis'))],
        draw: [(plot) => this.#rules(plot)],
        setCursor: [() => this.events.move()],
        setSelect: [(plot) => this.#selected(plot)],
      },
    };
    return new uPlot(options, this.#data(), this.host);
  }

  /** @param {import('./layers.js').Layer} layer @param {number} index in the layers @returns {uPlot.Series} */
  #series(layer, index) {
    const step = this.view.chart.step || 1;
    return {
      stroke: layer.stroke,
      fill: layer.fill,
      width: layer.width,
      dash: layer.dashes,
      points: { show: false },
      // New rows make new layers, and leave this series.
      paths: rowPaths({ base: () => this.built.layers[index].base, filled: layer.filled, slope: this.view.slope, step }),
    };
  }

  /** @returns {uPlot.Cursor} */
  #cursor() {
    /** Passes an event on unless the values are pinned. @type {uPlot.Cursor.MouseListenerFactory} */
    const unlessHeld = (_, __, handler) => (event) => {
      if (!this.events.held() && !event.shiftKey) handler(event);
      return null;
    };
    return {
      x: true,
      y: false,
      drag: { x: true, y: false, setScale: false, dist: 5 },
      points: { size: 7, width: 1.5 },
      // A row belongs to the time before its end.
      dataIdx: (_, __, ___, time) => this.#rowAt(time),
      bind: {
        mousemove: unlessHeld,
        mouseleave: unlessHeld,
        mousedown: unlessHeld,
        dblclick: () => () => {
          this.events.back();
          return null;
        },
      },
    };
  }

  /** @param {uPlot} plot */
  #selected(plot) {
    const { left, width } = plot.select;
    if (width < 5) return;
    const [from, to] = [plot.posToVal(left, 'x'), plot.posToVal(left + width, 'x')];
    plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    this.events.select(from, to);
  }

  /** The values of the axis for values that are drawn. @param {number | null} min @param {number | null} max @returns {[number, number]} */
  #range(min, max) {
    const { lower, upper, rigid, elements } = this.view.chart;
    const fixed = elements.flatMap((one) => (one.kind !== 'vrule' && one.series === null && one.value !== null ? [one.value] : []));
    if (this.view.logarithmic) {
      const values = [min, max, ...fixed].filter((value) => value !== null && value > 0);
      if (values.length === 0) return [1, 10];
      const [least, most] = [Math.min(.../** @type {number[]} */ (values)), Math.max(.../** @type {number[]} */ (values))];
      return [10 ** Math.floor(Math.log10(least)), 10 ** Math.ceil(Math.log10(most * 1.0001))];
    }
    const areas = this.built.layers.some((layer) => layer.filled);
    const known = [...fixed, ...(areas ? [0] : [])];
    if (min !== null && max !== null) known.push(min, max);
    let low = known.length > 0 ? Math.min(...known) : 0;
    let high = known.length > 0 ? Math.max(...known) : 1;
    // Zero belongs to the picture unless all values are far from it.
    if (low > 0 && low < high * 0.6) low = 0;
    if (high < 0 && high > low * 0.6) high = 0;
    if (low === high) [low, high] = low === 0 ? [0, 1] : [low - Math.abs(low) * 0.1, high + Math.abs(high) * 0.1];
    const room = (high - low) * 0.06;
    low = lower !== null && (rigid || lower <= low) ? lower : low === 0 ? 0 : low - room;
    high = upper !== null && (rigid || upper >= high) ? upper : high === 0 ? 0 : high + room;
    return low < high ? [low, high] : [low, low + 1];
  }

  /** @param {number[]} marks @param {1000 | 1024} base @param {string | null} unit */
  #marks(marks, base, unit) {
    if (!this.view.logarithmic) return axisNumbers(marks, base, unit);
    // Only powers of ten are named.
    return marks.map((mark) => (Number.isInteger(Math.round(Math.log10(mark) * 1e6) / 1e6) ? axisNumbers([mark], base, unit)[0] : ''));
  }

  /** @param {uPlot} plot @param {string} color */
  #hatch(plot, color) {
    const { chart } = this.view;
    const newest = chart.newest ?? chart.end;
    const spans = unknownSpans(this.built.times, this.built.columns, newest, chart.start);
    hatch(plot, spans, color, texts.unknown);
  }

  /** Rules, ticks, constant lines and percentiles. @param {uPlot} plot */
  #rules(plot) {
    const { chart, percentile, hidden } = this.view;
    const dark = isDark();
    for (const [index, one] of chart.elements.entries()) {
      if (one.color === null || hidden.has(index)) continue;
      const color = withAlpha(lineColor(one.color, dark), one.alpha);
      const dashes = one.dashes ?? [];
      if (one.kind === 'tick' && one.series !== null) {
        drawTicks(plot, this.built.times, this.built.columns[one.series], color, one.width || 0.1);
      } else if (one.value !== null && one.series === null) {
        drawRule(plot, { value: one.value, color, width: one.width || 1, dashes, vertical: one.kind === 'vrule' });
      }
    }
    if (!percentile) return;
    for (const layer of this.built.layers.filter((one) => !one.earlier && one.base === null)) {
      const numbers = chart.numbers.find((one) => one.series === chart.elements[layer.element].series);
      if (numbers?.percentile === null || numbers?.percentile === undefined) continue;
      const color = lineColor(chart.elements[layer.element].color ?? '#888888', dark);
      drawRule(plot, { value: numbers.percentile, color, width: 1.5, dashes: [8, 4], vertical: false });
    }
  }
}
