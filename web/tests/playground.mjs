// Uses the playground in headless Chromium, as people do.
//
//   node playground.mjs FOLDER PLAYGROUND PROGRAM
//
// FOLDER contains node_modules with playwright-core and axe-core; the pictures are saved there.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { serveFolder } from './folder.mjs';

const [folder, playground] = process.argv.slice(2);
const { chromium } = createRequire(`${folder}/`)('playwright-core');
const axe = readFileSync(`${folder}/node_modules/axe-core/axe.min.js`, 'utf8');
const WIDE = { width: 1100, height: 900 };
const NARROW = { width: 360, height: 720 };

const served = await serveFolder(playground);
/** Another server, which must never be asked. */
const other = createServer((request, response) => {
  other.asked = request.url;
  response.setHeader('Access-Control-Allow-Origin', '*');
  response.end();
});
await new Promise((resolve) => other.listen(0, '127.0.0.1', resolve));
const elsewhere = `http://127.0.0.1:${other.address().port}/`;
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-sync'] });

/** Opens the playground; the test fails if a script fails, or if the policy has to block something. */
async function open(hash = '', options = {}) {
  const context = await browser.newContext({ viewport: WIDE, ...options });
  context.setDefaultTimeout(90_000);
  const page = await context.newPage();
  page.problems = [];
  page.on('pageerror', (error) => page.problems.push(String(error)));
  page.on('console', (message) => message.type() === 'error' && page.problems.push(message.text()));
  await page.goto(served.url + hash);
  await page.waitForFunction(() => document.querySelector('[name=card]').options.length > 5);
  return page;
}

async function close(page) {
  assert.deepEqual(page.problems, []);
  await page.context().close();
}

/** Runs axe, looks for horizontal scrolling, and saves a picture. */
async function checkAccess(page, name) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run());
  const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
  assert.deepEqual(serious.map(({ id, nodes }) => [id, nodes[0].html]), []);
  const [width, room] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(width <= room, `${name}: ${width} px wide`);
  await page.screenshot({ path: `${folder}/${name}.png`, fullPage: true });
}

const shown = (tool) => `#${tool} .result:not([hidden])`;
const said = async (page, tool) => (await page.waitForSelector(`#${tool} .failure`)).textContent();
const trace = (name, text) => ({ name, mimeType: 'text/plain', buffer: Buffer.from(text) });
const headline = (page) => page.frameLocator('iframe').locator('.headline').first().textContent();

/** Presses Tab until an element that fits has the focus. */
async function tabTo(page, selector) {
  for (let presses = 0; presses < 60; presses += 1) {
    if (await page.evaluate((wanted) => document.activeElement.matches(wanted), selector)) return;
    await page.keyboard.press('Tab');
  }
  assert.fail(`Tab does not lead to ${selector}`);
}

