/** One `figure.graph`: first the server's picture, then a live chart with its legend, links and table. */

import { LiveChart } from './chart.js';
import { copy, element, first } from './dom.js';
import { dateTime, duration } from './format.js';
import { extended } from './grid.js';
import { Legend, toggled } from './legend.js';
import * as links from './links.js';
import { Readout } from './readout.js';
import { Announcer, ValueTable } from './table.js';
import { texts } from './texts.js';

/** @typedef {import('./types').Chart} Chart */

/**
 * @typedef {object} Page what a figure asks of the page
 * @property {import('./range.js').PageRange} range
 * @property {import('./options.js').PageOptions} options
 * @property {import('./cursor.js').SharedCursor} cursor
 */

/** Which archives are shown: their functions, by the length of their rows. @param {Chart} chart */
function sourcesText(chart) {
  /** @type {Map<string, Set<string>>} */
  const functions = new Map();
  for (const source of chart.sources) {
    const point = chart.series[source.series]?.step ?? chart.step;
    const rows = texts.source(duration(source.row_seconds), point > source.row_seconds ? duration(point) : null);
    functions.set(rows, (functions.get(rows) ?? new Set()).add(source.cf));
  }
  return [...functions].map(([rows, names]) => `${[...names].sort().join(', ')}: ${rows}`).join('; ');
}

/** @param {import('./types').Graph} graph */
function sloped(graph) {
  return graph.arg.some((word) => word === '--slope-mode' || word === '-E');
}

export class Figure {
  /** @param {HTMLElement} figure @param {Page} page */
  constructor(figure, page) {
    this.element = figure;
    this.page = page;
    /** @type {import('./types').Graph} */
    this.graph = JSON.parse(figure.dataset.graph ?? '{"arg":[]}');
    /** @type {Chart | null} */
    this.chart = null;
    /** @type {Chart | null} */
    this.before = null;
    /** @type {LiveChart | null} */
    this.live = null;
    /** @type {Set<number>} */
    this.hidden = new Set();
    this.everything = false;
    this.visible = false;
    /** Whether what is shown is not what the page's range says. */
    this.stale = true;
    this.slope = sloped(this.graph);
    this.plot = element('div', { class: 'plot', tabindex: '0', role: 'group', 'aria-roledescription': texts.chartRole, hidden: true });
    this.unit = element('span', { class: 'unit' });
    this.note = element('p', { class: 'note' });
    const legends = element('div', { class: 'legends' });
    this.legend = new Legend(legends, {
      toggle: (index, alone) => this.#toggle(index, alone),
      showAll: () => {
        this.everything = true;
        this.redraw(true);
      },
    });
    this.table = new ValueTable(() => this.live);
    this.announcer = new Announcer();
    this.plot.setAttribute('aria-details', this.table.id);
    this.readout = new Readout(this.plot);
    this.foot = element('div', { class: 'foot', hidden: true }, this.note, this.#menu(), this.table.details, this.announcer.line);
    figure.append(this.plot, legends, this.foot);
    page.cursor.figures.add(this);
  }

  /** Whether the graph says its own range, whatever the page's is. */
  get ownRange() {
    return this.graph.arg.some((word) => /^(--start|--end|-s|-e)\b/.test(word));
  }

  get title() {
    return this.graph.title || first('figcaption', HTMLElement, this.element)?.textContent?.trim() || '';
  }

  /** Seconds of the shortest rows shown, before they were reduced to the width. */
  get rowSeconds() {
    const rows = (this.chart?.sources ?? []).map((source) => source.row_seconds).filter((seconds) => seconds > 0);
    return rows.length > 0 ? Math.min(...rows) : this.chart?.step || 60;
  }

  /** The time after which rows are new; null when all are needed. */
  get since() {
    return this.chart && !this.stale && this.chart.newest !== null ? this.chart.newest - this.chart.step : null;
  }

  /**
   * Takes an answer of the server.
   * @param {import('./types').ChartAnswer} answer
   * @param {boolean} fresh whether only new rows were asked for
   * @param {{start: number, end: number} | null} moved where a live range is now
   * @returns {boolean} false when everything must be asked for
   */
  take(answer, fresh, moved) {
    if ('error' in answer) {
      this.#fail(answer.error);
      return true;
    }
    if ('unchanged' in answer) {
      if (this.chart && moved && !this.ownRange) this.chart = { ...this.chart, ...moved };
      this.redraw();
      return true;
    }
    const chart = fresh && this.chart ? extended(this.chart, answer) : answer;
    if (!chart) return false;
    this.chart = chart;
    this.stale = false;
    this.redraw();
    return true;
  }

  /** Shows another graph from the next answer on. @param {import('./types').Graph} graph */
  replace(graph) {
    this.graph = graph;
    this.chart = null;
    this.before = null;
    this.hidden = new Set();
    this.slope = sloped(graph);
  }

  /** Draws what is known with the page's switches. @param {boolean} [rebuild] after a change of colours or scales */
  redraw(rebuild = false) {
    const { chart } = this;
    if (!chart) return;
    const { options } = this.page;
    const shift = options.shift;
    /** @type {import('./chart.js').View} */
    const view = {
      chart,
      before: this.before && shift !== null ? { chart: this.before, shift } : null,
      logarithmic: options.current.logarithmic || chart.logarithmic,
      stacked: options.current.stacked,
      percentile: options.current.percentile,
      slope: this.slope,
      everything: this.everything,
      hidden: this.hidden,
      zone: options.zone,
    };
    this.#clearError();
    if (this.live) this.live.show(view, rebuild);
    else this.#begin(view);
    this.legend.show(chart, this.hidden, this.everything);
    this.table.refresh();
    this.#describe();
  }

  /** Shows the values at the cursor. @param {boolean} source whether the pointer is here @param {boolean} pinned */
  showCursor(source, pinned) {
    const { live } = this;
    if (!live) return;
    const index = live.cursorIndex;
    this.legend.showAt(live.built.columns, index);
    this.element.classList.toggle('reading', index !== null);
    this.readout.show(live, source ? index : null, pinned && source);
    if (source && index !== null && this.element.contains(document.activeElement)) this.announcer.tell(live, index);
  }

  /** @param {number} index of the element @param {boolean} alone */
  #toggle(index, alone) {
    if (!this.chart) return;
    this.hidden = toggled(this.chart, this.hidden, index, alone);
    this.redraw(true);
  }

