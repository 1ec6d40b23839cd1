/** The legend: a row a line with the numbers of its range, and a column for the values at the cursor. */

import { areaColor, isDark, lineColor } from './colors.js';
import { element } from './dom.js';
import { number } from './format.js';
import { LINES_MAX } from './layers.js';
import { texts } from './texts.js';

/** @typedef {import('./types').Chart} Chart */

const COLUMNS = /** @type {const} */ (['last', 'average', 'minimum', 'maximum', 'percentile', 'total']);

/** The lines that the legend names, with their element's index: visible ones with a label, or, where none has one, all. Marks are among them. @param {Chart} chart */
export function namedLines(chart) {
  const visible = chart.elements
    .map((one, index) => ({ element: one, index }))
    .filter(({ element: one }) => ['line', 'area', 'tick'].includes(one.kind) && one.series !== null && one.color !== null);
  const labelled = visible.filter(({ element: one }) => one.label.trim() !== '');
  return (labelled.length > 0 ? labelled : visible)
    .map(({ element: one, index }) => ({
      index,
      series: /** @type {number} */ (one.series),
      color: /** @type {string} */ (one.color),
      area: one.kind === 'area',
      label: nameOf(one.label, chart.series[/** @type {number} */ (one.series)]?.name),
    }));
}

/** @param {string} label may end in RRDtool's marks for justification @param {string | undefined} name */
function nameOf(label, name) {
  return label.replace(/\\[a-zA-Z.]/g, '').trim() || name || texts.unnamed;
}

export class Legend {
  /**
   * @param {HTMLElement} host
   * @param {{toggle: (element: number, alone: boolean) => void, showAll: () => void}} events
   */
  constructor(host, events) {
    this.host = host;
    this.events = events;
    /** @type {{cell: HTMLTableCellElement, series: number}[]} */
    this.cells = [];
    /** @type {string} */
    this.shape = '';
  }

  /**
   * Writes the numbers; builds the rows again only when the lines have changed, so that the focus stays.
   * @param {Chart} chart
   * @param {Set<number>} hidden
   * @param {boolean} everything
   */
  show(chart, hidden, everything) {
    const lines = namedLines(chart);
    const shown = everything ? lines : lines.slice(0, LINES_MAX);
    const shape = JSON.stringify([shown.map((line) => [line.label, line.color]), isDark()]);
    if (shape !== this.shape) {
      this.#build(shown, lines.length);
      this.shape = shape;
    }
    this.chart = chart;
    const rows = this.body?.rows ?? [];
    for (const [index, line] of shown.entries()) {
      const row = rows[index];
      const numbers = chart.numbers.find((one) => one.series === line.series);
      for (const [column, key] of COLUMNS.entries()) {
        const cell = row.cells[column + 2];
        const value = numbers?.[key] ?? null;
        cell.textContent = number(value, chart.base, key === 'total' ? null : chart.unit);
        cell.title = value === null ? texts.unknown : String(value);
      }
      row.querySelector('button')?.setAttribute('aria-pressed', String(!hidden.has(line.index)));
    }
  }

  /** Shows the values at a row of the chart; null clears them. @param {import('./types').Value[][]} columns @param {number | null} index */
  showAt(columns, index) {
    const { chart } = this;
    if (!chart) return;
    for (const { cell, series } of this.cells) {
      const text = index === null ? '' : number(columns[series]?.[index] ?? null, chart.base, chart.unit);
      if (cell.textContent !== text) cell.textContent = text;
    }
  }

  /** @param {ReturnType<typeof namedLines>} lines @param {number} all */
  #build(lines, all) {
    this.cells = [];
    const heads = ['at', ...COLUMNS].map((key) =>
      element('th', { scope: 'col', class: key }, texts.legend[/** @type {keyof typeof texts.legend} */ (key)]),
    );
    const body = element('tbody');
    this.body = body;
    for (const line of lines) {
      const at = element('td', { class: 'at' });
      this.cells.push({ cell: at, series: line.series });
      body.append(
        element('tr', {}, element('th', { scope: 'row' }, this.#button(line)), at, ...COLUMNS.map((key) => element('td', { class: key }))),
      );
    }
    const table = element(
      'table',
      { class: 'legend' },
      element('thead', {}, element('tr', {}, element('th', { scope: 'col' }, texts.legend.name), ...heads)),
      body,
    );
    this.host.replaceChildren(table);
    if (all > lines.length) {
      this.host.append(element('button', { type: 'button', class: 'quiet', onclick: () => this.events.showAll() }, texts.showAll(all)));
    }
  }

  /** @param {ReturnType<typeof namedLines>[number]} line */
  #button(line) {
    const swatch = element('span', { class: line.area ? 'swatch area' : 'swatch', 'aria-hidden': 'true' });
    swatch.style.setProperty('--line', (line.area ? areaColor : lineColor)(line.color, isDark()));
    return element(
      'button',
      {
        type: 'button',
        title: texts.legendHint,
        onclick: (/** @type {MouseEvent} */ event) => this.events.toggle(line.index, !(event.ctrlKey || event.metaKey)),
      },
      swatch,
      element('span', { class: 'name' }, line.label),
    );
  }
}

/**
 * The hidden lines after a click on one: alone shows only it, or all again; else it changes sides.
 * @param {Chart} chart
 * @param {Set<number>} hidden
 * @param {number} index of the element
 * @param {boolean} alone
 * @returns {Set<number>}
 */
export function toggled(chart, hidden, index, alone) {
  const every = namedLines(chart).map((line) => line.index);
  if (!alone) {
    const next = new Set(hidden);
    if (!next.delete(index)) next.add(index);
    return next;
  }
  const isAlone = !hidden.has(index) && every.every((one) => one === index || hidden.has(one));
  return new Set(isAlone ? [] : every.filter((one) => one !== index));
}
