// The live view: figures of the recorder, and its write latencies as a running trace.
'use strict';

const FLOOR_US = 10;
const CEILING_US = 2e6;
/** Time for new events in one frame; drawing comes on top of it. */
const FRAME_MS = 3;
/** Rows or characters between two looks at the clock. */
const PIECE = 2048;
/** Latencies in a chunk of the history. */
const CHUNK = 1 << 14;
const HOUR_MS = 3600e3;

/** Extremes per pixel of a time window that moves. */
class Columns {
  constructor(windowMs, count) {
    this.stepMs = windowMs / count;
    this.count = count;
    this.low = new Float32Array(count);
    this.high = new Float32Array(count);
    this.bucket = new Float64Array(count).fill(-1);
    this.next = 0;
  }

  /** Adds the latencies of a history that are not in it yet, until a time. */
  read(history, endMs) {
    this.next = Math.max(this.next, history.first);
    while (this.next < history.length) {
      const { ms, us } = history.chunkOf(this.next);
      const from = this.next % CHUNK;
      const end = Math.min(from + PIECE, from + history.length - this.next, CHUNK);
      for (let at = from; at < end; at += 1) this.add(ms[at], us[at]);
      this.next += end - from;
      if (performance.now() > endMs) return;
    }
  }

  add(ms, us) {
    const bucket = Math.floor(ms / this.stepMs);
    const at = bucket % this.count;
    if (this.bucket[at] !== bucket) {
      this.bucket[at] = bucket;
      this.low[at] = this.high[at] = us;
    } else {
      this.low[at] = Math.min(this.low[at], us);
      this.high[at] = Math.max(this.high[at], us);
    }
  }
}

/** Latencies of the last hour, in chunks: growing an array of an hour would take longer than a frame. */
class History {
  constructor() {
    this.chunks = [];
    /** Numbers of the first latency that is kept, and of the next one. */
    this.first = 0;
    this.length = 0;
    this.newest = -1;
  }

  chunkOf(at) {
    return this.chunks[(at - this.first) / CHUNK | 0];
  }

  push(number, ms, us) {
    const at = this.length % CHUNK;
    if (at === 0) {
      this.chunks.push({ ms: new Float64Array(CHUNK), us: new Float32Array(CHUNK) });
      while (this.chunks[0].ms[CHUNK - 1] < ms - HOUR_MS && this.chunks.length > 1) {
        this.chunks.shift();
        this.first += CHUNK;
      }
    }
    const chunk = this.chunks.at(-1);
    chunk.ms[at] = ms;
    chunk.us[at] = us;
    this.length += 1;
    this.newest = number;
  }
}

const latencyText = (us) => (us < 1000 ? `${us.toFixed(0)} µs` : us < 1e6 ? `${(us / 1000).toPrecision(3)} ms` : `${(us / 1e6).toPrecision(3)} s`);

/** Begins the live view again, for example after another device has been chosen. */
let restartLive = () => {};

