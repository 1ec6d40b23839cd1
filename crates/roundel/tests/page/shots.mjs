// Pictures of every page, light and dark, wide and narrow, into ROUNDEL_PAGE_ARTEFACTS: for the README and for looking at.

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { area, browser, newPage, open } from './browser.mjs';
import { PAGES } from './places.mjs';

const target = process.env.ROUNDEL_PAGE_ARTEFACTS ?? '.';
const SIZES = { wide: { width: 1440, height: 900 }, narrow: { width: 390, height: 844 } };

mkdirSync(target, { recursive: true });
for (const [name, path] of Object.entries(PAGES)) {
  for (const [size, viewport] of Object.entries(SIZES)) {
    for (const colorScheme of /** @type {const} */ (['light', 'dark'])) {
      const { page, context } = await newPage({ viewport, colorScheme });
      await open(page, path);
      await page.waitForLoadState('networkidle');
      if (name === 'rrd' && size === 'wide') await page.mouse.move(...(await area(page)).at(0.7, 0.4));
      await page.waitForTimeout(200);
      await page.screenshot({ path: join(target, `${name}-${size}-${colorScheme}.png`) });
      await context.close();
    }
  }
}
await (await browser()).close();
