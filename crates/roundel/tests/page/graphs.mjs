// A graph under the hands: drag, wheel, fingers, clicks, keys.

import assert from 'node:assert/strict';
import { DEADLINE, area, check, open, origin, range, until } from './browser.mjs';
import { GRAPH } from './places.mjs';

check('a figure becomes a live chart with a legend and its archive', async (page) => {
  await open(page, GRAPH);
  const figure = page.locator('figure.graph').first();
  assert.equal(await figure.locator('img').first().isVisible(), false);
  assert.ok(await figure.locator('canvas').isVisible());
  const heads = await figure.locator('.legend thead th').allTextContents();
  assert.deepEqual(heads, ['Line', 'At cursor', 'Now', 'Avg', 'Min', 'Max', '95th', 'Total']);
  assert.match(await figure.locator('.legend tbody tr').first().textContent(), /\d/);
  assert.match(await figure.locator('.note').textContent(), /AVERAGE.*: rows of /);
});

check('dragging zooms to seconds in the URL; double click, Backspace and the browser go back', async (page) => {
  await open(page, GRAPH);
  const box = await area(page);
  const drag = async (from, to) => {
    await page.mouse.move(...box.at(from));
    await page.mouse.down();
    await page.mouse.move(...box.at((from + to) / 2));
    await page.mouse.move(...box.at(to));
    await page.mouse.up();
  };
  const before = range(page);
  const asked = page.waitForRequest((request) => request.url().endsWith('/api/v1/charts'));
  await drag(0.4, 0.6);
  const body = (await asked).postDataJSON();
  const zoomed = range(page);
  assert.match(zoomed.start, /^\d+$/);
  assert.equal(body.start, zoomed.start);
  const length = Number(zoomed.end) - Number(zoomed.start);
  assert.ok(Math.abs(length - 86400 * 0.2) < 86400 * 0.02, `a fifth of a day is ${length} s`);
  assert.equal(await page.locator('button.live').getAttribute('data-state'), 'fixed');

  await page.mouse.dblclick(...box.at(0.5));
  await until('double click goes back', () => range(page).start === before.start);
  await drag(0.2, 0.3);
  await until('it is zoomed again', () => range(page).start !== before.start);
  await page.keyboard.press('Backspace');
  await until('Backspace goes back', () => range(page).start === before.start);
  await page.goForward();
  await until('the browser goes forward', () => range(page).start !== before.start);
});

check('zooming reaches a finer archive by itself', async (page) => {
  await open(page, `${GRAPH}?start=end-1week&end=now`);
  const note = page.locator('figure.graph .note').first();
  await until('a week comes from the rough archive', async () => /rows of 30 min/.test(await note.textContent()));
  const box = await area(page);
  await page.mouse.move(...box.at(0.98));
  await page.mouse.down();
  await page.mouse.move(...box.at(0.985));
  await page.mouse.move(...box.at(0.995));
  await page.mouse.up();
  await until('hours come from the fine one', async () => /rows of 1 min/.test(await note.textContent()));
});

check('aberrant behaviour is drawn: the forecast, what is usual around it, and marks where values are not', async (page) => {
  const asked = page.waitForResponse((response) => response.url().endsWith('/api/v1/charts'));
  await open(page, '/rrd/aberrant/load');
  const names = await page.locator('figure.graph.drawn').first().locator('.legend tbody th').allTextContents();
  assert.deepEqual(names.map((name) => name.trim()), ['unlike the forecast', 'load', 'forecast, with what is usual around it']);
  const [chart] = (await (await asked).json()).charts;
  const marks = chart.elements.find((one) => one.kind === 'tick');
  const marked = chart.series[marks.series].values.filter((value) => value === 1).length;
  assert.ok(marked >= 1 && marked <= 60, `${marked} rows are marked`);
  const picture = await page.request.get(`${origin}/rrd/aberrant/load.svg`);
  assert.match(await picture.text(), /unlike the forecast/);
});

