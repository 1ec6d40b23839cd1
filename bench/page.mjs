// The page in Debian's Chromium and the API that it asks, timed: `bench compare --only page` runs this against a daemon that has
// `day/RRD00` to `RRD99` (a day of rows of 10 s), `lines/` (30 RRDs of 1,500 rows), `big/` (a directory of many) and this host's RRDs.
//
//   node page.mjs RUNS
//
// Prints lines of a measurement's name and its value in seconds, bytes or the like, one a run. ROUNDEL_PAGE_URL and
// ROUNDEL_PAGE_MODULES as in the tests' browser.mjs.

import { Agent, get, request } from 'node:http';
import { browser, newPage, origin } from '../crates/roundel/tests/page/browser.mjs';

const runs = Number(process.argv[2] ?? 5);
/** Letters typed one after the other, as someone looks for an RRD whose name has these words. */
const TYPED = ['rrd000777', 'host 0042', 'big 99', 'n/'];
const CHARTS = 100;
/** Moves of the pointer, and over how many milliseconds. */
const MOVES = 600;
const MOVING = 10_000;

/** @param {string} name @param {number} value */
const tell = (name, value) => console.log(`${name} ${value}`);

/** One kept connection. */
const agent = new Agent({ keepAlive: true, maxSockets: 1 });

/** The time of a request until its last byte, and its bytes. @returns {Promise<{seconds: number, bytes: number}>} */
function timed(path, body = null) {
  return new Promise((resolve, reject) => {
    const start = performance.now();
    const options = { agent, method: body ? 'POST' : 'GET', headers: body ? { 'content-type': 'application/json' } : {} };
    const sent = request(origin + path, options, (answer) => {
      let bytes = 0;
      answer.on('data', (part) => { bytes += part.length; });
      answer.on('end', () => {
        const seconds = (performance.now() - start) / 1000;
        if (answer.statusCode === 200) resolve({ seconds, bytes });
        else reject(new Error(`${path}: ${answer.statusCode}`));
      });
    });
    sent.on('error', reject);
    sent.end(body ? JSON.stringify(body) : undefined);
  });
}

/** Rows for many graphs: in one request, and one by one. */
async function charts() {
  const arg = (number) => [`DEF:v=day/RRD${String(number).padStart(2, '0')}.rrd:v:AVERAGE`, 'LINE:v#2f7ed8:v'];
  const range = { start: 'end-1d', width: 400 };
  const all = Array.from({ length: CHARTS }, (_, number) => ({ arg: arg(number) }));
  for (let run = 0; run < runs; run++) {
    const together = await timed('/api/v1/charts', { ...range, charts: all });
    let single = 0;
    for (const chart of all) single += (await timed('/api/v1/charts', { ...range, charts: [chart] })).seconds;
    tell('charts-single', single);
    tell('charts-together', together.seconds);
  }
}

/** The answer to each key. */
async function search() {
  for (let run = 0; run < runs; run++) {
    for (const text of TYPED) {
      for (let length = 1; length <= text.length; length++) {
        tell('search-key', (await timed(`/api/v1/search?q=${encodeURIComponent(text.slice(0, length))}&limit=20`)).seconds);
      }
    }
  }
}

/** Opens a path in a browser without a cache; bytes are those over the wire. */
async function cold(path, work) {
  const { page, complaints, context } = await newPage();
  const session = await context.newCDPSession(page);
  await session.send('Network.enable');
  let bytes = 0;
  session.on('Network.loadingFinished', (event) => { bytes += event.encodedDataLength; });
  await page.goto(origin + path, { waitUntil: 'load' });
  await work(page, () => bytes, session);
  if (complaints.length) throw new Error(complaints.join('\n'));
  await context.close();
}

/** Milliseconds from the start of the navigation to its load event, with all pictures, and to its first paint. */
const loading = (page) => page.evaluate(() => new Promise((resolve) => {
  const look = () => {
    const [navigation] = /** @type {PerformanceNavigationTiming[]} */ (performance.getEntriesByType('navigation'));
    const paint = performance.getEntriesByName('first-contentful-paint')[0];
    if (navigation.loadEventEnd > 0 && paint) resolve({ load: navigation.loadEventEnd, paint: paint.startTime });
    else setTimeout(look, 10);
  };
  look();
}));

async function firstPage() {
  await cold('/', async (page, bytes) => {
    const { load } = await loading(page);
    await page.waitForLoadState('networkidle');
    tell('first-page', load / 1000);
    tell('first-page-bytes', bytes());
  });
}

async function bigDirectory() {
  await cold('/tree/big/', async (page) => tell('big-directory', (await loading(page)).paint / 1000));
}

/** From a click in the tree to eight live charts. */
async function click() {
  // So high that all eight are in sight.
  const { page, context } = await newPage({ viewport: { width: 1280, height: 3000 } });
  await page.goto(`${origin}/tree/`, { waitUntil: 'networkidle' });
  const link = page.locator('a[href="/tree/eight/"]').first();
  const start = performance.now();
  await link.click();
  await page.waitForFunction(() => document.querySelectorAll('figure.graph.drawn').length >= 8, null, { polling: 'raf' });
  tell('click-to-live', (performance.now() - start) / 1000);
  await context.close();
}

/** Ten seconds of moving over a chart of 30 lines. */
async function pointer() {
  const { page, context } = await newPage();
  await page.goto(`${origin}/compare?glob=lines%2F*&mode=overlay&start=end-1500min`, { waitUntil: 'networkidle' });
  await page.locator('figure.graph.drawn').first().waitFor();
  const box = await page.locator('figure.graph.drawn .u-over').first().boundingBox();
  const session = await context.newCDPSession(page);
  await session.send('Performance.enable');
  const script = async () => (await session.send('Performance.getMetrics')).metrics.find((one) => one.name === 'ScriptDuration').value;
  await page.evaluate(() => {
    const frames = [];
    let before = performance.now();
    const frame = (now) => {
      frames.push(now - before);
      before = now;
      if (!window.moved) requestAnimationFrame(frame);
    };
    Object.assign(window, { frames, moved: false });
    requestAnimationFrame(frame);
  });
  const before = await script();
  const begin = performance.now();
  for (let move = 0; move < MOVES; move++) {
    await page.mouse.move(box.x + box.width * ((move * 7) % MOVES) / MOVES, box.y + box.height * 0.5);
    const wait = begin + (move + 1) * MOVING / MOVES - performance.now();
    if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
  }
  tell('pointer-script', await script() - before);
  const frames = (await page.evaluate(() => { window.moved = true; return window.frames; })).sort((a, b) => a - b);
  tell('pointer-frame', frames[Math.floor(frames.length * 0.95)] / 1000);
  tell('pointer-lines', await page.locator('figure.graph.drawn .u-series').count() - 1);
  await context.close();
}

await new Promise((resolve, reject) => get(`${origin}/api/v1/status`, (answer) => { answer.resume(); answer.on('end', resolve); }).on('error', reject));
await charts();
await search();
// The browser's own start is not the page's.
await cold('/status', async () => undefined);
for (let run = 0; run < runs; run++) {
  await firstPage();
  await bigDirectory();
  await click();
}
if (process.env.ROUNDEL_PAGE_POINTER) await pointer();
await (await browser()).close();
agent.destroy();