/** Creates the live view, and keeps it up to date. */
function liveView() {
  const canvas = make('canvas', { role: 'img', 'aria-label': 'Write latencies' });
  const figure = {};
  const figures = make('dl', { className: 'figures' });
  for (const name of ['lost', 'buffer', 'write latency', 'samples', 'not yet durable', 'rate']) {
    figure[name] = make('dd', {}, '–');
    figures.append(make('div', {}, make('dt', {}, name), figure[name]));
  }
  figure.lost.className = 'lost';
  const level = make('i');
  figure.buffer.after(make('dd', { className: 'level' }, level));
  const state = make('span', { className: 'dim', role: 'status' }, 'connecting');
  const colours = {};
  const readColours = () => {
    const style = getComputedStyle(document.documentElement);
    for (const name of ['line', 'dim', 'bad', 'trace']) colours[name] = style.getPropertyValue(`--${name}`);
  };
  readColours();
  matchMedia('(prefers-color-scheme: dark)').onchange = readColours;
  const gaps = make('ul', { id: 'gaps', tabIndex: 0, hidden: true, 'aria-label': 'Gaps' });
  let history = new History();
  let windowMs = 60e3;
  let columns = null;
  let lostSpans = [];
  // Texts that have arrived, and the beginning of an event that has not ended.
  let arrived = [];
  let rest = '';
  // Device time minus this page's time: the trace moves while no events arrive.
  let aheadMs = null;

  const choices = [['1 min', 60e3], ['10 min', 600e3], ['1 h', HOUR_MS]].map(([text, ms]) => make('button', {
    type: 'button', 'aria-pressed': String(ms === windowMs), onclick: (event) => {
      windowMs = ms;
      columns = null;
      choices.forEach((choice) => choice.setAttribute('aria-pressed', String(choice === event.target)));
    } }, text));

  const textOf = (data) => data.replace(/^data: /gm, '');
  const on = {
    status(data) {
      const now = JSON.parse(textOf(data));
      const us = now.write_us;
      figure.lost.textContent = now.lost;
      figure.lost.classList.toggle('bad', now.lost > 0);
      figure.buffer.textContent = `${bytesText(now.ring_bytes)} of ${bytesText(now.ring_capacity_bytes)}, at most ${bytesText(now.ring_bytes_max)}`;
      level.style.width = `${100 * now.ring_bytes / Math.max(now.ring_capacity_bytes, 1)}%`;
      figure['write latency'].textContent = `median ${latencyText(us.median)}, 99 % ${latencyText(us.p99)}, worst ${latencyText(us.max)}`;
      figure.samples.textContent = now.samples.toLocaleString('en');
      const window = now.window_ms > 0 ? ` of ${now.window_ms} ms` : '';
      figure['not yet durable'].textContent = `${now.unsaved_ms} ms${window}`;
      figure.rate.textContent = `${bytesText(now.rate_bytes_per_s)}/s`;
      const keeps = history.length > 0 ? '' : '; this device keeps no single latencies';
      const states = [now.fault ?? (now.recording ? 'recording' : 'not recording') + keeps, now.notice];
      state.textContent = states.filter(Boolean).join('; ');
      state.classList.toggle('bad', Boolean(now.fault ?? now.notice));
      canvas.setAttribute('aria-label', `Write latencies: ${figure['write latency'].textContent}`);
    },
    // Lines of a number, a time and a latency. Splitting them would leave a lot of garbage, whose collection takes longer
    // than a frame.
    writes(data) {
      const row = [];
      let value = -1;
      for (let at = 0; at <= data.length; at += 1) {
        const digit = data.charCodeAt(at) - 48;
        if (digit >= 0 && digit <= 9) value = 10 * Math.max(value, 0) + digit;
        else if (value >= 0 && row.push(value) < 3) value = -1;
        else if (value >= 0) {
          const [number, ms, us] = row;
          [row.length, value] = [0, -1];
          if (number <= history.newest) continue;
          history.push(number, ms, us);
          aheadMs = Math.max(aheadMs ?? -Infinity, ms - performance.now());
        }
      }
    },
    gap(data) {
      const gap = JSON.parse(textOf(data));
      lostSpans.push([gap.at_us / 1000, gap.last_us / 1000]);
      gaps.hidden = false;
      gaps.prepend(make('li', {}, `${gap.count} samples of stream ${gap.stream} from number ${gap.first}: ${gap.cause}`));
    },
  };

  async function receive() {
    const response = await send('/live?writes=1');
    // The server may have restarted, and counts from 0 then.
    [history, columns, aheadMs] = [new History(), null, null];
    [lostSpans, arrived, rest] = [[], [], ''];
    gaps.replaceChildren();
    for (const gap of await (await send('/gaps?since=0')).json()) on.gap(JSON.stringify(gap));
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    restartLive = () => reader.cancel().catch(() => {});
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      for (let at = 0; at < value.length; at += PIECE) arrived.push(value.slice(at, at + PIECE));
      // A hidden page has no frames.
      if (document.hidden) parse(Infinity);
    }
  }

  /** Handles events that have arrived, until a time. */
  function parse(endMs) {
    let count = 0;
    while (count < arrived.length && performance.now() < endMs) handle(arrived[count++]);
    arrived.splice(0, count);
  }

  function handle(text) {
    const events = (rest + text).split('\n\n');
    rest = events.pop();
    for (const event of events) {
      const end = event.indexOf('\n');
      on[event.slice('event: '.length, end)]?.(event.slice(end + 1));
    }
  }

  async function follow() {
    for (;;) {
      let reason = 'the connection was lost; connecting again';
      try {
        await receive();
      } catch (error) {
        // A connection that breaks is a TypeError without a useful text.
        if (!(error instanceof TypeError)) reason = error.message;
      }
      state.textContent = reason;
      await new Promise((resume) => setTimeout(resume, 1000));
    }
  }

  function frame() {
    const begunMs = performance.now();
    parse(begunMs + FRAME_MS);
    const scale = devicePixelRatio || 1;
    const [width, height] = [Math.round(canvas.clientWidth * scale), Math.round(canvas.clientHeight * scale)];
    if (width > 0) {
      if (canvas.width !== width || canvas.height !== height) {
        [canvas.width, canvas.height] = [width, height];
        columns = null;
      }
      columns ??= new Columns(windowMs, width);
      columns.read(history, begunMs + FRAME_MS);
      const nowMs = aheadMs === null ? windowMs : aheadMs + begunMs;
      draw(canvas, { columns, lostSpans, nowMs, scale, colours });
    }
    canvas.dataset.rows = columns?.next ?? 0;
    requestAnimationFrame(frame);
  }
  requestAnimationFrame(frame);
  follow();
  return make('section', { id: 'live', 'aria-label': 'Recorder' }, figures, canvas,
    make('div', { className: 'bar' }, ...choices, state), gaps);
}

/** Draws the trace: a line from the shortest to the longest latency for each pixel, and gaps as bars. */
function draw(canvas, { columns, lostSpans, nowMs, scale, colours }) {
  const context = canvas.getContext('2d');
  const { width, height } = canvas;
  const heightOf = (us) => height * (1 - Math.log(Math.max(us, FLOOR_US) / FLOOR_US) / Math.log(CEILING_US / FLOOR_US));
  context.clearRect(0, 0, width, height);
  context.font = `${11 * scale}px system-ui, sans-serif`;
  for (let us = 100; us < CEILING_US; us *= 10) {
    const y = Math.round(heightOf(us));
    context.fillStyle = colours.line;
    context.fillRect(0, y, width, 1);
    context.fillStyle = colours.dim;
    context.fillText(latencyText(us).replace('.00', ''), 2 * scale, y - 3 * scale);
  }
  const xOf = (ms) => width - (nowMs - ms) / columns.stepMs;
  context.fillStyle = colours.bad;
  for (const [from, to] of lostSpans) context.fillRect(xOf(from), 0, Math.max(xOf(to) - xOf(from), 2 * scale), height);
  context.fillStyle = colours.trace;
  const newest = Math.floor(nowMs / columns.stepMs);
  for (let back = 0; back < columns.count; back += 1) {
    const bucket = newest - back;
    const at = bucket % columns.count;
    if (bucket < 0 || columns.bucket[at] !== bucket) continue;
    const top = heightOf(columns.high[at]);
    context.fillRect(width - 1 - back, top, scale, Math.max(heightOf(columns.low[at]) - top, 2 * scale));
  }
}
