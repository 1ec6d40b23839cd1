/** All graphs of the page: one request for those in view, when the range changes, when they come into view, and for new rows. */

import * as api from './api.js';
import { debounced } from './dom.js';
import { Figure } from './figure.js';

/** Charts of one request; more are asked for in several. */
const BATCH_MAX = 50;

export class Graphs extends EventTarget {
  /** @param {HTMLElement[]} elements @param {import('./figure.js').Page} page */
  constructor(elements, page) {
    super();
    this.page = page;
    this.figures = elements.map((element) => new Figure(element, page));
    /** Seconds by which the server's clock is ahead of the browser's. */
    this.clock = 0;
    /** @type {AbortController | null} */
    this.loading = null;
    /** Why the last request failed. @type {Error | null} */
    this.failure = null;
    this.request = debounced(() => void this.load(), 30);
    this.observer = new IntersectionObserver((entries) => this.#seen(entries), { rootMargin: '200px' });
    for (const figure of this.figures) this.observer.observe(figure.element);
    page.range.addEventListener('change', () => this.#rangeChanged());
    page.options.addEventListener('change', () => this.#optionsChanged());
  }

  /** The figures in view. */
  get visible() {
    return this.figures.filter((figure) => figure.visible);
  }

  /** The server's time in seconds. */
  get now() {
    return Date.now() / 1000 + this.clock;
  }

  /** Fetches what is in view and not up to date. */
  async load() {
    const wanted = this.visible.filter((figure) => figure.stale && figure.graph.arg.length > 0);
    if (wanted.length === 0) return;
    this.loading?.abort();
    const loading = new AbortController();
    this.loading = loading;
    for (const figure of wanted) figure.element.setAttribute('aria-busy', 'true');
    try {
      for (let from = 0; from < wanted.length; from += BATCH_MAX) {
        await this.#fetch(wanted.slice(from, from + BATCH_MAX), false, loading.signal);
      }
      for (const figure of wanted) figure.element.removeAttribute('aria-busy');
      await this.#loadBefore(wanted, loading.signal);
    } catch (error) {
      if (loading.signal.aborted) return;
      this.#failed(error, wanted);
    } finally {
      if (this.loading === loading) this.loading = null;
    }
  }

  /** Asks for rows that have come since; true when the server answered. */
  async refresh() {
    const visible = this.visible;
    const wanted = visible.filter((figure) => !figure.stale);
    // Those out of view are fetched when they come into view.
    for (const figure of this.figures) if (!figure.visible) figure.stale = true;
    if (wanted.length > 0 && !this.loading) {
      try {
        await this.#fetch(wanted, true);
        this.failure = null;
      } catch (error) {
        this.failure = error instanceof Error ? error : new Error(String(error));
        return false;
      }
    }
    await this.load();
    return true;
  }

  /** Draws everything again, after a change of colours. */
  redraw() {
    for (const figure of this.figures) figure.redraw(true);
  }

  /** @param {Figure[]} figures @param {boolean} fresh @param {AbortSignal} [signal] */
  async #fetch(figures, fresh, signal) {
    const { range } = this.page;
    const { start, end } = range.current;
    const answer = await api.charts(
      {
        start,
        end,
        width: this.#width(figures),
        charts: figures.map((figure) => ({ arg: figure.graph.arg, since: fresh ? figure.since : null })),
      },
      signal,
    );
    if (range.current.start !== start || range.current.end !== end) return;
    this.clock = answer.now - Date.now() / 1000;
    const moved = this.#moved(answer, figures);
    for (const [index, figure] of figures.entries()) {
      if (!figure.take(answer.charts[index], fresh, moved)) figure.stale = true;
    }
    this.dispatchEvent(new Event('drawn'));
    if (this.page.cursor.busy) this.page.cursor.schedule();
  }

  /** Where a range that ends now is at the time of an answer. @param {import('./types').ChartsAnswer} answer @param {Figure[]} figures */
  #moved(answer, figures) {
    const { range } = this.page;
    const whole = answer.charts.find((chart, index) => 'start' in chart && !figures[index].ownRange);
    if (whole && 'start' in whole) {
      range.resolved = { start: whole.start, end: whole.end };
    } else if (range.isLive && range.resolved) {
      const length = range.resolved.end - range.resolved.start;
      range.resolved = { start: answer.now - length, end: answer.now };
    }
    return range.resolved;
  }

  /** The period before, for all figures that want it. @param {Figure[]} figures @param {AbortSignal} signal */
  async #loadBefore(figures, signal) {
    const { range, options } = this.page;
    const shift = options.shift;
    if (shift === null || !range.resolved || figures.length === 0) return;
    const { start, end } = range.resolved;
    const answer = await api.charts(
      { start: start - shift, end: end - shift, width: this.#width(figures), charts: figures.map((figure) => ({ arg: figure.graph.arg })) },
      signal,
    );
    for (const [index, figure] of figures.entries()) {
      const chart = answer.charts[index];
      figure.before = 'series' in chart ? chart : null;
      figure.redraw(true);
    }
  }

  /** @param {Figure[]} figures */
  #width(figures) {
    const widths = figures.map((figure) => figure.element.clientWidth);
    return Math.max(200, Math.min(4000, Math.ceil(Math.max(...widths) / 100) * 100));
  }

  /** @param {unknown} error @param {Figure[]} wanted */
  #failed(error, wanted) {
    this.failure = error instanceof Error ? error : new Error(String(error));
    for (const figure of wanted) {
      figure.element.removeAttribute('aria-busy');
      // A server that is away is said once, in the state of the range; a server that says no is said here.
      if (error instanceof api.ApiError) figure.take({ error: error.message }, false, null);
    }
    this.dispatchEvent(new Event('drawn'));
  }

  /** @param {IntersectionObserverEntry[]} entries */
  #seen(entries) {
    for (const entry of entries) {
      const figure = this.figures.find((one) => one.element === entry.target);
      if (figure) figure.visible = entry.isIntersecting;
    }
    if (this.visible.some((figure) => figure.stale)) this.request();
  }

  #rangeChanged() {
    this.page.cursor.release();
    for (const figure of this.figures) {
      figure.stale = true;
      figure.before = null;
    }
    this.request();
  }

  #optionsChanged() {
    const { shift } = this.page.options;
    if (shift !== this.shift) {
      this.shift = shift;
      for (const figure of this.figures) figure.before = null;
      const drawn = this.visible.filter((figure) => figure.chart);
      this.#loadBefore(drawn, new AbortController().signal).catch((error) => this.#failed(error, []));
    }
    this.redraw();
  }

  /** The shift that is shown. @type {number | null} */
  shift = null;
}
