// Measures the analysis of a file in the playground.
//
//   node million.mjs FOLDER PLAYGROUND FILE [at-once]
//
// FOLDER contains node_modules with playwright-core. The file is chosen once the page has warmed up, or `at-once`: as soon
// as the page can be used. Prints one line of JSON.

import { createRequire } from 'node:module';
import { serveFolder } from './folder.mjs';

const [folder, playground, file, when] = process.argv.slice(2);
const { chromium } = createRequire(`${folder}/`)('playwright-core');
const served = await serveFolder(playground);
const browser = await chromium.launch({ executablePath: '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-sync'] });
const page = await browser.newPage();
page.setDefaultTimeout(120_000);
await page.goto(served.url);
await page.waitForFunction(() => document.querySelector('[name=card]').options.length > 5);
if (when !== 'at-once') await page.waitForSelector('body[data-warm]');
await page.evaluate(() => {
  document.querySelector('#analyze-file').addEventListener('change', () => { window.begunMs = performance.now(); }, true);
  new MutationObserver(() => {
    if (!document.querySelector('#analyze .result').hidden) window.endedMs ??= performance.now();
  }).observe(document.querySelector('#analyze .result'), { attributes: true });
});
const system = await browser.newBrowserCDPSession();
/** Processor time of all processes of the browser so far, in s. */
const processorS = async () => (await system.send('SystemInfo.getProcessInfo')).processInfo
  .reduce((sum, { cpuTime }) => sum + cpuTime, 0);
const beforeS = await processorS();
await page.setInputFiles('#analyze-file', file);
await page.waitForFunction(() => window.endedMs || document.querySelector('#analyze .failure'));
const ms = await page.evaluate(() => window.endedMs - window.begunMs);
console.log(JSON.stringify({ ms, processor_ms: 1000 * (await processorS() - beforeS) }));
await browser.close();
served.stop();
