/** The switches above the graphs. They stand in the fragment of the URL, which belongs to the page alone. */

import { element, first } from './dom.js';
import { texts } from './texts.js';

/** @typedef {import('./types').Options} Options */

/** Seconds from an earlier period to this one. Weeks, so that Mondays meet Mondays. @type {Record<string, number>} */
const SHIFTS = { day: 86400, week: 7 * 86400, month: 28 * 86400, year: 364 * 86400 };

const SWITCHES = /** @type {const} */ (['logarithmic', 'stacked', 'percentile']);

export class PageOptions extends EventTarget {
  constructor() {
    super();
    this.serverZone = document.body.dataset.zone || null;
    this.current = this.#fromUrl();
    /** @type {HTMLElement} */
    this.bar = element('fieldset', { class: 'switches' }, element('legend', { class: 'unseen' }, texts.switches));
    addEventListener('hashchange', () => {
      this.current = this.#fromUrl();
      this.#changed();
    });
  }

  /** Seconds that the earlier period lies back, or null. */
  get shift() {
    return SHIFTS[this.current.before] ?? null;
  }

  /** The zone of the times as uPlot wants it; null is the browser's. */
  get zone() {
    if (this.current.zone === 'utc') return 'Etc/UTC';
    return this.current.zone === 'server' ? this.serverZone : null;
  }

  /** @param {Partial<Options>} part */
  set(part) {
    this.current = { ...this.current, ...part };
    const words = new URLSearchParams();
    for (const name of SWITCHES) if (this.current[name]) words.set(name, '1');
    if (this.current.before) words.set('before', this.current.before);
    if (this.current.zone !== 'browser') words.set('zone', this.current.zone);
    const url = new URL(location.href);
    url.hash = words.toString();
    history.replaceState(history.state, '', url);
    this.#changed();
  }

  /** Puts the switches on the page. */
  mount() {
    const place = first('form.range', HTMLElement);
    for (const name of SWITCHES) {
      const input = element('input', { type: 'checkbox', name, 'data-switch': name });
      input.addEventListener('change', () => this.set({ [name]: input.checked }));
      this.bar.append(element('label', {}, input, texts[name]));
    }
    this.bar.append(
      this.#choice('before', texts.before, { '': texts.beforeNone, ...texts.beforeNames }),
      this.#choice('zone', texts.zone, this.#zones()),
    );
    place?.after(this.bar);
    this.#show();
  }

  #zones() {
    const here = Intl.DateTimeFormat().resolvedOptions().timeZone;
    /** @type {Record<string, string>} */
    const zones = { browser: `${here} (${texts.zoneBrowser})` };
    if (this.serverZone && this.serverZone !== here) zones.server = `${this.serverZone} (${texts.zoneServer})`;
    if (here !== 'UTC') zones.utc = texts.zoneUtc;
    return zones;
  }

  /** @param {'before' | 'zone'} name @param {string} label @param {Record<string, string>} choices */
  #choice(name, label, choices) {
    const select = element(
      'select',
      { 'data-switch': name },
      ...Object.entries(choices).map(([value, text]) => element('option', { value }, text)),
    );
    select.addEventListener('change', () => this.set({ [name]: select.value }));
    return element('label', {}, `${label} `, select);
  }

  /** @returns {Options} */
  #fromUrl() {
    const words = new URLSearchParams(location.hash.slice(1));
    const before = words.get('before') ?? '';
    const zone = words.get('zone') ?? 'browser';
    return {
      logarithmic: words.has('logarithmic'),
      stacked: words.has('stacked'),
      percentile: words.has('percentile'),
      before: before in SHIFTS ? before : '',
      zone: zone === 'utc' || (zone === 'server' && this.serverZone) ? zone : 'browser',
    };
  }

  #changed() {
    this.#show();
    this.dispatchEvent(new Event('change'));
  }

  #show() {
    for (const input of this.bar.querySelectorAll('[data-switch]')) {
      const name = /** @type {keyof Options} */ (/** @type {HTMLElement} */ (input).dataset.switch);
      if (input instanceof HTMLInputElement) input.checked = Boolean(this.current[name]);
      if (input instanceof HTMLSelectElement) input.value = String(this.current[name]);
    }
  }
}
