/** The values of a graph as a table, a page at a time, for screen readers and for everyone; and what a screen reader is told. */

import { element } from './dom.js';
import { dateTime, number } from './format.js';
import { namedLines } from './legend.js';
import { texts } from './texts.js';

/** Rows of a page of the table. */
const ROWS = 25;
/** How long the cursor rests before its values are read out. */
const QUIET_MILLISECONDS = 400;

let tables = 0;

export class ValueTable {
  /** @param {() => import('./chart.js').LiveChart | null} live */
  constructor(live) {
    this.live = live;
    this.id = `values-${++tables}`;
    /** The first row shown; null is the newest page. @type {number | null} */
    this.from = null;
    this.body = element('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': texts.table });
    this.details = element('details', { class: 'values', id: this.id }, element('summary', {}, texts.table), this.body);
    this.details.addEventListener('toggle', () => this.refresh());
  }

  refresh() {
    const live = this.live();
    if (!this.details.open || !live) return;
    const { chart, zone } = live.view;
    const { times, columns } = live.built;
    const lines = namedLines(chart);
    const from = Math.max(0, Math.min(this.from ?? Infinity, times.length - ROWS));
    const page = times.slice(from, from + ROWS);
    const head = element('tr', {}, element('th', { scope: 'col' }, texts.tableTime), ...lines.map((line) => element('th', { scope: 'col' }, line.label)));
    const rows = page.map((time, index) =>
      element(
        'tr',
        {},
        element('th', { scope: 'row' }, dateTime(time, chart.step || 1, zone)),
        ...lines.map((line) => this.#cell(columns[line.series]?.[from + index] ?? null, chart)),
      ),
    );
    const move = (/** @type {number} */ by) => () => {
      this.from = Math.max(0, Math.min(times.length - ROWS, from + by));
      this.refresh();
    };
    this.body.replaceChildren(
      element('p', {}, texts.tablePage(from + 1, from + page.length, times.length)),
      element('table', {}, element('thead', {}, head), element('tbody', {}, ...rows)),
      element('button', { type: 'button', disabled: from === 0, onclick: move(-ROWS) }, texts.tablePrevious),
      element('button', { type: 'button', disabled: from + ROWS >= times.length, onclick: move(ROWS) }, texts.tableNext),
    );
  }

  /** @param {import('./types').Value} value @param {import('./types').Chart} chart */
  #cell(value, chart) {
    const text = value === null ? texts.unknown : number(value, chart.base, chart.unit);
    return element('td', { title: value === null ? false : value }, text);
  }
}

/** A line that screen readers say when it changes, once the cursor rests. */
export class Announcer {
  constructor() {
    this.line = element('p', { class: 'unseen', 'aria-live': 'polite' });
    this.timer = 0;
  }

  /** @param {import('./chart.js').LiveChart} live @param {number} index */
  tell(live, index) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      const { chart, zone, hidden } = live.view;
      const time = live.built.times[index];
      if (time === undefined) return;
      const values = namedLines(chart)
        .filter((line) => !hidden.has(line.index))
        .slice(0, 8)
        .map((line) => {
          const value = live.built.columns[line.series]?.[index] ?? null;
          return `${line.label} ${value === null ? texts.unknown : number(value, chart.base, chart.unit)}`;
        });
      this.line.textContent = `${dateTime(time, chart.step || 1, zone)}: ${values.join(', ')}`;
    }, QUIET_MILLISECONDS);
  }
}
