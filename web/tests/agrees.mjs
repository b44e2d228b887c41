// Compares the playground's results with those of the command, byte for byte.
//
//   node agrees.mjs FOLDER PLAYGROUND PROGRAM
//
// Run in the root of the checkout. PLAYGROUND is the built folder; PROGRAM is cardiograph.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import vm from 'node:vm';

const [, playground, program] = process.argv.slice(2);
const module = await WebAssembly.compile(readFileSync(`${playground}/cardiograph.wasm`));
// The worker's own code, without a worker around it.
vm.runInThisContext(readFileSync(`${playground}/worker.js`, 'utf8'));

/** Carries out a request as the page does; returns the response or the refusal. */
async function carryOut(request, file) {
  const { exports } = await WebAssembly.instantiate(module, { page: { progress: () => {} } });
  try {
    return { response: JSON.parse(respond(exports, request, file?.length ?? 0, (target) => target.set(file))) };
  } catch (error) {
    if (typeof error !== 'string') throw error;
    return { refusal: error };
  }
}

/** Runs the command; returns its output, or the message with which it ended. */
function command(...args) {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: 'utf8', maxBuffer: 1 << 30 });
  return status === 0 || status === 3
    ? { json: stdout, printed: stderr }
    : { refusal: stderr.replace(/^error: /, '').replace(/\n$/, '') };
}

const scratch = mkdtempSync(`${tmpdir()}/playground-`);
const files = readdirSync('tests/data', { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile()).map((entry) => `${entry.parentPath}/${entry.name}`).sort();

/** Returns a report without the command that made it. */
const withoutCommand = (html) => html.replace(/"command":"(?:[^"\\]|\\.)*",/, '');

async function compareAnalysis(name, options = {}, flags = []) {
  const html = `${scratch}/report.html`;
  const expected = command('analyze', name, ...flags, '--json', '-', '--html', html, '--force');
  const { response, refusal } = await carryOut({ command: 'analyze', name, ...options }, readFileSync(name));
  assert.equal(refusal, expected.refusal, name);
  if (response) {
    assert.equal(response.json, expected.json, name);
    assert.equal(withoutCommand(response.html), withoutCommand(readFileSync(html, 'utf8')), name);
    // The command also draws the distribution, above the notes.
    const printed = expected.printed.replace(/^  Distribution: .*\n(    .*\n)*\n?/m, '');
    assert.ok(printed.startsWith(response.text.trimEnd()), name);
  }
  return Boolean(response);
}

const tests = {
  async 'every file of tests/data has the same figures and report, or is refused with the same sentence'() {
    let read = 0;
    for (const name of files) read += await compareAnalysis(name);
    assert.ok(read > 50 && files.length - read > 20, `${read} of ${files.length} were read`);
    return `${read} files with the same figures, ${files.length - read} refused`;
  },

  async 'files with options'() {
    const sketch = 'tests/data/foreign/sketch_latency_no_unit.csv';
    assert.ok(await compareAnalysis(sketch, { time_unit: 'us', block_bytes: '100', stall_threshold: '2ms' },
      ['--time-unit', 'us', '--block-bytes', '100', '--stall-threshold', '2ms']));
  },

  async 'traces of a simulated card, as Parquet and as CSV'() {
    for (const target of ['sim:class10-16g@esp32', 'sim:kingston-8g@esp32']) {
      for (const kind of ['trace', 'csv']) {
        const name = `${scratch}/${target.slice(4, 9)}.${kind}`;
        assert.ok(command('bench', target, '--json', '-', `--${kind}`, name, '--force').json);
        assert.ok(await compareAnalysis(name));
      }
    }
  },

  async 'recordings on simulated cards, with and without losses'() {
    const runs = [
      ['sim:class10-16g@esp32', '860', '100', '10s', '64KiB', '1'],
      ['sim:class10-16g@esp32', '4400', '100', '20s', '1KiB', '1'],
      ['sim:toshiba-8g@esp32', '8', '81', '60s', '1 KiB', '3'],
    ];
    let lost = 0;
    for (const [target, rate, sampleBytes, length, buffer, seed] of runs) {
      const { json } = command('record', target, '--rate', rate, '--sample-bytes', sampleBytes, '--for', length,
        '--buffer', buffer, '--seed', seed, '--json', '-');
      const { response, refusal } = await carryOut({ command: 'record', target, rate, sample_bytes: sampleBytes,
        for: length, buffer, seed });
      assert.equal(response?.json, json, `${target}: ${refusal}`);
      const figures = JSON.parse(json).results[0];
      const { course } = response;
      // The course has the same losses and the same peak, from another source.
      assert.equal(course.lost.reduce((sum, count) => sum + count), figures.samples_lost);
      assert.ok(Math.max(...course.level_bytes_max) <= figures.buffer_peak_bytes);
      lost += figures.samples_lost;
    }
    assert.ok(lost > 0);
  },

  async 'plans for simulated cards and for traces'() {
    const options = { rate: '860', sample_bytes: '100', buffer: '32KiB', for: '7days' };
    const flags = ['--rate', '860', '--sample-bytes', '100', '--buffer', '32KiB', '--for', '7days', '--json', '-'];
    for (const target of ['sim:class10-16g@esp32', 'sim:sandisk-edge-8g@esp32']) {
      const { response, refusal } = await carryOut({ command: 'plan', target, ...options });
      const expected = command('plan', target, ...flags);
      assert.equal(response?.json, expected.json, refusal);
      assert.equal(response.text, expected.printed);
    }
    const trace = `${scratch}/class.trace`;
    assert.ok(command('bench', 'sim:class10-16g@esp32', '--json', '-', '--trace', trace, '--force').json);
    const names = ['tests/data/traces/fio_lat.log', 'tests/data/magod/f2_1.csv', trace];
    for (const name of names) {
      const { response, refusal } = await carryOut({ command: 'plan', name, ...options }, readFileSync(name));
      const expected = command('plan', name, ...flags);
      assert.equal(refusal, expected.refusal);
      assert.equal(response?.json, expected.json);
    }
  },

  async 'values that the command refuses are refused with the same reason'() {
    const wrong = { rate: ['0', 'x', '1e9'], sample_bytes: ['3', '10', '-1'], buffer: ['64K', '1B', ''], for: ['0s', '1'], seed: ['-1'] };
    for (const [name, values] of Object.entries(wrong)) {
      for (const value of values.filter((value) => value)) {
        const target = 'sim:class10-16g@esp32';
        const { refusal } = await carryOut({ command: 'record', target, [name]: value });
        const expected = command('record', target, `--${name.replace('_', '-')}=${value}`);
        const reason = refusal?.replace(/^--[a-z-]+: /, '');
        assert.ok(reason && expected.refusal.includes(reason), `${name}=${value}: ${refusal} / ${expected.refusal}`);
      }
    }
  },
};

try {
  for (const [name, test] of Object.entries(tests)) {
    const found = await test();
    console.log(`ok: ${name}${found ? `: ${found}` : ''}`);
  }
} finally {
  rmSync(scratch, { recursive: true });
}
