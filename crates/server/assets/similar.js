/** What someone may have meant who came to an RRD that does not exist: names of its directory, or of anywhere, that are spelt alike. */

import * as api from './api.js';
import { element, first } from './dom.js';
import { page } from './links.js';
import { texts } from './texts.js';

/** Names compared. */
const COMPARED = 500;
/** Names offered. */
const OFFERED = 5;

/** Letters to change, add or leave out to make one word of the other. @param {string} one @param {string} other */
function distance(one, other) {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (let at = 1; at <= one.length; at++) {
    const next = [at];
    for (let to = 1; to <= other.length; to++) {
      const changed = row[to - 1] + (one[at - 1] === other[to - 1] ? 0 : 1);
      next.push(Math.min(changed, row[to] + 1, next[to - 1] + 1));
    }
    row = next;
  }
  return row[other.length];
}

/** @param {string} name @param {string} directory @returns {Promise<import('./types').SearchItem[]>} */
async function candidates(name, directory) {
  const beside = await api.tree(directory, COMPARED).catch(() => ({ items: [] }));
  if (beside.items.length > 0) return beside.items;
  const words = name.split(/[^\p{L}\p{N}]+/u).filter((word) => word.length > 1);
  const found = await api.search(words.at(-1) ?? name, COMPARED);
  return found.items;
}

/** Offers names on the page that says that there is no such RRD. */
export async function offerSimilar() {
  const path = /^\/(?:rrd|tree)\/(.+?)\/?$/.exec(location.pathname)?.[1];
  if (!path) return;
  const name = decodeURIComponent(path);
  const items = await candidates(name, path.slice(0, Math.max(0, path.lastIndexOf('/'))));
  const ranked = items
    .map((item) => ({ item, far: distance(name, item.name.replace(/\.rrd$|\/$/, '')) }))
    .sort((one, other) => one.far - other.far)
    .slice(0, OFFERED);
  if (ranked.length === 0) return;
  const links = ranked.map(({ item }) => element('li', {}, element('a', { href: page(item.path, item.directory) }, item.name.replace(/\.rrd$/, ''))));
  first('main', HTMLElement)?.append(element('section', { class: 'card' }, element('h2', {}, texts.similar), element('ul', {}, ...links)));
}
