// Uses the page in headless Chromium, as people do.
//
//   node page.mjs FOLDER PROGRAM
//
// FOLDER contains node_modules with playwright-core and axe-core; the pictures are saved there. PROGRAM is cardiograph.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import net from 'node:net';
import { Proxy, Server } from './server.mjs';

const [folder, program] = process.argv.slice(2);
const { chromium } = createRequire(`${folder}/`)('playwright-core');
const axe = readFileSync(`${folder}/node_modules/axe-core/axe.min.js`, 'utf8');
const LOGGER = 'sim:class10-16g@esp32-26m';
const WIDE = { width: 1000, height: 800 };
const NARROW = { width: 360, height: 720 };

const server = await Server.start(program, ['serve', LOGGER, '--write', '--listen', '127.0.0.1:0']);
const proxy = await Proxy.start(server.port);
const demo = await Server.start(program, ['demo', '--listen', '127.0.0.1:0']);
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-sync'] });

/** Opens a page that fails the test if a script fails, or if it asks another server. */
async function open(path = '/', options = {}, base = proxy.url) {
  const context = await browser.newContext({ viewport: WIDE, ...options });
  context.setDefaultTimeout(60_000);
  const page = await context.newPage();
  page.on('pageerror', (error) => { throw error; });
  page.on('request', (request) => assert.ok(request.url().startsWith(base), request.url()));
  await page.goto(base + path);
  return page;
}

const names = (page) => page.$$eval('a.name', (links) => links.map((link) => link.textContent));
const focused = (page) => page.evaluate(() => document.activeElement.textContent);
const note = (page) => page.textContent('#note');
const rows = (page) => page.$eval('canvas', (canvas) => Number(canvas.dataset.rows));

/** Waits until the list has a name, or no longer has it. */
async function lists(page, name, has = true) {
  await page.waitForFunction(([name, has]) => has
    === [...document.querySelectorAll('a.name')].some((link) => link.textContent === name), [name, has]);
}

/** Presses a key until an element with this text has the focus. */
async function pressTo(page, key, wanted) {
  for (let presses = 0; await focused(page) !== wanted; presses += 1) {
    assert.ok(presses < 50, `${key} does not lead to ${wanted}`);
    await page.keyboard.press(key);
  }
}

/** Runs axe, looks for horizontal scrolling, and saves a picture. */
async function checkAccess(page, name) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => window.axe.run());
  const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
  assert.deepEqual(serious.map(({ id, nodes }) => [id, nodes[0].html]), []);
  const [width, room] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(width <= room, `${width} px wide`);
  await page.waitForTimeout(500);
  await page.screenshot({ path: `${folder}/${name}.png` });
}

const text = (name, contents) => ({ name, mimeType: 'text/plain', buffer: Buffer.from(contents) });
const fetched = async (path) => (await fetch(server.url + path)).text();

