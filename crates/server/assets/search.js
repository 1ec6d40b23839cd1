/** The search box of every page: suggestions as one types, as an ARIA combobox. */

import * as api from './api.js';
import { debounced, element } from './dom.js';
import { page } from './links.js';
import { texts } from './texts.js';

/** Suggestions shown. */
const LIMIT = 12;
/** Milliseconds without a key before the server is asked. */
const PAUSE = 60;

/** @param {HTMLFormElement} form */
export function suggest(form) {
  const input = form.querySelector('input[name=q]');
  if (!(input instanceof HTMLInputElement)) return;
  const list = element('ul', { id: 'suggestions', role: 'listbox', 'aria-label': texts.suggestions, hidden: true });
  const state = element('p', { class: 'unseen', role: 'status' });
  form.append(list, state);
  for (const [name, value] of Object.entries({ role: 'combobox', 'aria-autocomplete': 'list', 'aria-controls': list.id, 'aria-expanded': 'false' })) {
    input.setAttribute(name, value);
  }
  input.autocomplete = 'off';
  new Suggestions(input, list, state);
}

class Suggestions {
  /** @param {HTMLInputElement} input @param {HTMLUListElement} list @param {HTMLElement} state */
  constructor(input, list, state) {
    this.input = input;
    this.list = list;
    this.state = state;
    this.chosen = -1;
    /** @type {AbortController | null} */
    this.asking = null;
    input.addEventListener('input', debounced(() => void this.#ask(), PAUSE));
    input.addEventListener('keydown', (event) => this.#key(event));
    input.addEventListener('blur', () => this.#close());
    // The list must not take the focus, or it closes before the click.
    list.addEventListener('mousedown', (event) => event.preventDefault());
  }

  async #ask() {
    this.asking?.abort();
    const text = this.input.value.trim();
    if (text === '') return this.#close();
    const asking = new AbortController();
    this.asking = asking;
    try {
      const answer = await api.search(text, LIMIT, asking.signal);
      this.#show(answer.items, answer.total);
    } catch (error) {
      if (asking.signal.aborted) return;
      this.#close();
      this.state.textContent = error instanceof Error ? error.message : String(error);
    }
  }

  /** @param {import('./types').SearchItem[]} items @param {number} total */
  #show(items, total) {
    const before = this.items?.[this.chosen]?.path;
    this.chosen = -1;
    const options = items.map((item, index) =>
      element(
        'li',
        { role: 'option', id: `suggestion-${index}`, 'aria-selected': 'false', onclick: () => location.assign(page(item.path, item.directory)) },
        element('span', { class: 'name' }, item.directory ? `${item.name}/` : item.name),
        element('small', {}, item.directory ? texts.entries(item.count ?? 0) : (item.title ?? '')),
      ),
    );
    this.items = items;
    this.list.replaceChildren(...options);
    this.list.hidden = options.length === 0;
    this.input.setAttribute('aria-expanded', String(options.length > 0));
    this.input.removeAttribute('aria-activedescendant');
    // What was chosen while the answer was on its way stays chosen.
    const again = items.findIndex((item) => item.path === before);
    if (again >= 0) this.#choose(again);
    this.state.textContent = total === 0 ? texts.nothingFound : texts.found(total);
  }

  #close() {
    this.asking?.abort();
    this.list.hidden = true;
    this.chosen = -1;
    this.input.setAttribute('aria-expanded', 'false');
    this.input.removeAttribute('aria-activedescendant');
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (this.list.hidden) return;
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault();
      this.#choose(this.chosen + (event.key === 'ArrowDown' ? 1 : -1));
    } else if (event.key === 'Enter' && this.chosen >= 0) {
      const item = this.items?.[this.chosen];
      if (!item) return;
      event.preventDefault();
      location.assign(page(item.path, item.directory));
    } else if (event.key === 'Escape') {
      event.preventDefault();
      this.#close();
    }
  }

  /** @param {number} index wraps around */
  #choose(index) {
    const options = [...this.list.children];
    this.chosen = (index + options.length) % options.length;
    for (const [at, option] of options.entries()) option.setAttribute('aria-selected', String(at === this.chosen));
    this.input.setAttribute('aria-activedescendant', options[this.chosen].id);
    options[this.chosen].scrollIntoView({ block: 'nearest' });
  }
}