check('Ctrl and wheel zoom at the pointer, the plain wheel scrolls', async (page) => {
  await open(page, GRAPH);
  const box = await area(page);
  await page.mouse.move(...box.at(0.5));
  await page.mouse.wheel(0, 60);
  const before = page.url();
  await page.keyboard.down('Control');
  await page.mouse.wheel(0, -120);
  await page.keyboard.up('Control');
  await until('the wheel has zoomed', () => page.url() !== before);
  const { start, end } = range(page);
  assert.ok(Number(end) - Number(start) < 86400, `${start} to ${end}`);
});

check('two fingers zoom', { hasTouch: true, isMobile: true, viewport: { width: 390, height: 800 } }, async (page) => {
  await open(page, GRAPH);
  const box = await area(page);
  const client = await page.context().newCDPSession(page);
  const touch = (type, ...places) =>
    client.send('Input.dispatchTouchEvent', { type, touchPoints: places.map(([x, y], id) => ({ x, y, id })) });
  await touch('touchStart', box.at(0.45), box.at(0.55));
  await touch('touchMove', box.at(0.35), box.at(0.65));
  await touch('touchMove', box.at(0.25), box.at(0.75));
  await touch('touchEnd');
  await until('the fingers have zoomed', () => /^\d+$/.test(range(page).start ?? ''));
  const length = Number(range(page).end) - Number(range(page).start);
  assert.ok(length > 86400 * 0.1 && length < 86400 * 0.4, `${length} s`);
});

check('cursors go in step, and a click pins values that can be copied', async (page) => {
  await open(page, '/');
  await page.locator('figure.graph.drawn').nth(1).waitFor();
  const box = await area(page);
  await page.mouse.move(...box.at(0.5));
  await page.mouse.move(...box.at(0.9, 0.4));
  const cells = page.locator('figure.graph.drawn .legend tbody tr:first-child .at');
  await until('both legends show the values', async () => (await cells.nth(0).textContent()) !== '' && (await cells.nth(1).textContent()) !== '');
  const readout = page.locator('.readout:not([hidden])');
  assert.equal(await readout.count(), 1);

  await page.mouse.click(...box.at(0.9, 0.4));
  await page.locator('.readout.pinned').waitFor();
  const pinned = await readout.locator('.when').textContent();
  await page.mouse.move(...box.at(0.3));
  await page.mouse.move(10, 10);
  assert.equal(await readout.locator('.when').textContent(), pinned);
  assert.equal(await page.locator('button.live').getAttribute('data-state'), 'held');
  await page.keyboard.press('Escape');
  await until('Escape lets go', async () => (await readout.count()) === 0);
});

check('an unknown row says why', async (page) => {
  // No readings come for an hour of each day; which rows that is depends on the time.
  await open(page, `${GRAPH}?start=end-1d&end=now`);
  const box = await area(page);
  const why = page.locator('.readout .reason');
  for (let at = 0; at < 1 && (await why.count()) === 0; at += 0.02) await page.mouse.move(...box.at(at));
  assert.equal(await why.textContent(), 'No reading came for more than 2 min, or its values were below 0.');
});

check('a click in the legend isolates, Ctrl and click hides', async (page) => {
  await open(page, GRAPH);
  const buttons = page.locator('figure.graph').first().locator('.legend button');
  const pressed = () => buttons.evaluateAll((all) => all.map((one) => one.getAttribute('aria-pressed') === 'true'));
  await buttons.nth(0).click();
  assert.deepEqual(await pressed(), [true, false]);
  await buttons.nth(0).click();
  assert.deepEqual(await pressed(), [true, true]);
  await buttons.nth(1).click({ modifiers: ['Control'] });
  assert.deepEqual(await pressed(), [true, false]);
});

