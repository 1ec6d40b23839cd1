/** The keyboard: everything that the mouse does, and the list of keys. */

import { element, first, inTextField } from './dom.js';
import { texts } from './texts.js';

/**
 * @param {import('./figure.js').Page} page
 * @param {import('./graphs.js').Graphs | null} graphs
 * @param {import('./live.js').Live | null} live
 */
export function listenForKeys(page, graphs, live) {
  const help = helpDialog();
  document.addEventListener('keydown', (event) => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || help.open) return;
    if (inTextField(event)) {
      if (event.key === 'Escape' && event.target instanceof HTMLElement) event.target.blur();
      return;
    }
    const done = pageKey(event, help) || (graphs !== null && graphKey(event, page, graphs, live));
    if (done) event.preventDefault();
  });
}

/** @param {KeyboardEvent} event @param {HTMLDialogElement} help */
function pageKey(event, help) {
  switch (event.key) {
    case '?':
      help.showModal();
      return true;
    case '/':
      return focus('form[role=search] input');
    case 't':
      return focus('form.range input[name=start]');
    default:
      return false;
  }
}

/** @param {string} selector */
function focus(selector) {
  const input = first(selector, HTMLInputElement);
  input?.focus();
  input?.select();
  return input !== null;
}

/**
 * @param {KeyboardEvent} event
 * @param {import('./figure.js').Page} page
 * @param {import('./graphs.js').Graphs} graphs
 * @param {import('./live.js').Live | null} live
 */
function graphKey(event, page, graphs, live) {
  const { range, options, cursor } = page;
  const figure = graphs.figures.find((one) => one.element.contains(document.activeElement)) ?? null;
  const step = figure?.rowSeconds ?? 1;
  const onButton = event.target instanceof HTMLElement && event.target.closest('button, summary, a, input') !== null;
  const move = (/** @type {number} */ rows) => figure !== null && !onButton && moveCursor(figure, page, rows);
  switch (event.key) {
    case 'j':
      return focusFigure(graphs, figure, 1);
    case 'k':
      return focusFigure(graphs, figure, -1);
    case 'ArrowLeft':
      return move(event.shiftKey ? -10 : -1);
    case 'ArrowRight':
      return move(event.shiftKey ? 10 : 1);
    case 'Home':
      return move(-Infinity);
    case 'End':
      return move(Infinity);
    case 'Enter':
      if (figure === null || onButton) return false;
      cursor.togglePin(figure);
      return true;
    case '+':
    case '=':
      return did(() => range.zoom(0.5, figure?.live?.cursorTime ?? null, step));
    case '-':
      return did(() => range.zoom(2, figure?.live?.cursorTime ?? null, step));
    case '[':
      return did(() => range.pan(-0.5));
    case ']':
      return did(() => range.pan(0.5));
    case 'Backspace':
      return did(() => range.back());
    case 'l':
      return did(() => options.set({ logarithmic: !options.current.logarithmic }));
    case 's':
      return did(() => options.set({ stacked: !options.current.stacked }));
    case 'p':
      return did(() => options.set({ percentile: !options.current.percentile }));
    case ' ':
      return !onButton && live !== null && did(() => live.toggle());
    case 'v':
      return figure !== null && did(() => (figure.table.details.open = !figure.table.details.open));
    case 'Escape':
      return cursor.release();
    default:
      return false;
  }
}

/** @param {() => void} work */
function did(work) {
  work();
  return true;
}

/** @param {import('./figure.js').Figure} figure @param {import('./figure.js').Page} page @param {number} rows */
function moveCursor(figure, page, rows) {
  if (page.cursor.pinned) page.cursor.release();
  figure.live?.stepCursor(rows);
  page.cursor.moved(figure);
  return true;
}

/** @param {import('./graphs.js').Graphs} graphs @param {import('./figure.js').Figure | null} figure @param {number} by */
function focusFigure(graphs, figure, by) {
  const drawn = graphs.figures.filter((one) => one.live);
  if (drawn.length === 0) return false;
  const at = figure ? drawn.indexOf(figure) + by : 0;
  const next = drawn[Math.max(0, Math.min(drawn.length - 1, at))];
  next.plot.focus({ preventScroll: true });
  next.element.scrollIntoView({ block: 'nearest' });
  return true;
}

/** The list of keys, and a button that opens it. */
function helpDialog() {
  const rows = (/** @type {[string, string][]} */ list) => list.flatMap(([key, text]) => [element('dt', {}, element('kbd', {}, key)), element('dd', {}, text)]);
  const close = element('button', { type: 'submit', class: 'quiet' }, texts.close);
  const dialog = element(
    'dialog',
    { class: 'keys', 'aria-labelledby': 'keys-title' },
    element('h2', { id: 'keys-title' }, texts.keys),
    element('dl', {}, ...rows(texts.keyList), ...rows(texts.mouseList)),
    element('form', { method: 'dialog' }, close),
  );
  document.body.append(dialog);
  const button = element('button', { type: 'button', class: 'quiet help', title: texts.keys, 'aria-label': texts.keys, onclick: () => dialog.showModal() }, '?');
  first('header.top', HTMLElement)?.append(button);
  return dialog;
}
