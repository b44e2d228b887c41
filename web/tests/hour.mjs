// Measures the page with the latencies of an hour: script per frame, and the time until the list can be used.
//
//   node hour.mjs FOLDER PROGRAM WRITES
//
// FOLDER contains node_modules with playwright-core. Prints one line of JSON.

import { createRequire } from 'node:module';
import { Server } from './server.mjs';

const [folder, program, writes] = process.argv.slice(2);
const { chromium } = createRequire(`${folder}/`)('playwright-core');
const HOUR_MS = 3_600_000;
/** Rate of a board's network, in bytes/s. */
const BOARD_BYTES_PER_S = 1e6;
/** Latencies in an event. */
const BATCH = 64;
const LOADS = 7;

/** Events with the latencies of an hour; one in 1000 is a stall. */
function hour(count) {
  const events = ['retry: 1000\n\n'];
  for (let at = 0; at < count; at += BATCH) {
    let event = 'event: writes\n';
    for (let number = at; number < Math.min(at + BATCH, count); number += 1) {
      const us = number % 1000 === 999 ? 40_000 + number % 7919 : 100 + number % 1013;
      event += `data: ${number},${Math.floor(number * HOUR_MS / count)},${us}\n`;
    }
    events.push(`${event}\n`);
  }
  return events.join('');
}

/** Frames of a page: script time of each, as wall time and as processor time, in ms. The latter leaves out other programs. */
class Frames {
  static async begin(browser) {
    const frames = new Frames();
    frames.session = await browser.newBrowserCDPSession();
    frames.session.on('Tracing.dataCollected', ({ value }) => frames.events.push(...value
      .filter(({ name, dur }) => name === 'FireAnimationFrame' && dur !== undefined)));
    await frames.session.send('Tracing.start', { transferMode: 'ReportEvents',
      traceConfig: { includedCategories: ['devtools.timeline'] } });
    return frames;
  }

  constructor() {
    this.events = [];
  }

  async end() {
    const ended = new Promise((resume) => this.session.once('Tracing.tracingComplete', resume));
    await this.session.send('Tracing.end');
    await ended;
    await this.session.detach();
    const times = (key) => figures(this.events.map((event) => event[key] / 1000).sort((a, b) => a - b));
    return { wall: times('dur'), processor: times('tdur') };
  }
}

const part = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
const figures = (sorted) => ({ frames: sorted.length, median_ms: part(sorted, 0.5), p99_ms: part(sorted, 0.99),
  worst_ms: sorted.at(-1) });

const server = await Server.start(program, ['serve', 'sim:class10-16g@esp32-26m', '--listen', '127.0.0.1:0']);
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] });
const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
let isSent = false;
await page.route('**/live?writes=1', (route) => {
  // Only once: the page connects again when the events end.
  if (isSent) return route.abort();
  isSent = true;
  return route.fulfill({ contentType: 'text/event-stream', body: hour(Number(writes)) });
});
const arriving = await Frames.begin(browser);
await page.goto(server.url);
await page.click('text="1 h"');
await page.waitForFunction((count) => Number(document.querySelector('canvas')?.dataset.rows) === count, Number(writes),
  { timeout: 120_000 });
const whileArriving = await arriving.end();
const steady = await Frames.begin(browser);
await page.waitForTimeout(5000);
const afterwards = await steady.end();

const loads = [];
for (let load = 0; load < LOADS; load += 1) {
  const context = await browser.newContext();
  const fresh = await context.newPage();
  const network = await context.newCDPSession(fresh);
  await network.send('Network.emulateNetworkConditions',
    { offline: false, latency: 0, downloadThroughput: BOARD_BYTES_PER_S, uploadThroughput: BOARD_BYTES_PER_S });
  const begunMs = performance.now();
  await fresh.goto(server.url);
  await fresh.waitForSelector('#files a.name');
  loads.push(performance.now() - begunMs);
  await context.close();
}
loads.sort((a, b) => a - b);
console.log(JSON.stringify({ arriving: whileArriving, steady: afterwards, usable_ms: { median: part(loads, 0.5), worst: loads.at(-1) } }));
await browser.close();
await server.stop();
