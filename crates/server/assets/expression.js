/** The expression box: one argument of `rrdtool graph` a line, drawn as one types, with the error at its line and names completed. */

import * as api from './api.js';
import { debounced, element, first } from './dom.js';
import { texts } from './texts.js';

/** Milliseconds without a key before the graph is drawn. */
const DRAW_PAUSE = 400;
const COMPLETE_PAUSE = 80;
const COMPLETIONS = 12;
/** Entries of a directory that are looked at. */
const BESIDE = 1000;
/** Beginnings of an expression that are tried to find what is wrong. */
const BEGINNINGS = 50;

/** What a line may begin with. */
const STARTS = ['DEF:', 'CDEF:', 'VDEF:', 'LINE1:', 'LINE2:', 'AREA:', 'TICK:', 'HRULE:', 'VRULE:', 'GPRINT:', 'PRINT:', 'COMMENT:', 'SHIFT:', '--title=', '--vertical-label=', '--base=', '--lower-limit=', '--upper-limit=', '--rigid', '--logarithmic', '--slope-mode', '--units-exponent='];
const CFS = ['AVERAGE', 'MIN', 'MAX', 'LAST'];

/** The arguments of a text, each with its line's number from 0. @param {string} text */
function argumentsOf(text) {
  return text
    .split('\n')
    .map((line, number) => ({ word: line.trim(), number }))
    .filter(({ word }) => word !== '');
}

/** A name as the path of a URL. @param {string} name */
function encoded(name) {
  return name.split('/').map(encodeURIComponent).join('/');
}

export class ExpressionBox {
  /** @param {HTMLTextAreaElement} area @param {(arg: string[]) => void} changed */
  constructor(area, changed) {
    this.area = area;
    this.changed = changed;
    this.gutter = element('ol', { class: 'lines', 'aria-hidden': 'true' });
    this.list = element('ul', { class: 'completions', id: 'completions', role: 'listbox', 'aria-label': texts.completions, hidden: true });
    this.error = element('button', { type: 'button', class: 'error', role: 'alert', hidden: true });
    this.error.addEventListener('click', () => this.#select(this.failed));
    /** The line that is wrong. @type {number | null} */
    this.failed = null;
    this.chosen = -1;
    const editor = element('div', { class: 'editor' }, this.gutter);
    area.replaceWith(editor);
    editor.append(area);
    editor.after(this.list, this.error);
    for (const [name, value] of Object.entries({ spellcheck: 'false', autocomplete: 'off', wrap: 'off', 'aria-controls': 'completions', 'aria-autocomplete': 'list' })) {
      area.setAttribute(name, value);
    }
    const draw = debounced(() => this.changed(this.words), DRAW_PAUSE);
    const complete = debounced(() => void this.#complete(), COMPLETE_PAUSE);
    area.addEventListener('input', () => {
      this.#number();
      draw();
      complete();
    });
    area.addEventListener('keydown', (event) => this.#key(event));
    area.addEventListener('blur', () => this.#close());
    area.addEventListener('scroll', () => (this.gutter.scrollTop = area.scrollTop));
    this.list.addEventListener('mousedown', (event) => event.preventDefault());
    this.#number();
  }

  get words() {
    return argumentsOf(this.area.value).map(({ word }) => word);
  }

  /** Shows what is wrong, at its line where that is known; null when nothing is. @param {string | null} text @param {number | null} [argument] */
  fail(text, argument = null) {
    this.failed = argument === null ? null : (argumentsOf(this.area.value)[argument]?.number ?? null);
    this.error.hidden = text === null;
    this.error.textContent = text === null ? '' : this.failed === null ? text : texts.errorAt(this.failed + 1, text);
    this.area.setAttribute('aria-invalid', String(text !== null));
    this.#number();
  }

  #number() {
    const count = this.area.value.split('\n').length;
    this.area.rows = Math.max(6, Math.min(24, count + 1));
    this.gutter.replaceChildren(...Array.from({ length: count }, (_, index) => element('li', { class: index === this.failed ? 'wrong' : false })));
  }

  /** @param {number | null} line */
  #select(line) {
    if (line === null) return;
    const lines = this.area.value.split('\n');
    const from = lines.slice(0, line).join('\n').length + (line > 0 ? 1 : 0);
    this.area.focus();
    this.area.setSelectionRange(from, from + lines[line].length);
  }

  /** The line with the caret, up to the caret. */
  get #before() {
    const text = this.area.value.slice(0, this.area.selectionStart);
    return text.slice(text.lastIndexOf('\n') + 1);
  }

  async #complete() {
    const before = this.#before;
    const offers = await this.#offers(before).catch(() => []);
    // The caret has moved on while the server was asked.
    if (before !== this.#before || document.activeElement !== this.area) return;
    const better = offers.filter(([typed, whole]) => whole !== typed).slice(0, COMPLETIONS);
    this.chosen = -1;
    this.list.replaceChildren(...better.map(([typed, whole]) => this.#option(typed, whole)));
    this.list.hidden = better.length === 0;
    if (better.length > 0) this.#choose(0);
  }

  /** Pairs of what has been typed and what it can become. @param {string} before @returns {Promise<[string, string][]>} */
  async #offers(before) {
    const from = (/** @type {string[]} */ words, /** @type {string} */ typed) =>
      words.filter((word) => word.toLowerCase().startsWith(typed.toLowerCase())).map((word) => /** @type {[string, string]} */ ([typed, word]));
    if (before === '') return [];
    const file = /^DEF:[^=]*=((?:[^:\\]|\\.)*)$/.exec(before);
    if (file) return this.#files(file[1]);
    const source = /^DEF:[^=]*=((?:[^:\\]|\\.)+):([^:]*)$/.exec(before);
    if (source) return from((await this.#sources(source[1])).map((name) => `${name}:`), source[2]);
    const cf = /^DEF:[^=]*=(?:[^:\\]|\\.)+:[^:]*:([^:]*)$/.exec(before);
    if (cf) return from(CFS, cf[1]);
    const variable = /^(?:(?:LINE[\d.]*|AREA|TICK|GPRINT|PRINT):|[CV]DEF:[^=]*=(?:.*,)?)([^:,#]*)$/.exec(before);
    if (variable) return from(this.#variables(), variable[1]);
    return from(STARTS, before);
  }

  /** What the name of a file can become: what is in its directory, or else what a search finds. @param {string} typed @returns {Promise<[string, string][]>} */
  async #files(typed) {
    const name = typed.replaceAll('\\:', ':');
    if (name === '') return [];
    const slash = name.lastIndexOf('/');
    const beside = slash < 0 ? [] : (await api.tree(encoded(name.slice(0, slash)), BESIDE).catch(() => ({ items: [] }))).items;
    const alike = beside.filter((item) => item.name.startsWith(name));
    const items = alike.length > 0 ? alike : (await api.search(name.replace(/\.rrd$/, ''), COMPLETIONS)).items;
    return items.map((item) => {
      const whole = item.directory ? item.name.replace(/\/?$/, '/') : item.name.replace(/(\.rrd)?$/, '.rrd');
      return [typed, `${whole.replaceAll(':', '\\:')}${item.directory ? '' : ':'}`];
    });
  }

  #variables() {
    return this.words.flatMap((word) => /^[CV]?DEF:([^=]+)=/.exec(word)?.[1] ?? []);
  }

  /** @param {string} file @returns {Promise<string[]>} */
  async #sources(file) {
    const about = await api.info(encoded(file.replaceAll('\\:', ':')));
    return Object.keys(about).flatMap((key) => /^ds\[(.+)\]\.index$/.exec(key)?.[1] ?? []);
  }

  /** @param {string} typed @param {string} whole */
  #option(typed, whole) {
    const option = element('li', { role: 'option', id: `completion-${this.list.children.length}`, 'aria-selected': 'false' }, whole);
    option.addEventListener('click', () => this.#insert(typed, whole));
    option.dataset.typed = typed;
    return option;
  }

  /** @param {string} typed @param {string} whole */
  #insert(typed, whole) {
    const caret = this.area.selectionStart;
    this.area.setRangeText(whole, caret - typed.length, caret, 'end');
    this.area.dispatchEvent(new Event('input'));
    this.#close();
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) {
      this.area.form?.requestSubmit();
      return;
    }
    if (this.list.hidden) return;
    const option = this.list.children[this.chosen];
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      this.#choose(this.chosen + (event.key === 'ArrowDown' ? 1 : -1));
    } else if (event.key === 'Tab' && !event.shiftKey && option instanceof HTMLElement) {
      this.#insert(option.dataset.typed ?? '', option.textContent ?? '');
    } else if (event.key === 'Escape') {
      this.#close();
    } else {
      return;
    }
    event.preventDefault();
  }

  /** @param {number} index */
  #choose(index) {
    const options = [...this.list.children];
    this.chosen = (index + options.length) % options.length;
    for (const [at, option] of options.entries()) {
      option.id = `completion-${at}`;
      option.setAttribute('aria-selected', String(at === this.chosen));
    }
    this.area.setAttribute('aria-activedescendant', options[this.chosen].id);
  }