  /** @param {import('./chart.js').View} view */
  #begin(view) {
    const { page, plot } = this;
    // The chart takes the picture's place, as high as it was.
    const image = first('img', HTMLImageElement, this.element);
    image?.closest('a')?.setAttribute('hidden', '');
    plot.hidden = false;
    this.foot.hidden = false;
    this.element.classList.add('drawn');
    plot.append(this.unit);
    this.live = new LiveChart(plot, view, {
      select: (from, to) => {
        page.cursor.release();
        this.live?.preview(from, to);
        page.range.setSeconds(from, to, this.rowSeconds);
      },
      back: () => page.range.back(),
      move: () => page.cursor.moved(this),
      held: () => page.cursor.pinned,
    });
  }

  #describe() {
    const { chart, plot } = this;
    if (!chart) return;
    const zone = this.page.options.zone;
    const [from, to] = [dateTime(chart.start, 60, zone), dateTime(chart.end, 60, zone)];
    plot.setAttribute('aria-label', texts.chartName(this.title, from, to));
    this.unit.textContent = chart.unit ?? '';
    this.note.textContent = sourcesText(chart);
  }

  /** Saving and linking; the links are made when the menu opens, from the range as it is then. */
  #menu() {
    const list = element('ul');
    const details = element('details', { class: 'links' }, element('summary', {}, texts.links), list);
    details.addEventListener('toggle', () => {
      if (!details.open) return;
      const { arg } = this.graph;
      const range = this.page.range.current;
      const line = links.command(arg, range);
      const button = element('button', { type: 'button', class: 'quiet' }, texts.copy);
      button.addEventListener('click', () => copy(line, button, texts.copied));
      list.replaceChildren(
        ...['SVG', 'PNG', 'PDF'].map((format) => element('li', {}, element('a', { href: links.picture(arg, range, format) }, format))),
        ...[['csv', 'CSV'], ['json', 'JSON'], ['arrow', 'Arrow']].map(([format, name]) => element('li', {}, element('a', { href: links.rows(arg, range, format) }, name))),
        element('li', {}, element('a', { href: links.expression(arg, range) }, texts.linkExpression)),
        element('li', {}, this.#adding(range)),
        element('li', { class: 'command' }, `${texts.linkCommand} `, button, element('pre', { tabindex: '0' }, line)),
      );
    });
    return details;
  }

  /** A form that adds the graph to a saved view. @param {import('./types').Range} range */
  #adding(range) {
    /** @type {(name: string, value: string) => HTMLInputElement} */
    const hidden = (name, value) => element('input', { type: 'hidden', name, value });
    const name = element('input', { name: 'view', required: true, pattern: '[A-Za-z0-9_\\-]+', maxlength: '100', title: texts.viewName });
    const fixed = element('input', { type: 'checkbox' });
    const form = element(
      'form',
      { method: 'post', action: '/views', class: 'adding' },
      hidden('title', this.title),
      ...this.graph.arg.map((word) => hidden('arg', word)),
      element('label', {}, `${texts.viewAdd} `, name),
      element('label', {}, fixed, texts.viewRange),
      element('button', {}, texts.viewAdded),
    );
    form.addEventListener('submit', () => {
      if (fixed.checked) form.append(hidden('start', range.start), hidden('end', range.end));
    });
    return form;
  }

  /** @param {string} text */
  #fail(text) {
    this.#clearError();
    this.element.append(element('p', { class: 'error', role: 'alert' }, text || texts.failed));
    this.element.classList.add('failed');
  }

  #clearError() {
    this.element.classList.remove('failed');
    for (const line of this.element.querySelectorAll(':scope > .error')) line.remove();
  }
}