const tests = {
  async 'a trace that is dropped gets its report'() {
    const page = await open();
    const data = await page.evaluateHandle(() => {
      const transfer = new DataTransfer();
      const latencies = Array.from({ length: 5000 }, (_, at) => (at % 500 === 499 ? 60_000 : 900 + (at % 7)));
      transfer.items.add(new File([`latency_us\n${latencies.join('\n')}\n`], 'card.csv'));
      return transfer;
    });
    await page.dispatchEvent('body', 'drop', { dataTransfer: data });
    await page.waitForSelector(shown('analyze'));
    assert.match(await headline(page), /60/);
    assert.equal(await page.textContent('#analyze .shell'), 'cardiograph analyze card.csv');
    const [download] = await Promise.all([page.waitForEvent('download'), page.click('#analyze >> text=Save report')]);
    assert.match(readFileSync(await download.path(), 'utf8'), /^<!doctype html>/);
    await close(page);
  },

  async 'the example, options, and a refusal that names the option'() {
    const page = await open('#analyze');
    await page.click('text=Use an example');
    await page.waitForSelector(shown('analyze'));
    await headline(page);
    await checkAccess(page, 'playground-analyze');
    await page.setInputFiles('#analyze-file', trace('list.csv', 'latency\n20\n30\n25\n'));
    assert.match(await said(page, 'analyze'), /^list\.csv.*--time-unit/);
    await page.selectOption('[name=time_unit]', 'ms');
    await page.click('text=Analyze again');
    await page.waitForSelector(shown('analyze'));
    assert.match(await page.textContent('#analyze .shell'), /--time-unit ms$/);
    await page.setInputFiles('#analyze-file', trace('empty.csv', ''));
    assert.match(await said(page, 'analyze'), /^empty\.csv: /);
    await page.setInputFiles('#analyze-file', trace('<img src=x onerror=alert(1)>.csv', 'latency_us\n1000\n1200\n'));
    await page.waitForSelector(shown('analyze'));
    await headline(page);
    await close(page);
  },

  async 'a file that cannot be read any more, and a directory'() {
    const page = await open();
    const name = `${folder}/changes.csv`;
    writeFileSync(name, 'latency_us\n1000\n1200\n');
    await page.setInputFiles('#analyze-file', name);
    await page.waitForSelector(shown('analyze'));
    await headline(page);
    writeFileSync(name, 'latency_us\n1000\n1200\n1300\n');
    await page.click('summary >> text=Options');
    await page.click('text=Analyze again');
    assert.match(await said(page, 'analyze'), /^changes\.csv: read error .*choose it again$/);
    const data = await page.evaluateHandle(() => {
      // A script cannot create a directory to drop.
      DataTransferItem.prototype.webkitGetAsEntry = () => ({ isDirectory: true });
      const transfer = new DataTransfer();
      transfer.items.add(new File(['x'], 'card'));
      return transfer;
    });
    await page.dispatchEvent('body', 'drop', { dataTransfer: data });
    await page.waitForSelector('text="card: is a directory; name the files in it"');
    await close(page);
  },

  async 'a recording with losses, and one without'() {
    const page = await open('#record');
    await page.click('button.main >> text=Record');
    await page.waitForSelector(shown('record'));
    assert.equal(await page.textContent('#record dd.lost'), '0');
    await page.waitForTimeout(2800);
    await checkAccess(page, 'playground-record');
    await page.fill('#record [name=buffer]', '1KiB');
    await page.click('button.main >> text=Record');
    await page.waitForSelector('#record dd.lost.bad');
    assert.ok(await page.locator('#record .gaps li').count() > 0);
    await page.waitForTimeout(2800);
    await checkAccess(page, 'playground-lost');
    await page.fill('#record [name=buffer]', '64K');
    await page.click('button.main >> text=Record');
    assert.match(await said(page, 'record'), /64kB or 64KiB/);
    await close(page);
  },

  async 'a long recording can be stopped while the page stays usable'() {
    const page = await open('#record');
    await page.fill('#record [name=for]', '3h');
    await page.click('button.main >> text=Record');
    await page.waitForFunction(() => document.querySelector('progress')?.value > 0);
    await page.click('nav >> text=Plan');
    await page.waitForSelector('#plan:not([hidden])');
    await page.click('nav >> text=Record');
    await page.click('text=Stop');
    assert.equal(await said(page, 'record'), 'Stopped.');
    await close(page);
  },

  async 'a plan for a simulated card and for a trace'() {
    const page = await open('#plan');
    await page.click('button.main >> text=Plan');
    await page.waitForSelector(shown('plan'));
    assert.match(await page.textContent('#plan pre'), /KiB/);
    await checkAccess(page, 'playground-plan');
    await page.setInputFiles('#plan-file', trace('few.csv', 'latency_us\n1000\n1200\n'));
    await page.waitForFunction(() => document.querySelector('#plan .failure, #plan .result:not([hidden])'));
    await page.click('text=Use the simulated card');
    await page.waitForSelector(shown('plan'));
    await close(page);
  },

  async '360 px wide, in the dark'() {
    const page = await open('#record', { viewport: NARROW, colorScheme: 'dark' });
    await page.click('button.main >> text=Record');
    await page.waitForSelector(shown('record'));
    await page.waitForTimeout(2800);
    await checkAccess(page, 'playground-narrow-record');
    await page.click('nav >> text=Plan');
    await page.click('button.main >> text=Plan');
    await page.waitForSelector(shown('plan'));
    await checkAccess(page, 'playground-narrow-plan');
    await page.click('nav >> text=Analyze');
    await page.click('text=Use an example');
    await page.waitForSelector(shown('analyze'));
    await headline(page);
    await checkAccess(page, 'playground-narrow-analyze');
    await close(page);
  },

  async 'the keyboard alone'() {
    const page = await open('');
    await tabTo(page, 'nav a[href="#record"]');
    await page.keyboard.press('Enter');
    await tabTo(page, '#record [name=for]');
    await page.keyboard.press('ControlOrMeta+A');
    await page.keyboard.type('5s');
    await page.keyboard.press('Enter');
    await page.waitForSelector(shown('record'));
    await tabTo(page, '#record [data-play]');
    await page.keyboard.press('Enter');
    await close(page);
  },

  async 'nothing leaves the computer'() {
    const page = await open('#record');
    const asked = [];
    page.on('request', (request) => asked.push(request.url()));
    const isBlocked = (to) => fetch(to).then(() => false, () => true);
    assert.ok(await page.evaluate(isBlocked, elsewhere));
    page.problems.length = 0;
    // The worker has the page's policy as well.
    await page.fill('#record [name=for]', '3h');
    const [worker] = await Promise.all([page.waitForEvent('worker'), page.click('button.main >> text=Record')]);
    const answer = await page.evaluate(async (to) => {
      const code = 'onmessage = ({ data }) => fetch(data).then(() => postMessage("sent"), () => postMessage("blocked"))';
      const probe = new Worker(URL.createObjectURL(new Blob([code])));
      probe.postMessage(to);
      return new Promise((resolve) => { probe.onmessage = ({ data }) => resolve(data); });
    }, elsewhere);
    assert.equal(answer, 'blocked');
    assert.match(worker.url(), /^blob:/);
    await page.click('text=Stop');
    page.problems.length = 0;
    await page.click('nav >> text=Analyze');
    await page.click('text=Use an example');
    await page.waitForSelector(shown('analyze'));
    await headline(page);
    const fromReport = page.frames()[1];
    assert.ok(await fromReport.evaluate(isBlocked, elsewhere));
    assert.equal(other.asked, undefined);
    const foreign = asked.filter((url) => !url.startsWith(served.url) && !url.startsWith('blob:') && !url.startsWith('data:')
      && url !== elsewhere && url !== 'about:srcdoc');
    assert.deepEqual(foreign, []);
    await page.context().close();
  },

  async 'a folder without the module is reported'() {
    const broken = await serveFolder(playground, (name) => name !== '/cardiograph.wasm');
    const page = await browser.newPage();
    await page.goto(broken.url);
    assert.match(await said(page, 'analyze'), /cardiograph\.wasm: 404/);
    broken.stop();
  },
};

try {
  for (const [name, test] of Object.entries(tests)) {
    await test();
    console.log(`ok: ${name}`);
  }
} finally {
  await browser.close();
  served.stop();
  other.close();
}
