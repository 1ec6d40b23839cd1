// Every page: accessible, without script, on a phone and in the dark.

import assert from 'node:assert/strict';
import { check, open, until, violations, visit } from './browser.mjs';
import { CLUSTER, PAGES } from './places.mjs';

/** The rules of axe to whose answer colours and width matter; the others have been asked. */
const CHANGED = ['color-contrast', 'link-in-text-block', 'scrollable-region-focusable', 'target-size'];
const PHONE = { width: 360, height: 740 };

/** An open page is accessible: light and wide, then dark and on a phone. */
async function accessible(page) {
  assert.equal(await page.locator('h1').count(), 1);
  assert.deepEqual(await violations(page), []);
  await page.setViewportSize(PHONE);
  await page.emulateMedia({ colorScheme: 'dark' });
  // A chart is drawn again a moment after its place has become narrow.
  await until('the page is as narrow as the phone', async () => {
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    return wide <= PHONE.width;
  });
  assert.deepEqual(await violations(page, CHANGED), []);
}

for (const [name, path] of Object.entries(PAGES)) {
  check(`${name} is accessible: light and wide, dark and on a phone`, async (page) => {
    const response = await open(page, path);
    assert.equal(response.status(), 200);
    await accessible(page);
  });

  check(`${name} works without script`, { javaScriptEnabled: false }, async (page) => {
    const response = await visit(page, path);
    assert.equal(response.status(), 200);
    assert.ok(await page.locator('form[role=search] button').isVisible());
    for (const image of await page.locator('figure.graph img').all()) {
      await image.scrollIntoViewIfNeeded();
      assert.ok(await image.isVisible());
      assert.notEqual(await image.getAttribute('alt'), null);
    }
    await until('all pictures are there', async () => (await pictures(page)).every((width) => width > 0));
  });
}

check('the cluster is accessible: light and wide, dark and on a phone', { allowed: [CLUSTER] }, async (page) => {
  assert.equal((await page.goto(`${CLUSTER}/cluster`)).status(), 200);
  await accessible(page);
});

/** The widths of a page's pictures as decoded; evaluated by the test, not the page, whose script is off. */
function pictures(page) {
  return page.locator('figure.graph img').evaluateAll((images) => images.map((image) => image.naturalWidth));
}
