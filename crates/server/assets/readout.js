/** The values at the cursor, beside it: the nearest line first; pinned it stays and can be copied. */

import { copy, element } from './dom.js';
import { dateTime, number } from './format.js';
import { namedLines } from './legend.js';
import { texts } from './texts.js';
import { reason } from './unknown.js';

/** Lines that fit without hiding the graph. */
const ROWS_MAX = 12;

/** Why there is no value, where no line has one. @param {import('./chart.js').LiveChart} live @param {number} index @param {Set<number>} hidden */
function unknownReason(live, index, hidden) {
  const { chart, zone } = live.view;
  const lines = namedLines(chart).filter((line) => !hidden.has(line.index));
  const values = lines.map((line) => live.built.columns[line.series]?.[index] ?? null);
  if (lines.length === 0 || values.some((value) => value !== null)) return null;
  return reason(chart, lines[0].series, live.built.times[index] ?? 0, zone);
}

export class Readout {
  /** @param {HTMLElement} host positioned, and as large as the plot */
  constructor(host) {
    this.host = host;
    this.box = element('div', { class: 'readout', hidden: true });
    host.append(this.box);
  }

  /**
   * @param {import('./chart.js').LiveChart} live
   * @param {number | null} index row; null hides
   * @param {boolean} pinned
   */
  show(live, index, pinned) {
    const { chart, zone, hidden } = live.view;
    const time = index === null ? undefined : live.built.times[index];
    if (index === null || time === undefined) {
      this.box.hidden = true;
      return;
    }
    const step = time - (live.built.times[index - 1] ?? time - chart.step);
    const rows = this.#rows(live, index, hidden);
    const head = element('div', { class: 'when' }, dateTime(time, step, zone));
    const list = element('dl', {}, ...rows.slice(0, ROWS_MAX).flatMap((row) => [this.#name(row), element('dd', {}, row.text)]));
    this.box.replaceChildren(head, list);
    if (rows.length > ROWS_MAX) this.box.append(element('div', { class: 'rest' }, texts.moreLines(rows.length - ROWS_MAX)));
    const why = unknownReason(live, index, hidden);
    if (why) this.box.append(element('div', { class: 'reason' }, why));
    if (pinned) this.box.append(this.#copyButton(head.textContent ?? '', rows));
    this.box.classList.toggle('pinned', pinned);
    this.box.hidden = false;
    this.#place(live);
  }

  /** @param {import('./chart.js').LiveChart} live @param {number} index @param {Set<number>} hidden */
  #rows(live, index, hidden) {
    const { chart } = live.view;
    const { plot, built } = live;
    const top = plot.cursor.top ?? -1;
    const pointer = top > 0 ? plot.posToVal(top, 'y') : null;
    const rows = namedLines(chart)
      .filter((line) => !hidden.has(line.index))
      .map((line) => {
        const layer = built.layers.find((one) => one.element === line.index && !one.earlier);
        const earlier = built.layers.find((one) => one.element === line.index && one.earlier);
        const value = built.columns[line.series]?.[index] ?? null;
        const drawn = layer?.top[index] ?? null;
        const parts = [number(value, chart.base, chart.unit)];
        if (earlier) parts.push(`(${number(earlier.raw[index] ?? null, chart.base, chart.unit)})`);
        const distance = pointer === null || drawn === null ? Infinity : Math.abs(drawn - pointer);
        return { label: line.label, color: layer?.stroke ?? 'transparent', text: parts.join(' '), distance };
      });
    if (pointer !== null) rows.sort((one, other) => (one.distance === other.distance ? 0 : one.distance - other.distance));
    return rows;
  }

  /** @param {{label: string, color: string}} row */
  #name(row) {
    const swatch = element('span', { class: 'swatch', 'aria-hidden': 'true' });
    swatch.style.setProperty('--line', row.color);
    return element('dt', {}, swatch, row.label);
  }

  /** @param {string} when @param {{label: string, text: string}[]} rows */
  #copyButton(when, rows) {
    const text = [when, ...rows.map((row) => `${row.label}\t${row.text}`)].join('\n');
    const button = element('button', { type: 'button', class: 'quiet' }, texts.copy);
    button.addEventListener('click', () => copy(text, button, texts.copied));
    return button;
  }

  /** On the side of the cursor with more room. @param {import('./chart.js').LiveChart} live */
  #place(live) {
    const { plot } = live;
    const left = (plot.cursor.left ?? 0) + plot.bbox.left / devicePixelRatio;
    const toLeft = left > this.host.clientWidth / 2;
    this.box.style.left = toLeft ? 'auto' : `${left + 14}px`;
    this.box.style.right = toLeft ? `${this.host.clientWidth - left + 14}px` : 'auto';
  }
}
