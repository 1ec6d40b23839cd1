// Finding RRDs: search, tree, ticks; and saying what to draw: the expression box.

import assert from 'node:assert/strict';
import { check, open, origin, until } from './browser.mjs';
import { HOSTILE } from './places.mjs';

check('search suggests as one types, and arrows and Enter open', async (page) => {
  await open(page, '/status');
  await page.keyboard.press('/');
  await page.keyboard.type('switch eth0');
  const options = page.locator('form[role=search] [role=option]');
  await until('the answer to all words is there', async () => {
    const names = await options.allTextContents();
    return names.length === 2 && names.every((name) => name.includes('eth0'));
  });
  const input = page.getByRole('combobox', { name: 'Search' });
  assert.equal(await input.getAttribute('aria-expanded'), 'true');
  await page.keyboard.press('ArrowDown');
  assert.equal(await input.getAttribute('aria-activedescendant'), 'suggestion-0');
  await page.keyboard.press('Enter');
  await page.waitForURL('**/rrd/net/switch%20one/eth0');
});

check('search says when nothing is found, and Escape closes', async (page) => {
  await open(page, '/status');
  const input = page.getByRole('combobox', { name: 'Search' });
  await input.fill('no such thing at all');
  await until('it says so', async () => (await page.locator('form[role=search] [role=status]').textContent()) === 'Nothing found');
  await input.fill('eth');
  await page.locator('form[role=search] [role=option]').first().waitFor();
  await input.press('Escape');
  assert.equal(await page.locator('form[role=search] [role=listbox]').isVisible(), false);
});

check('suggestions show hostile names as text', async (page) => {
  await open(page, '/status');
  await page.getByRole('combobox', { name: 'Search' }).fill('onerror');
  const option = page.locator('form[role=search] [role=option]').filter({ hasText: '<img src=x' });
  await option.first().waitFor();
  assert.equal(await page.locator('img[src=x]').count(), 0);
});

check('Enter in the search box leads to a page of results', async (page) => {
  await open(page, '/status');
  await page.getByRole('combobox', { name: 'Search' }).fill('eth');
  await page.keyboard.press('Enter');
  await page.waitForURL('**/search?q=eth');
  const names = await page.locator('.list .name').allTextContents();
  assert.ok(names.some((name) => name.includes('net/switch two/eth0')), names.join('\n'));
});

check('ticks are kept from page to page, and compared', async (page) => {
  await open(page, '/tree/net/switch%20one/');
  await page.locator('input[name=name]').first().check();
  await open(page, HOSTILE);
  await page.locator('input[name=name]').first().check();
  const bar = page.locator('.picked');
  assert.equal(await bar.locator('[role=status]').textContent(), '2 RRDs ticked');
  await bar.getByRole('link', { name: 'Compare' }).click();
  await page.waitForURL('**/compare?name=*');
  await page.locator('figure.graph.drawn').first().waitFor();
  await page.getByLabel('stack', { exact: false }).first().check();
  await page.waitForURL('**mode=stack**');
  await page.locator('figure.graph.drawn').first().waitFor();
});

check('the largest are listed and drawn, and the list follows the range', async (page) => {
  await open(page, '/top?glob=net%2F*%2F*&by=max');
  const first = page.locator('.list tbody tr').first();
  assert.match(await first.textContent(), /switch (one|two)\/eth0/);
  await page.locator('a.preset', { hasText: '6 h' }).click();
  await page.waitForURL('**start=end-6h**');
  assert.ok(page.url().includes('by=max'));
  await first.waitFor();
});

check('a long directory grows by its link', async (page) => {
  await open(page, '/tree/many/');
  const rows = page.locator('.list tbody tr');
  const first = await rows.count();
  await page.locator('a[rel=next]').click();
  await until('more rows are there', async () => (await rows.count()) > first);
  assert.ok(page.url().endsWith('/tree/many/'));
});

check('the expression box draws, marks the wrong line, and completes names', async (page) => {
  const arg = ['DEF:a=net/switch one/eth0.rrd:in:AVERAGE', 'LINE1:a#336699:in'];
  await page.goto(`${origin}/expression?${new URLSearchParams(arg.map((word) => ['arg', word]))}`);
  await page.locator('figure.graph.drawn').waitFor();
  const area = page.getByRole('textbox', { name: /argument/i });
  assert.equal((await area.inputValue()).trim(), arg.join('\n'));

  await area.fill(`${arg[0]}\nLINE1:b#336699:in`);
  const error = page.locator('form.expression button.error');
  await error.waitFor();
  assert.match(await error.textContent(), /^Line 2: /);
  assert.equal(await page.locator('.lines .wrong').count(), 1);
  await error.click();
  assert.equal(await area.evaluate((box) => box.value.slice(box.selectionStart, box.selectionEnd)), 'LINE1:b#336699:in');

  await area.fill('DEF:a=switch');
  const option = (text) => page.locator('.completions [role=option]').filter({ hasText: text }).first();
  await option('net/switch one/').waitFor();
  await page.keyboard.press('Tab');
  await option('eth0.rrd:').waitFor();
  await page.keyboard.press('Tab');
  assert.match(await area.inputValue(), /^DEF:a=net\/switch one\/.*\.rrd:$/);
  await option(/^in:$/).waitFor();
  await page.keyboard.press('Tab');
  await option('AVERAGE').waitFor();
  await page.keyboard.press('Tab');
  await page.keyboard.type('\nAREA:a#00aa00');
  await until('the URL holds it', () => new URL(page.url()).searchParams.getAll('arg')[1] === 'AREA:a#00aa00');
  await until('nothing is wrong', async () => !(await error.isVisible()));
});