  #close() {
    this.list.hidden = true;
    this.area.removeAttribute('aria-activedescendant');
  }
}

/**
 * The expression page: the box draws into the page's graph, and the URL follows.
 * @param {import('./graphs.js').Graphs} graphs
 * @param {import('./figure.js').Page} page
 */
export function editable(graphs, page) {
  const form = first('form.expression', HTMLFormElement);
  const area = first('textarea[name=arg]', HTMLTextAreaElement, form ?? document);
  const figure = graphs.figures[0];
  if (!form || !area || !figure) return;

  /** The argument that makes an error: the last of the shortest beginning that has it. @param {string[]} arg @param {string} error */
  const place = async (arg, error) => {
    const beginnings = arg.slice(0, BEGINNINGS).map((_, index) => ({ arg: arg.slice(0, index + 1) }));
    const answer = await api.charts({ ...page.range.current, width: 10, charts: beginnings });
    const index = answer.charts.findIndex((chart) => 'error' in chart && chart.error === error);
    return index < 0 ? null : index;
  };
  let latest = 0;
  const draw = async (/** @type {string[]} */ arg) => {
    const mine = ++latest;
    const url = new URL(location.href);
    url.searchParams.delete('arg');
    for (const word of arg) url.searchParams.append('arg', word);
    history.replaceState(history.state, '', url);
    if (arg.length === 0) return;
    try {
      const answer = await api.charts({ ...page.range.current, width: 800, charts: [{ arg }] });
      const chart = answer.charts[0];
      const wrong = 'error' in chart ? await place(arg, chart.error) : null;
      // Someone has typed on: what is said now would be about another text.
      if (mine !== latest) return;
      if ('error' in chart) return box.fail(chart.error, wrong);
      box.fail(null);
      figure.replace({ ...figure.graph, arg });
      figure.take(chart, false, null);
    } catch (error) {
      if (mine === latest) box.fail(error instanceof Error ? error.message : String(error));
    }
  };
  const box = new ExpressionBox(area, (arg) => void draw(arg));
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    void draw(box.words);
  });
}
