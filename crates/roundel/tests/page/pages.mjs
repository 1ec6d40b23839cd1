// What is on single pages: the cluster, the state, paper, links, views; and names that want to be markup.

import assert from 'node:assert/strict';
import { check, open, until, visit } from './browser.mjs';
import { CLUSTER, GRAPH, HOSTILE } from './places.mjs';

check('the cluster without script: nodes, partitions, drain and fill', { allowed: [CLUSTER], javaScriptEnabled: false }, async (page) => {
  await page.goto(`${CLUSTER}/status`);
  await page.getByRole('link', { name: 'The cluster' }).click();
  assert.match(await page.locator('main').innerText(), /8 of 8 partitions lack a leader or ready replicas/);
  assert.equal(await page.locator('tbody[data-list="partitions"] tr').count(), 8);
  await page.getByRole('button', { name: 'Drain' }).click();
  await until('it drains', async () => {
    await page.goto(`${CLUSTER}/cluster`);
    return (await page.getByRole('button', { name: 'Fill' }).count()) > 0;
  });
  await page.getByRole('button', { name: 'Fill' }).click();
  await page.waitForURL('**/cluster');
});

check('the script writes the cluster as the server does', { allowed: [CLUSTER] }, async (page) => {
  const texts = () => page.locator('tbody[data-list]').allInnerTexts();
  // Before the script has asked, and what it makes of the same.
  const asked = page.waitForResponse('**/api/v1/cluster');
  await page.goto(`${CLUSTER}/cluster`);
  const answer = await (await asked).json();
  await until('the script has written it', async () => (await texts()).length === 2);
  const [nodes, partitions] = await texts();
  assert.match(nodes, /^first\s+east\s+127\.0\.0\.1:\d+\s+(alive|draining)\s+8\s+8\s+\d/);
  assert.match(partitions, new RegExp(`^0\\s+short\\s+first\\s+${answer.partitions[0].epoch}\\s+first ready`));
  // A change comes by itself.
  await page.route('**/api/v1/cluster', (route) => {
    answer.nodes[0].state = 'silent';
    answer.partitions[0].leader = null;
    answer.partitions[0].replicas[0].lacking = 7;
    return route.fulfill({ json: answer });
  });
  await until('it is shown', async () => /^0\s+short\s+–\s+\d+\s+first ready, lacks 7 messages/.test((await texts())[1]));
  assert.match((await texts())[0], /silent/);
});

check('each number of the state has its history', async (page) => {
  const histories = page.locator('.facts .history img');
  await until('the daemon has recorded its numbers', async () => {
    await open(page, '/status');
    return (await histories.count()) > 0;
  });
  assert.equal(await histories.count(), 8);
  await until('they are drawn', () => histories.evaluateAll((images) => images.every((image) => image.naturalWidth > 0)));
  await page.locator('.facts .history a').first().click();
  await page.waitForURL('**/rrd/roundel/daemon');
  await page.getByText('Memory of Roundel').waitFor();
});

check('high contrast and forced colours show the graphs', { contrast: 'more', forcedColors: 'active' }, async (page) => {
  await open(page, GRAPH);
  assert.ok(await page.locator('figure.graph canvas').first().isVisible());
});

check('on paper there are graphs and no controls', { colorScheme: 'dark' }, async (page) => {
  await open(page, GRAPH);
  await page.emulateMedia({ media: 'print' });
  assert.equal(await page.locator('form.range').isVisible(), false);
  assert.ok(await page.locator('figure.graph canvas').first().isVisible());
  const ground = await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
  assert.equal(ground, 'rgb(255, 255, 255)');
});

check('links go where they say, from home to a graph and back', async (page) => {
  await open(page, '/');
  await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Tree' }).click();
  await page.waitForURL('**/tree/');
  await page.locator('.list').getByRole('link', { name: 'net', exact: false }).first().click();
  await page.waitForURL('**/tree/net/**');
  await page.locator('.brand').click();
  await page.waitForURL((url) => url.pathname === '/');
});

check('a thumbnail opens its period', async (page) => {
  await open(page, GRAPH);
  await page.getByRole('navigation', { name: 'Periods' }).getByRole('link', { name: /week/i }).click();
  await until('the range is a week', () => /w/.test(new URL(page.url()).searchParams.get('start') ?? ''));
  await until('one period is marked', async () => (await page.locator('nav.periods [aria-current]').count()) === 1);
});

check('names that want to be markup are names', async (page) => {
  await open(page, HOSTILE);
  const names = await page.locator('.list .name').allTextContents();
  assert.ok(names.some((name) => name.includes('<img src=x onerror=alert(1)>')), names.join('\n'));
  assert.equal(await page.locator('img[src=x]').count(), 0);
  const links = await page.locator('.list .name a').evaluateAll((all) => all.map((link) => link.href));
  assert.ok(links.length >= 5, `${links.length} names`);
  for (const link of links) {
    await open(page, new URL(link).pathname);
    assert.equal(await page.locator('figure.graph .error').count(), 0, link);
    const isDrawn = (figure) => figure.querySelector('canvas') !== null || figure.querySelector('img')?.naturalWidth > 0;
    await until(`a graph at ${link}`, () => page.locator('figure.graph').first().evaluate(isDrawn));
    assert.equal(await page.locator('img[src=x]').count(), 0);
  }
});

check('an RRD that does not exist is named, with the next step', { allowed: ['404'] }, async (page) => {
  const response = await visit(page, '/rrd/net/switch%20one/eth7');
  assert.equal(response.status(), 404);
  assert.ok((await page.locator('main').textContent()).includes('eth7'));
  await page.getByRole('link', { name: 'net/switch one/eth0' }).click();
  await page.waitForURL('**/rrd/net/switch%20one/eth0');
});

check('a graph is added to a view by its menu, and the wall goes from view to view', async (page) => {
  for (const view of ['first', 'second']) {
    await open(page, GRAPH);
    await page.locator('details.links summary').first().click();
    await page.locator('form.adding input[name=view]').first().fill(view);
    await page.locator('form.adding button').first().click();
    await page.waitForURL(`**/view/${view}`);
    await page.locator('figure.graph.drawn').first().waitFor();
  }
  await page.getByText('Change this view').click();
  const text = page.locator('textarea[name=file]');
  await text.fill(`title = "The second"\ntext = "What it is for."\n${await text.inputValue()}`);
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByRole('heading', { name: 'The second' }).waitFor();
  assert.ok(await page.locator('p.text').isVisible());

  await page.goto(new URL('/wall?view=first&view=second&seconds=2', page.url()).href);
  await page.getByRole('heading', { name: 'The second' }).waitFor();
  assert.equal(await page.locator('header.top').isVisible(), false);
  await page.getByRole('heading', { name: 'first' }).waitFor();
});