check('switches stand in the fragment and survive loading', async (page) => {
  await open(page, GRAPH);
  await page.getByLabel('Logarithmic').check();
  await page.getByLabel('95th percentile').check();
  await page.getByLabel('Overlay').selectOption('day');
  await page.getByLabel('Times').selectOption('utc');
  const hash = new URL(page.url()).hash;
  for (const word of ['logarithmic', 'percentile', 'before=day', 'zone=utc']) assert.ok(hash.includes(word), hash);
  await page.reload();
  await page.locator('figure.graph.drawn').first().waitFor();
  assert.ok(await page.getByLabel('Logarithmic').isChecked());
  assert.equal(await page.getByLabel('Overlay').inputValue(), 'day');
});

check('the period before is asked for and read out', async (page) => {
  await open(page, GRAPH);
  const asked = page.waitForRequest((request) => typeof request.postDataJSON()?.start === 'number');
  await page.getByLabel('Overlay').selectOption('day');
  const { start, end } = (await asked).postDataJSON();
  assert.ok(Math.abs(Date.now() / 1000 - 86400 - end) < 120, `${start} to ${end}`);
  const box = await area(page);
  await page.mouse.move(...box.at(0.5));
  await page.mouse.move(...box.at(0.7));
  await until('both values are read', async () => /\(.+\)/.test(await page.locator('.readout dd').first().textContent()));
});

check('RRDtool’s words make a range, and wrong ones an error at the graph', { allowed: ['400'] }, async (page) => {
  await open(page, GRAPH);
  await page.getByRole('textbox', { name: 'from' }).fill('end-2h');
  await page.keyboard.press('Enter');
  await until('the URL says so', () => range(page).start === 'end-2h');
  await page.getByRole('textbox', { name: 'from' }).fill('when the moon is full');
  await page.keyboard.press('Enter');
  await page.locator('figure.graph .error').first().waitFor();
  await page.locator('a.preset').first().click();
  await until('the error goes', async () => (await page.locator('figure.graph .error').count()) === 0);
});

check('live rows come in one request for all graphs, and wait under the pointer', async (page) => {
  await open(page, '/?start=end-10min&end=now');
  await page.locator('figure.graph.drawn').nth(1).waitFor();
  const state = page.locator('button.live');
  assert.equal(await state.getAttribute('data-state'), 'live');
  // The collector of a new daemon has its first row after two samples, 10 s apart.
  const now = page.locator('figure.graph.drawn .legend td.last').first();
  await until('the first rows have come by themselves', async () => /\d/.test(await now.textContent()), 3 * DEADLINE);
  const request = await page.waitForRequest((one) => one.url().endsWith('/api/v1/charts') && one.postDataJSON().charts.every((chart) => chart.since !== null));
  assert.ok(request.postDataJSON().charts.length > 1);
  await state.click();
  assert.equal(await state.getAttribute('data-state'), 'paused');
});

check('a graph can be saved in every form, and its command copied', async (page) => {
  await open(page, GRAPH);
  const figure = page.locator('figure.graph').first();
  await figure.locator('.links summary').click();
  const forms = { SVG: 'image/svg', PNG: 'image/png', PDF: 'application/pdf', CSV: 'text/csv', JSON: 'application/json' };
  for (const [name, type] of Object.entries(forms)) {
    const href = await figure.locator('.links').getByRole('link', { name, exact: true }).getAttribute('href');
    const answer = await page.request.get(new URL(href, page.url()).href);
    assert.equal(answer.status(), 200, `${name}: ${await answer.text()}`);
    assert.ok(answer.headers()['content-type'].startsWith(type), `${name}: ${answer.headers()['content-type']}`);
  }
  assert.match(await figure.locator('.links pre').textContent(), /^rrdtool graph graph\.svg .*DEF:/);
});

