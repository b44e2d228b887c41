// Takes the pictures of the README.
//
//   node pictures.mjs FOLDER PROGRAM DOCS PLAYGROUND
//
// FOLDER contains node_modules with playwright-core. The pictures are saved in the folder DOCS. PLAYGROUND is the built
// playground.

import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { serveFolder } from './folder.mjs';
import { Server } from './server.mjs';

const [folder, program, docs, playground] = process.argv.slice(2);
const { chromium } = createRequire(`${folder}/`)('playwright-core');
const WIDTH = 1100;
/** Samples before the power is pulled: a picture with a history. */
const SAMPLES = 40_000;

const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox', '--disable-gpu'] });
const page = await browser.newPage({ viewport: { width: WIDTH, height: 1345 } });
const save = (name, options = {}) => page.screenshot({ path: `${docs}/${name}.png`, ...options });

execFileSync(program, ['bench', '--force', '--html', `${folder}/report.html`]);
await page.goto(`file://${folder}/report.html`);
await save('report');

const demo = await Server.start(program, ['demo', '--listen', '127.0.0.1:0']);
await page.goto(demo.url);
await page.waitForFunction((samples) => Number(document.querySelectorAll('.figures dd')[4]?.textContent.replace(/,/g, ''))
  >= samples, SAMPLES, { timeout: 120_000 });
await page.click('text="Pull the power"');
await page.waitForSelector('li >> text=The power is back');
await page.waitForTimeout(5000);
const bottom = await page.$eval('#application', (section) => section.getBoundingClientRect().bottom);
await save('demo', { clip: { x: 0, y: 0, width: WIDTH, height: Math.ceil(bottom) + 10 } });
await demo.stop();

const served = await serveFolder(playground);
await page.goto(`${served.url}#record`);
await page.waitForFunction(() => document.querySelector('[name=card]').options.length > 5);
await page.click('button.main >> text=Record');
await page.waitForSelector('#record .result:not([hidden])');
// The recording is played.
await page.waitForFunction(() => tools.record.chart.share === 1);
const end = await page.$eval('#record', (section) => section.getBoundingClientRect().bottom);
await save('playground', { clip: { x: 0, y: 0, width: WIDTH, height: Math.ceil(end) + 10 } });
served.stop();
await browser.close();
