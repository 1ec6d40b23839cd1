// Chromium for the tests. `check` gives each test a page of its own; it fails on anything that the browser complains about, and leaves
// a screenshot of what failed.
//
// ROUNDEL_PAGE_URL: the daemon. ROUNDEL_PAGE_MODULES: a directory with node_modules. ROUNDEL_PAGE_ARTEFACTS: where screenshots go.

import { mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';

const require = createRequire(join(process.env.ROUNDEL_PAGE_MODULES ?? '.', 'package.json'));
const { chromium } = require('playwright-core');
const AxeBuilder = require('@axe-core/playwright').default;

export const origin = process.env.ROUNDEL_PAGE_URL;
const artefacts = process.env.ROUNDEL_PAGE_ARTEFACTS ?? '.';
/** Milliseconds until something is not going to happen any more: the machine may be busy. */
export const DEADLINE = 60_000;

/** @type {Promise<import('playwright-core').Browser> | null} */
let launched = null;

export function browser() {
  // Without its sandbox, and without /dev/shm: tests run as root in containers, where that may be small.
  launched ??= chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'] });
  return launched;
}

/** A page that remembers every complaint. `allowed` are parts of complaints that the test expects. */
export async function newPage(options = {}) {
  const { allowed = [], ...context } = options;
  const made = await (await browser()).newContext({ viewport: { width: 1280, height: 900 }, locale: 'en-GB', timezoneId: 'Europe/Zurich', ...context });
  const page = await made.newPage();
  page.setDefaultTimeout(DEADLINE);
  const complaints = [];
  const complain = (text) => allowed.some((part) => text.includes(part)) || complaints.push(text);
  page.on('console', (message) => ['error', 'warning'].includes(message.type()) && complain(`${message.text()} (${message.location().url})`));
  page.on('pageerror', (error) => complain(error.stack ?? error.message));
  page.on('dialog', (dialog) => {
    complain(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  page.on('request', (request) => {
    if (!request.url().startsWith(origin) && !request.url().startsWith('data:')) complain(`asks for ${request.url()}`);
  });
  return { page, complaints, context: made };
}

/** Tests at a time: the daemon, Chromium and the tests wait for each other. Another suite may run beside this one. */
const AT_ONCE = 2;
/** @type {{name: string, options: object, work: (page: import('playwright-core').Page) => Promise<void>}[]} */
const checks = [];

/** A test with a page. @param {string} name @param {any} options of the browser's context, and `allowed` complaints */
export function check(name, options, work = options) {
  checks.push({ name, options: typeof options === 'function' ? {} : options, work });
}

/** Runs all tests, and then ends Chromium. */
export function runChecks() {
  const done = checks.map(({ name, options, work }) => ({ name, run: () => inPage(name, options, work) }));
  describe('the page', { concurrency: AT_ONCE }, () => {
    after(async () => (await launched)?.close());
    for (const { name, run } of done) test(name, { timeout: 4 * DEADLINE }, run);
  });
}

/** @param {string} name @param {object} options @param {(page: import('playwright-core').Page) => Promise<void>} work */
async function inPage(name, options, work) {
  const { page, complaints, context } = await newPage(options);
  try {
    await work(page);
    if (complaints.length > 0) throw new Error(`the browser complains:\n${complaints.join('\n')}`);
  } catch (error) {
    mkdirSync(artefacts, { recursive: true });
    const file = join(artefacts, `${name.replace(/\W+/g, '-')}.png`);
    await page.screenshot({ path: file, fullPage: true }).catch(() => undefined);
    error.message += `\nscreenshot: ${file}; at ${page.url()}; complaints: ${complaints.join('; ') || 'none'}`;
    throw error;
  } finally {
    await context.close();
  }
}

/** Opens a path and waits until its first graph is live, if it has one. */
export async function open(page, path) {
  const response = await page.goto(origin + path);
  // The server's pictures, not what the script has made of them.
  if (await page.locator('figure.graph[data-graph]:has(img)').count()) await page.locator('figure.graph.drawn').first().waitFor();
  return response;
}

/** Opens a path whose page has no script to wait for. */
export function visit(page, path) {
  return page.goto(new URL(path, origin).href);
}

/** Waits until a function of the test gives true. */
export async function until(what, condition, deadline = DEADLINE) {
  const end = Date.now() + deadline;
  for (;;) {
    if (await condition()) return;
    if (Date.now() > end) throw new Error(`waited in vain until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** What axe finds, by all its rules or by some, one line a place. */
export async function violations(page, rules = null) {
  const axe = new AxeBuilder({ page });
  const found = await (rules ? axe.withRules(rules) : axe).analyze();
  return found.violations.flatMap((one) => one.nodes.map((node) => `${one.id}: ${node.target.join(' ')}: ${node.failureSummary}`));
}

/** The place of a chart's plotting area; a chart that is being built again has none for a moment. */
export async function area(page, index = 0) {
  let box = null;
  await until('the chart has a place', async () => {
    box = await page.locator('figure.graph.drawn .u-over').nth(index).boundingBox();
    return box !== null;
  });
  return { ...box, at: (x, y = 0.5) => [box.x + box.width * x, box.y + box.height * y] };
}

/** The range in the URL. */
export function range(page) {
  const query = new URL(page.url()).searchParams;
  return { start: query.get('start'), end: query.get('end') };
}