check('everything by keys alone', async (page) => {
  await open(page, '/');
  await page.locator('figure.graph.drawn').nth(1).waitFor();
  const title = () => page.evaluate(() => document.activeElement?.getAttribute('aria-label') ?? '');
  await page.keyboard.press('j');
  const one = await title();
  await page.keyboard.press('j');
  assert.notEqual(await title(), one);
  await page.keyboard.press('k');
  assert.equal(await title(), one);

  await page.keyboard.press('End');
  const readout = page.locator('.readout:not([hidden]) .when');
  await readout.waitFor();
  const newest = await readout.textContent();
  await page.keyboard.press('ArrowLeft');
  await until('the cursor has moved', async () => (await readout.textContent()) !== newest);
  const spoken = page.locator('figure.graph [aria-live=polite]').first();
  await until('the values are read out', async () => (await spoken.textContent()) !== '');
  await page.keyboard.press('Enter');
  await page.locator('.readout.pinned').waitFor();
  await page.keyboard.press('Escape');

  await page.keyboard.press('+');
  await until('+ zooms', () => range(page).start !== null);
  await page.keyboard.press('Backspace');
  await until('Backspace goes back', () => range(page).start === null);
  await page.keyboard.press('[');
  await until('[ goes to earlier', () => /^\d+$/.test(range(page).start ?? ''));
  await page.keyboard.press('v');
  await page.locator('figure.graph .values[open] tbody tr').first().waitFor();
  await page.keyboard.press('l');
  assert.ok(await page.getByLabel('Logarithmic').isChecked());

  await page.keyboard.press('?');
  await page.locator('dialog.keys').waitFor();
  await page.keyboard.press('Escape');
  await page.keyboard.press('/');
  assert.equal(await page.evaluate(() => document.activeElement?.getAttribute('name')), 'q');
});

check('the table shows a page of rows, as the legend names them', async (page) => {
  await open(page, GRAPH);
  const values = page.locator('figure.graph .values').first();
  await values.locator('summary').click();
  await until('the table is filled', async () => (await values.locator('tbody tr').count()) === 25);
  const newest = await values.locator('tbody tr').last().textContent();
  await values.getByRole('button', { name: 'Earlier rows' }).click();
  await until('the table shows other rows', async () => (await values.locator('tbody tr').last().textContent()) !== newest);
});

check('new rows in a stack are drawn as if all had come at once', async (page) => {
  await open(page, GRAPH);
  const same = await page.evaluate(async () => {
    const main = document.querySelector('script[type=module]').src;
    const { LiveChart } = await import(new URL('chart.js', main).href);
    const { extended } = await import(new URL('grid.js', main).href);
    const chart = (start, first, count) => {
      const rows = (factor) => Array.from({ length: count }, (_, row) => (first / 10 + row) * factor);
      const series = [1, 2].map((factor) => ({ name: `s${factor}`, start: first, step: 10, values: rows(factor) }));
      const element = { kind: 'area', value: null, label: 'x', color: '#336699', alpha: 1, width: 0, dashes: null };
      const elements = [0, 1].map((number) => ({ ...element, series: number, stack: number > 0 }));
      return { start, end: start + 100, step: 10, newest: first + 10 * (count - 1), title: '', unit: '', base: 1000, lower: null, upper: null, rigid: false, logarithmic: false, series, elements, numbers: [], texts: [], sources: [] };
    };
    const view = (shown) => ({ chart: shown, before: null, logarithmic: false, stacked: false, percentile: false, slope: false, everything: false, hidden: new Set(), zone: null });
    const events = { select() {}, back() {}, move() {}, held: () => false };
    const place = () => {
      const host = document.createElement('div');
      host.className = 'plot';
      document.querySelector('main').append(host);
      return host;
    };
    const [one, other] = [place(), place()];
    const old = chart(1000, 1010, 10);
    const live = new LiveChart(one, view(old), events);
    const whole = extended(old, chart(1050, 1100, 6));
    live.show(view(whole), false);
    const whence = new LiveChart(other, view(chart(1050, 1060, 10)), events);
    await new Promise((done) => setTimeout(done, 100));
    const picture = (host) => host.querySelector('canvas').toDataURL();
    const result = { same: picture(one) === picture(other), start: whole.series[0].start, count: whole.series[0].values.length };
    live.destroy();
    whence.destroy();
    return result;
  });
  assert.deepEqual(same, { same: true, start: 1060, count: 10 });
});
