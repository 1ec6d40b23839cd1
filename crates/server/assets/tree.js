/** Lists of RRDs: ticks that are kept from page to page until they are compared, and more entries without a new page. */

import { all, element, first } from './dom.js';
import { duration } from './format.js';
import { texts } from './texts.js';

const KEY = 'roundel-picked';

/** @returns {Set<string>} */
function remembered() {
  try {
    return new Set(JSON.parse(sessionStorage.getItem(KEY) ?? '[]'));
  } catch {
    return new Set();
  }
}

/** The ticks of a page with lists, and the bar that says how many there are. */
export function pickable() {
  const form = first('form.pick', HTMLFormElement);
  if (!form) return;
  const picked = remembered();
  const count = element('span', { role: 'status' });
  const compare = element('a', { class: 'button', href: '/compare' }, texts.compare);
  const clear = element('button', { type: 'button', class: 'quiet' }, texts.clear);
  const bar = element('div', { class: 'picked', hidden: true }, count, compare, clear);
  form.append(bar);
  form.classList.add('scripted');

  const boxes = () => all('input[type=checkbox][name=name]', HTMLInputElement, form);
  const show = () => {
    sessionStorage.setItem(KEY, JSON.stringify([...picked]));
    for (const box of boxes()) box.checked = picked.has(box.value);
    bar.hidden = picked.size === 0;
    count.textContent = picked.size > 0 ? texts.picked(picked.size) : '';
    compare.href = `/compare?${new URLSearchParams([...picked].map((name) => ['name', name]))}`;
  };
  form.addEventListener('change', (event) => {
    const box = event.target;
    if (!(box instanceof HTMLInputElement) || box.name !== 'name') return;
    if (box.checked) picked.add(box.value);
    else picked.delete(box.value);
    show();
  });
  clear.addEventListener('click', () => {
    picked.clear();
    show();
  });
  show();
  moreEntries(form, show);
}

/** The link to the next page adds its rows to this one. @param {HTMLFormElement} form @param {() => void} added */
function moreEntries(form, added) {
  form.addEventListener('click', async (event) => {
    const link = event.target instanceof Element ? event.target.closest('a[rel=next]') : null;
    if (!(link instanceof HTMLAnchorElement) || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    link.setAttribute('aria-busy', 'true');
    const response = await fetch(link.href).catch(() => null);
    if (!response?.ok) return location.assign(link.href);
    const page = new DOMParser().parseFromString(await response.text(), 'text/html');
    const rows = all('form.pick tbody > tr', HTMLTableRowElement, page);
    form.querySelector('tbody')?.append(...rows.map((row) => document.adoptNode(row)));
    const next = first('form.pick a[rel=next]', HTMLAnchorElement, page);
    if (next) {
      link.setAttribute('href', next.getAttribute('href') ?? '');
      link.removeAttribute('aria-busy');
    } else {
      link.remove();
    }
    added();
  });
}

/** Ages go on from what they were when the server wrote them. */
export function runningAges() {
  const began = performance.now();
  setInterval(() => {
    if (document.hidden) return;
    const passed = (performance.now() - began) / 1000;
    for (const time of all('time[data-age]', HTMLElement)) {
      time.textContent = duration(Math.max(0, Number(time.dataset.age) + passed));
    }
  }, 10_000);
}
