/**
 * New rows as they come: one request for all graphs in view at each step of their rows. Nothing is asked for while the tab is hidden,
 * the end is fixed, someone stopped it, or values are being read.
 */

import { element, first } from './dom.js';
import { texts } from './texts.js';

/** Bounds of the time between two requests, in seconds. */
const SHORTEST = 1;
const LONGEST = 300;
/** How long after a row's end it is asked for: updates arrive a moment after the time that they carry. Guessed. */
const DELAY = 0.7;

export class Live {
  /** @param {import('./graphs.js').Graphs} graphs @param {import('./figure.js').Page} page */
  constructor(graphs, page) {
    this.graphs = graphs;
    this.page = page;
    this.stopped = false;
    this.timer = 0;
    this.button = element('button', { type: 'button', class: 'live', onclick: () => this.toggle() });
    first('form.range', HTMLElement)?.append(this.button);
    document.addEventListener('visibilitychange', () => this.#schedule(document.hidden ? null : 0));
    page.range.addEventListener('change', () => this.#schedule());
    page.cursor.addEventListener('busy', () => this.#show());
    graphs.addEventListener('drawn', () => this.#schedule());
    this.#show();
  }

  /** Stops and goes on; a range that ended in the past ends now. */
  toggle() {
    if (!this.page.range.isLive) {
      this.stopped = false;
      this.page.range.follow();
    } else {
      this.stopped = !this.stopped;
    }
    this.#schedule(this.stopped ? null : 0);
  }

  get #step() {
    const steps = this.graphs.visible.filter((figure) => figure.chart).map((figure) => figure.rowSeconds);
    return Math.max(SHORTEST, Math.min(LONGEST, ...steps));
  }

  /** @param {number | null} [seconds] until the next request; null for none */
  #schedule(seconds) {
    clearTimeout(this.timer);
    this.#show();
    if (seconds === null || this.stopped || document.hidden || !this.page.range.isLive) return;
    const step = this.#step;
    const wait = seconds ?? step - ((this.graphs.now - DELAY) % step);
    this.timer = setTimeout(() => void this.#tick(), Math.max(wait, seconds ?? 0.2) * 1000);
  }

  async #tick() {
    if (!this.page.cursor.busy) await this.graphs.refresh();
    this.#schedule(this.graphs.failure ? 5 : undefined);
  }

  #show() {
    const { button } = this;
    const [state, hint, name] = this.#state();
    button.textContent = state;
    button.title = hint;
    button.dataset.state = name;
  }

  /** @returns {[string, string, string]} */
  #state() {
    if (!this.page.range.isLive) return [texts.fixed, texts.fixedHint, 'fixed'];
    if (this.stopped) return [texts.paused, texts.pausedHint, 'paused'];
    if (this.graphs.failure) return [texts.lost, `${texts.lostHint} ${this.graphs.failure.message}`, 'lost'];
    if (this.page.cursor.busy) return [texts.waiting, texts.waitingHint, 'held'];
    return [texts.live, texts.liveHint, 'live'];
  }
}