const tests = {
  async 'files are uploaded, and uploaded again only after a question'() {
    const page = await open();
    await page.waitForSelector('#files');
    await page.setInputFiles('#picker', [text('a.txt', 'hello'), text('b.bin', 'x'.repeat(100_000))]);
    await lists(page, 'b.bin');
    assert.equal(await fetched('/a.txt'), 'hello');
    assert.equal((await fetched('/b.bin')).length, 100_000);
    await page.setInputFiles('#picker', [text('a.txt', 'again')]);
    await page.click('dialog >> text=Cancel');
    assert.equal(await fetched('/a.txt'), 'hello');
    await page.setInputFiles('#picker', [text('a.txt', 'again')]);
    await page.click('dialog >> text="Replace"');
    await page.waitForFunction(() => document.querySelector('#note')?.textContent === 'Uploaded a.txt.');
    assert.equal(await fetched('/a.txt'), 'again');
  },

  async 'times are local, with their zone'() {
    const list = await (await fetch(`${server.url}/list?dir=/`)).json();
    const { time } = list.find((entry) => entry.name === 'a.txt');
    for (const timezoneId of ['UTC', 'Asia/Kolkata', 'America/St_Johns']) {
      const page = await open('/', { timezoneId });
      await lists(page, 'a.txt');
      const shown = await page.textContent('tr:has(a.name:text-is("a.txt")) td:nth-child(3)');
      const format = (locale, options) => new Intl.DateTimeFormat(locale, { timeZone: timezoneId, ...options });
      const local = format('sv-SE', { dateStyle: 'short', timeStyle: 'short' }).format(time * 1000);
      const parts = format('en', { timeZoneName: 'longOffset' }).formatToParts(time * 1000);
      const zone = parts.find((part) => part.type === 'timeZoneName').value.slice(3) || '+00:00';
      assert.equal(shown, `${local} ${zone}`);
      await page.context().close();
    }
  },

  async 'columns sort in both directions, with folders in front'() {
    const page = await open();
    await lists(page, 'a.txt');
    const files = async () => (await names(page)).filter((name) => !name.endsWith('/'));
    assert.deepEqual(await files(), ['a.txt', 'b.bin']);
    await page.click('text=Size');
    assert.deepEqual(await files(), ['a.txt', 'b.bin']);
    await page.click('text=Size');
    assert.deepEqual(await files(), ['b.bin', 'a.txt']);
    assert.equal(await page.getAttribute('th:nth-child(2)', 'aria-sort'), 'descending');
    assert.match((await names(page))[0], /\/$/);
  },

  async 'the keyboard alone creates, renames, opens, leaves and deletes'() {
    const page = await open();
    await lists(page, 'a.txt');
    await pressTo(page, 'Tab', 'New folder');
    await page.keyboard.press('Enter');
    await page.keyboard.type('Mühle <b>1&2');
    await page.keyboard.press('Enter');
    await page.waitForFunction(() => document.querySelector('#note')?.textContent !== '');
    // FAT has no "<"; the server says so.
    assert.match(await note(page), /</);
    await page.keyboard.press('ArrowDown');
    await pressTo(page, 'Shift+Tab', 'New folder');
    await page.keyboard.press('Enter');
    await page.keyboard.type("Mühle 1&2 #+'");
    await page.keyboard.press('Enter');
    await lists(page, "Mühle 1&2 #+'/");
    assert.equal(await focused(page), "Mühle 1&2 #+'/");
    await page.keyboard.press('Enter');
    await page.waitForSelector('text=This folder is empty.');
    await page.keyboard.press('Backspace');
    await lists(page, 'a.txt');
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('End');
    await pressTo(page, 'ArrowUp', 'a.txt');
    await page.keyboard.press('F2');
    await page.keyboard.type('c');
    await page.keyboard.press('Enter');
    await lists(page, 'c.txt');
    assert.equal(await focused(page), 'c.txt');
    assert.equal(await fetched('/c.txt'), 'again');
    await page.keyboard.press('Delete');
    await page.keyboard.press('Escape');
    assert.ok((await names(page)).includes('c.txt'));
    await page.keyboard.press('Delete');
    await page.waitForSelector('dialog');
    await page.keyboard.press('Enter');
    await lists(page, 'c.txt', false);
    assert.equal((await fetch(`${server.url}/c.txt`)).status, 404);
  },

  async 'a rename replaces a file after a question only, and a folder never'() {
    const put = (path, body) => fetch(server.url + path, { method: 'PUT', body });
    await fetch(`${server.url}/kept`, { method: 'MKCOL' });
    for (const [path, body] of [['/kept/inner.txt', 'inner'], ['/one.txt', 'one'], ['/two.txt', 'two']]) await put(path, body);
    const page = await open();
    await lists(page, 'one.txt');
    const renameTo = async (to, from = 'one.txt') => {
      await page.click(`button[aria-label="rename ${from}"]`);
      await page.fill('dialog input', to);
      await page.click('dialog >> text="Rename"');
    };
    await renameTo('kept');
    await page.waitForFunction(() => /exists already/.test(document.querySelector('#note').textContent));
    assert.equal(await fetched('/kept/inner.txt'), 'inner');
    // FAT ignores the case of names, and a rename may change it.
    await renameTo('ONE.TXT');
    await lists(page, 'ONE.TXT');
    await renameTo('one.txt', 'ONE.TXT');
    await lists(page, 'one.txt');
    await renameTo('TWO.TXT');
    await page.waitForSelector('dialog >> text="Replace two.txt?"');
    await page.click('dialog >> text="Cancel"');
    assert.deepEqual([await fetched('/one.txt'), await fetched('/two.txt')], ['one', 'two']);
    await renameTo('two.txt');
    await page.click('dialog >> text="Replace"');
    await lists(page, 'one.txt', false);
    assert.equal(await fetched('/two.txt'), 'one');
    for (const path of ['/two.txt', '/kept']) await fetch(server.url + path, { method: 'DELETE' });
  },

  async 'an upload whose connection breaks is reported, and can be repeated'() {
    const page = await open();
    await lists(page, 'b.bin');
    proxy.breakAfterBytes = 200_000;
    await page.setInputFiles('#picker', [text('big.bin', 'y'.repeat(2_000_000))]);
    await page.waitForSelector('text=Upload again');
    assert.match(await page.textContent('#uploads'), /the connection was lost after/);
    assert.equal((await fetch(`${server.url}/big.bin`)).status, 404);
    proxy.breakAfterBytes = Infinity;
    await page.click('text=Upload again');
    await page.waitForSelector('progress');
    await lists(page, 'big.bin');
    assert.equal((await fetched('/big.bin')).length, 2_000_000);
  },

  async 'an upload waits while others occupy the server'() {
    const others = [0, 1].map((at) => {
      const socket = net.connect(server.port, '127.0.0.1');
      socket.write(`PUT /other${at}.bin HTTP/1.1\r\nHost: 127.0.0.1:${server.port}\r\nContent-Length: 100000\r\n\r\n${'z'.repeat(50_000)}`);
      return socket;
    });
    const page = await open();
    const third = async () => (await fetch(`${server.url}/third.bin`, { method: 'PUT', body: 'third' })).status;
    for (let tries = 1; await third() !== 503; tries += 1) assert.ok(tries < 100, 'a third upload is accepted');
    const response = page.waitForResponse((response) => response.request().method() === 'PUT');
    await page.setInputFiles('#picker', [text('late.txt', 'late')]);
    assert.equal((await response).status(), 503);
    for (const socket of others) socket.destroy();
    await lists(page, 'late.txt');
    assert.equal(await fetched('/late.txt'), 'late');
  },

  async 'the live view moves, and continues after a reload and a lost connection'() {
    const page = await open();
    const grows = async (from) => {
      await page.waitForFunction((from) => Number(document.querySelector('canvas')?.dataset.rows) > from, from);
      return rows(page);
    };
    const before = await grows(await grows(0));
    assert.equal(await page.textContent('.lost'), '0');
    assert.match(await page.textContent('.figures'), /write latencymedian .+ 99 % .+ worst/);
    await page.reload();
    await grows(before - 1);
    proxy.breakAll();
    await page.waitForSelector('text=connecting again');
    await page.waitForSelector('#live >> text="recording"');
    await grows(before);
  },

  async 'sessions and days are single downloads'() {
    // A recording without a session is a row of its own.
    await fetch(`${server.url}/record?action=rotate&session=run-4`, { method: 'POST' });
    const page = await open();
    for (const title of ['Sessions', 'Days']) {
      await page.click(`summary >> text=${title}`);
      const link = page.locator('details', { hasText: title }).locator('a.act').first();
      const [download] = await Promise.all([page.waitForEvent('download'), link.click()]);
      const bytes = readFileSync(await download.path());
      assert.equal(bytes.subarray(257, 262).toString(), 'ustar');
    }
  },

  async 'axe finds nothing serious, in light and dark, wide and narrow'() {
    for (const viewport of [WIDE, NARROW]) {
      for (const colorScheme of ['light', 'dark']) {
        const page = await open('/', { viewport, colorScheme, bypassCSP: true });
        await lists(page, 'b.bin');
        await checkAccess(page, `page-${viewport.width}-${colorScheme}`);
      }
    }
  },

  async 'without scripts, the page is a plain list'() {
    const page = await open('/', { javaScriptEnabled: false });
    assert.equal(await page.textContent('h1'), '/');
    const links = await page.$$eval('table a', (all) => all.map((link) => link.textContent));
    assert.ok(links.includes('b.bin'), links.join());
  },

  async 'a read-only server has no buttons for changes'() {
    const image = `${folder}/page.img`;
    rmSync(image, { force: true });
    execFileSync('/usr/sbin/mkfs.fat', ['-C', image, '65536']);
    execFileSync('mcopy', ['-i', image, `${folder}/package.json`, '::NOTES.TXT']);
    const other = await Server.start(program, ['serve', image, '--listen', '127.0.0.1:0']);
    const page = await open('/', {}, other.url);
    await page.waitForSelector('text=read-only');
    await lists(page, 'NOTES.TXT');
    const buttons = await page.$$eval('button', (all) => all.map((button) => button.textContent));
    assert.deepEqual(buttons.filter((button) => /upload|new|rename|delete/i.test(button)), []);
    await page.focus('a.name >> text=NOTES.TXT');
    await page.keyboard.press('Delete');
    assert.equal(await page.$('dialog'), null);
    await other.stop();
  },

  async 'the demo: power is pulled and comes back, and every durable sample is there'() {
    const page = await open('/', {}, demo.url);
    await recordsAtLeast(3000);
    await page.click('text="Pull the power"');
    await page.waitForSelector('li >> text=The power is back');
    const story = await page.textContent('#application ul');
    const [, missing, missingMs] = /but the last (\d+) \((\d+) ms\)/.exec(story).map(Number);
    assert.ok(missingMs <= 1000, story);
    const [, path, kept] = /Recovered (\S+): (\d+) samples/.exec(story);
    const [ours, reopened, keptOpen] = await counts(page);
    assert.deepEqual([ours.full, ours.card, ours.cut], [0, 0, missing]);
    assert.ok(reopened.full > 0 && keptOpen.cut >= 3000, JSON.stringify([reopened, keptOpen]));
    const rows = (await (await fetch(`${demo.url}/${path}`)).text()).trim().split(/\r?\n/);
    const times = rows.filter((row) => /^\d/.test(row)).map((row) => Number(row.split(',')[0]));
    assert.equal(times.length, Number(kept));
    assert.ok(times.every((us, at) => us === Math.floor(at * 1e6 / 860)));
    // The live view has continued by itself.
    await page.waitForFunction(() => Number(document.querySelector('canvas')?.dataset.rows) > 100);
    assert.equal(Number(await page.textContent('.lost')), missing);
  },

  async 'the demo: every way to log is shown, chosen with the keyboard'() {
    const page = await open('/', {}, demo.url);
    await lists(page, 'REC00000/');
    for (const [name, at] of [['open and close for each line', 1], ['keep the file open', 2], ['Cardiograph', 0]]) {
      await page.focus(`text="Show: ${name}"`);
      await page.keyboard.press('Enter');
      await page.waitForSelector(`button[aria-pressed=true] >> text="Show: ${name}"`);
      assert.equal(await focused(page), `Show: ${name}`);
      // The figure in large letters is the sum of the columns; it and the table are updated at different times.
      const { full, card, cut } = (await counts(page))[at];
      await page.waitForFunction((sum) => {
        const lost = Number(document.querySelector('.lost')?.textContent);
        return lost >= sum && lost <= sum + 2 * 860 * 10;
      }, full + card + cut);
      await page.waitForFunction(() => Number(document.querySelector('canvas')?.dataset.rows) > 10);
    }
  },

  async 'the demo: a pulled card costs what its gaps say, and files can be downloaded'() {
    const page = await open('/', { bypassCSP: true }, demo.url);
    await lists(page, 'REC00000/');
    const recorder = async () => (await (await fetch(`${demo.url}/status`)).json()).recorder;
    const lost = async () => (await recorder()).lost;
    const already = await lost();
    assert.equal((await recorder()).fault, null);
    await page.click('text="Pull the card"');
    await page.waitForFunction((already) => Number(document.querySelector('.lost')?.textContent) > already, already);
    assert.match((await recorder()).fault, /card/);
    await page.click('text="Insert the card"');
    await page.waitForSelector('li >> text=The card is back');
    await recordsAtLeast(100);
    await page.waitForTimeout(2000);
    const gaps = await (await fetch(`${demo.url}/gaps`)).json();
    const inGaps = gaps.reduce((sum, gap) => sum + gap.count, 0);
    assert.equal(inGaps, await lost() - already);
    assert.equal((await recorder()).fault, null);
    const [ours] = await counts(page);
    assert.deepEqual([ours.full, ours.card], [0, inGaps]);
    const before = await lost();
    const archive = await fetch(`${demo.url}/REC00000?tar=1`);
    assert.ok((await archive.arrayBuffer()).byteLength > 10_000);
    assert.equal(await lost(), before);
    await checkAccess(page, 'demo');
    await page.setViewportSize(NARROW);
    await checkAccess(page, 'demo-narrow');
    const hidden = await page.$eval('#application .wide', (wide) => wide.scrollWidth - wide.clientWidth);
    assert.ok(hidden <= 0, `${hidden} px of the table are out of sight`);
  },
};

/** Waits until the recorder of the demo has taken samples. */
async function recordsAtLeast(samples) {
  for (;;) {
    const { recorder } = await (await fetch(`${demo.url}/status`)).json();
    if (recorder.samples >= samples) return;
    await new Promise((resume) => setTimeout(resume, 100));
  }
}

/** Returns the figures of the ways to log, from the table. */
const counts = (page) => page.$$eval('#application tbody tr', (lines) => lines.map((line) => {
  const [, samples, full, card, cut] = [...line.children].map((cell) => Number(cell.textContent));
  return { samples, full, card, cut };
}));

let failed = 0;
for (const [name, test] of Object.entries(tests)) {
  try {
    await test();
    console.log(`ok: ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`failed: ${name}\n${error.stack}`);
  }
  for (const context of browser.contexts()) await context.close();
}
await browser.close();
proxy.stop();
await demo.stop();
await server.stop();
process.exitCode = failed === 0 ? 0 : 1;
