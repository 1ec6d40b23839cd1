/** The daemon's state on home and status pages, and the cluster's on its own, written again every few seconds. */

import * as api from './api.js';
import { all, element } from './dom.js';
import { page } from './links.js';
import { dateTime, duration, number } from './format.js';

/** Seconds between two looks at the state. */
const EVERY = 10;

/** @typedef {(item: any, now: number) => (Node | string)[]} RowWriter the cells of an item */

/** @type {Record<string, RowWriter>} */
const ROWS = {
  late: (item, now) => [
    element('a', { href: page(item.path) }, item.name),
    item.last_update ? duration(now - item.last_update) : '–',
    duration(item.step),
  ],
  errors: (item) => [dateTime(item.time, 1, null), item.level, item.text],
  dropped: (item) => [item.reason, String(item.count)],
  slow: (item) => [dateTime(item.time, 1, null), duration(item.seconds), item.request],
  nodes: (item) => [item.name, item.zone, item.address, item.state, String(item.leads), String(item.holds), item.version],
  partitions: (item) => [String(item.number), item.state, item.leader ?? '–', String(item.epoch), item.replicas.map(replica).join('; ')],
  agents: (item) => [item.name, item.connected ? 'connected' : 'away', item.lag_seconds === null ? '–' : duration(item.lag_seconds)],
};

/** @param {any} item a replica of a partition */
function replica(item) {
  const text = `${item.node} ${item.state}`;
  return item.lacking === 0 ? text : `${text}, lacks ${item.lacking} messages`;
}

/** @param {any} status @param {string} path such as `updates.per_second` */
function lookUp(status, path) {
  return path.split('.').reduce((value, key) => value?.[key], status);
}

/** @param {any} value @param {string} format @param {number} now */
function written(value, format, now) {
  if (value === null || value === undefined) return '–';
  if (typeof value === 'boolean') return value === (format === 'not') ? 'no' : 'yes';
  if (typeof value !== 'number') return String(value);
  if (format === 'count') return String(value);
  if (format === 'bytes') {
    // As the server writes them.
    const text = number(value, 1000, null);
    return /\d$/.test(text) ? `${text} B` : `${text}B`;
  }
  if (format === 'seconds') return duration(value);
  if (format === 'age') return duration(now - value);
  if (format === 'time') return dateTime(value, 1, null);
  return number(value, 1000, null);
}

/** @param {any} status */
function show(status) {
  for (const place of all('[data-status]', HTMLElement)) {
    place.textContent = written(lookUp(status, place.dataset.status ?? ''), place.dataset.format ?? 'number', status.now);
  }
  for (const body of all('tbody[data-list]', HTMLTableSectionElement)) {
    const name = body.dataset.list ?? '';
    const write = ROWS[name];
    const items = status[name];
    if (!write || !Array.isArray(items)) continue;
    body.replaceChildren(...items.map((item) => element('tr', {}, ...write(item, status.now).map((cell) => element('td', { class: typeof cell === 'string' && cell.length > 30 ? 'long' : false }, cell)))));
    const section = body.closest('section');
    if (section?.dataset.whenAny !== undefined) section.hidden = items.length === 0;
  }
}

/** Keeps the state on the page up to date while someone can see it. */
export function watchStatus() {
  if (!document.querySelector('[data-status], tbody[data-list]')) return;
  const ask = document.body.dataset.page === 'cluster' ? api.cluster : api.status;
  const look = () => {
    if (!document.hidden) ask().then(show, () => undefined);
  };
  look();
  setInterval(look, EVERY * 1000);
}
