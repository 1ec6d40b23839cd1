/** The range of the page: it stands in the URL, in RRDtool's words, so that a link shows the same and relative stays relative. */

import { all, first } from './dom.js';

/** @typedef {import('./types').Range} Range */

/** What the server shows when the URL says nothing. @returns {Range} */
function initial() {
  const section = first('section.graphs', HTMLElement);
  return { start: section?.dataset.start || 'end-1d', end: section?.dataset.end || 'now' };
}

export class PageRange extends EventTarget {
  constructor() {
    super();
    this.fallback = initial();
    this.current = this.#fromUrl();
    /** The seconds that the server made of the words. @type {{start: number, end: number} | null} */
    this.resolved = null;
    /** How many changes made here can be undone. */
    this.depth = 0;
    addEventListener('popstate', () => this.#restored());
    this.form = first('form.range', HTMLFormElement);
    this.form?.addEventListener('submit', (event) => this.#submitted(event));
    for (const link of all('a.preset', HTMLAnchorElement)) {
      link.addEventListener('click', (event) => this.#preset(event, link));
    }
    this.#show();
  }

  /** Whether it ends now, so that new rows belong to it. */
  get isLive() {
    return ['now', 'n', ''].includes(this.current.end.trim().toLowerCase());
  }

  /** @param {Range} range */
  set(range) {
    if (range.start === this.current.start && range.end === this.current.end) return;
    const url = new URL(location.href);
    url.searchParams.set('start', range.start);
    url.searchParams.set('end', range.end);
    // What the server has computed for the range is on the page too.
    if (this.form?.dataset.reload !== undefined) return location.assign(url);
    history.pushState({ depth: ++this.depth }, '', url);
    this.current = range;
    this.#changed();
  }

  /**
   * Shows a span of seconds. One that reaches the newest rows of a live page keeps its end at `now`.
   * @param {number} from @param {number} to @param {number} step of the rows
   */
  setSeconds(from, to, step) {
    const shortest = Math.max(2 * step, 2);
    const [start, end] = to - from < shortest ? [(from + to - shortest) / 2, (from + to + shortest) / 2] : [from, to];
    if (this.isLive && this.resolved && end >= this.resolved.end - step / 2) {
      this.set({ start: `end-${Math.round(end - start)}s`, end: 'now' });
    } else {
      this.set({ start: String(Math.floor(start)), end: String(Math.ceil(end)) });
    }
  }

  /** The range before this one; the first one zooms out instead. */
  back() {
    if (this.depth > 0) history.back();
    else this.zoom(2, null);
  }

  /** @param {number} factor of the length @param {number | null} around in seconds; null is the middle, or the end of a live range @param {number} [step] */
  zoom(factor, around, step = 1) {
    if (!this.resolved) return;
    const { start, end } = this.resolved;
    const centre = around ?? (this.isLive ? end : (start + end) / 2);
    this.setSeconds(centre - (centre - start) * factor, centre + (end - centre) * factor, step);
  }

  /** Moves it by a part of its length. @param {number} part negative is earlier */
  pan(part) {
    if (!this.resolved) return;
    const { start, end } = this.resolved;
    const by = (end - start) * part;
    if (by > 0 && this.isLive) return;
    const now = Math.floor(Date.now() / 1000);
    if (end + by >= now) this.set({ start: `end-${Math.round(end - start)}s`, end: 'now' });
    else this.set({ start: String(Math.round(start + by)), end: String(Math.round(end + by)) });
  }

  /** Lets a fixed range end now, with the same length. */
  follow() {
    if (!this.resolved || this.isLive) return;
    this.set({ start: `end-${Math.round(this.resolved.end - this.resolved.start)}s`, end: 'now' });
  }

  /** @returns {Range} */
  #fromUrl() {
    const query = new URLSearchParams(location.search);
    return { start: query.get('start') || this.fallback.start, end: query.get('end') || this.fallback.end };
  }

  #restored() {
    this.depth = history.state?.depth ?? 0;
    const range = this.#fromUrl();
    if (range.start === this.current.start && range.end === this.current.end) return;
    this.current = range;
    this.#changed();
  }

  #changed() {
    this.#show();
    this.dispatchEvent(new Event('change'));
  }

  /** @param {SubmitEvent} event */
  #submitted(event) {
    if (!this.form || !first('figure.graph', HTMLElement)) return;
    event.preventDefault();
    const data = new FormData(this.form);
    this.set({ start: String(data.get('start') ?? '').trim() || 'end-1d', end: String(data.get('end') ?? '').trim() || 'now' });
  }

  /** @param {MouseEvent} event @param {HTMLAnchorElement} link */
  #preset(event, link) {
    const query = new URL(link.href).searchParams;
    const [start, end] = [query.get('start'), query.get('end')];
    if (!start || !end || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    this.set({ start, end });
  }

  #show() {
    for (const name of /** @type {const} */ (['start', 'end'])) {
      // Also the hidden ones of other forms, so that they keep the range.
      for (const input of all(`input[name=${name}]`, HTMLInputElement)) input.value = this.current[name];
    }
    for (const link of all('a.preset', HTMLAnchorElement)) {
      const query = new URL(link.href).searchParams;
      const here = query.get('start') === this.current.start && query.get('end') === this.current.end;
      if (here) link.setAttribute('aria-current', 'true');
      else link.removeAttribute('aria-current');
    }
  }
}
