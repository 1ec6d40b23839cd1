/** The beginning: finds what the server's page holds and brings it to life. Each page works without this, with pictures and forms. */

import { onSchemeChange } from './colors.js';
import { SharedCursor } from './cursor.js';
import { all, element, first } from './dom.js';
import { Graphs } from './graphs.js';
import { listenForKeys } from './keys.js';
import { Live } from './live.js';
import { PageOptions } from './options.js';
import { PageRange } from './range.js';
import { suggest } from './search.js';
import { watchStatus } from './status.js';
import { texts } from './texts.js';
import { zoomable } from './zoom.js';

/** The graphs of the page with all that belongs to them; null where there are none. @param {import('./figure.js').Page} page */
function liveGraphs(page) {
  // Names that JSON cannot hold have pictures only.
  const figures = all('figure.graph[data-graph]', HTMLElement);
  if (figures.length === 0) return { graphs: null, live: null };
  page.options.mount();
  const graphs = new Graphs(figures, page);
  const live = new Live(graphs, page);
  for (const figure of graphs.figures) zoomable(figure);
  onSchemeChange(() => graphs.redraw());
  return { graphs, live };
}

/** A place for the graph of an expression that is still to be written. */
function emptyFigure() {
  const section = first('section.graphs', HTMLElement);
  if (!section || first('figure.graph', HTMLElement)) return;
  section.append(element('figure', { class: 'graph', 'data-graph': '{"arg":[]}' }, element('figcaption', {}, texts.preview)));
}

/** Radios and selects of a form that asks the server anew when they change. */
function selfSubmitting() {
  for (const form of all('form.modes', HTMLFormElement)) {
    form.classList.add('scripted');
    form.addEventListener('change', () => form.requestSubmit());
  }
}

document.documentElement.classList.add('script');
if (document.body.dataset.page === 'expression') emptyFigure();
const page = { range: new PageRange(), options: new PageOptions(), cursor: new SharedCursor() };
const { graphs, live } = liveGraphs(page);
listenForKeys(page, graphs, live);
const search = first('form[role=search]', HTMLFormElement);
if (search) suggest(search);
// What only some pages need.
if (document.body.dataset.page === 'expression') {
  const { editable } = await import('./expression.js');
  if (graphs) editable(graphs, page);
}
if (first('form.pick, time[data-age]', HTMLElement)) {
  const { pickable, runningAges } = await import('./tree.js');
  pickable();
  runningAges();
}
selfSubmitting();
watchStatus();
