// The trace as the page stores it: log-quantised latencies and a pyramid over them, so that drawing a view costs the
// same for a thousand writes and for millions.

const STEPS_PER_OCTAVE = 1024;

// In µs. The code 0 stands for 0 and for 1 ns, and no clock resolves 1 ns.
const timeOf = (q) => (q === 0 ? 0 : 2 ** (q / STEPS_PER_OCTAVE) / 1000);
const codeOf = (us) => STEPS_PER_OCTAVE * Math.log2(Math.max(us * 1000, 1));

function decodeBase64(text) {
  let raw;
  try {
    raw = atob(text);
  } catch {
    throw new Error("the data are not valid base64");
  }
  const out = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) out[i] = raw.charCodeAt(i);
  return out;
}

function decodeCodes(text) {
  const raw = decodeBase64(text);
  const out = new Uint16Array(raw.length >> 1);
  for (let i = 0; i < out.length; i++) out[i] = raw[2 * i] | (raw[2 * i + 1] << 8);
  return out;
}

// Stalls at their own positions; every write of at least `least_code` is among them.
function decodeStalls({ x, codes, least_code }) {
  const stalls = { x: decodePositions(x), codes: decodeCodes(codes), least: least_code };
  if (stalls.x.length !== stalls.codes.length) throw new Error("stalls and positions differ in number");
  return stalls;
}

function decodePositions(text) {
  const view = new DataView(decodeBase64(text).buffer);
  const out = new Float64Array(view.byteLength >> 3);
  for (let i = 0; i < out.length; i++) {
    out[i] = view.getFloat64(8 * i, true);
    if (i > 0 && !(out[i] >= out[i - 1])) throw new Error("the positions do not ascend");
  }
  return out;
}

function decodeFloats(text) {
  const view = new DataView(decodeBase64(text).buffer);
  return Float32Array.from({ length: view.byteLength >> 2 }, (_, i) => view.getFloat32(4 * i, true));
}

// A fixed stride would alias with the card's own period, so the child that represents a pair is chosen at random.
function lot(i) {
  let h = Math.imul(i ^ 0x9e3779b9, 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) & 1;
}

function halve(level, depth) {
  const n = (level.min.length + 1) >> 1;
  const up = { min: new Uint16Array(n), max: new Uint16Array(n), pick: new Uint16Array(n) };
  for (let i = 0; i < n; i++) {
    const a = 2 * i;
    const b = Math.min(a + 1, level.min.length - 1);
    up.min[i] = Math.min(level.min[a], level.min[b]);
    up.max[i] = Math.max(level.max[a], level.max[b]);
    up.pick[i] = level.pick[lot(i + depth * 0x51ed27) ? b : a];
  }
  return up;
}

// Index of the first of the ascending values at or above x.
function lowerBound(values, x) {
  let [lo, hi] = [0, values.length];
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (values[mid] < x) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

class Series {
  constructor(points) {
    const min = decodeCodes(points.min);
    const max = points.max ? decodeCodes(points.max) : min;
    if (min.length === 0) throw new Error("the trace has no points");
    if (max.length !== min.length) throw new Error("minima and maxima differ in number");
    // Positions are bytes, or times if another plot shares the axis.
    this.timed = Boolean(points.x_us);
    const packed = points.x_us || points.x_bytes;
    this.positions = packed ? decodePositions(packed) : null;
    if (this.positions && this.positions.length !== min.length) throw new Error("times and positions differ in number");
    this.end_us = points.end_us;
    this.length = min.length;
    this.total = isNumber(points.total) ? points.total : min.length;
    this.group = Math.max(1, points.group || 1);
    this.start = points.start_bytes || 0;
    this.pitch = points.bytes_per_group > 0 ? points.bytes_per_group : 1;
    // Either extreme may represent a group: the minima alone would hide every rarer layer.
    const pick = max === min ? min : min.map((code, i) => (lot(i) ? max[i] : code));
    this.levels = [{ min, max, pick }];
    this.stalls = points.stalls ? decodeStalls(points.stalls) : null;
    while (this.levels.at(-1).min.length > 1) this.levels.push(halve(this.levels.at(-1), this.levels.length));
  }

  x(i) {
    return this.positions ? this.positions[i] : this.start + i * this.pitch;
  }

  get end() {
    const n = this.length;
    if (!this.positions) return this.x(n);
    if (isNumber(this.end_us)) return Math.max(this.end_us, this.positions[n - 1] + 1e-3);
    // The length of the last write is not in the data; the mean is used instead.
    const mean = n > 1 ? (this.positions[n - 1] - this.positions[0]) / (n - 1) : this.pitch;
    return this.positions[n - 1] + (mean || 1);
  }

  // The first point at or after position x.
  indexAt(x) {
    if (!this.positions) return Math.min(this.length, Math.max(0, Math.ceil((x - this.start) / this.pitch)));
    return lowerBound(this.positions, x);
  }

  // Calls put(x, code) for every single stall in [x0, x1).
  stallsIn([x0, x1], put) {
    if (!this.stalls) return;
    const { x, codes } = this.stalls;
    for (let i = lowerBound(x, x0); i < x.length && x[i] < x1; i++) put(x[i], codes[i]);
  }

  // True if the point's extreme is drawn as a single stall.
  isKept(code) {
    return this.stalls !== null && code >= this.stalls.least;
  }

  // The finest level at which `span` points become at most `limit` cells.
  levelFor(span, limit) {
    let k = 0;
    while (k + 1 < this.levels.length && span / 2 ** k > limit) k++;
    return k;
  }

  // Index of the greatest (or least) value within a cell.
  locate(k, cell, side) {
    const want = this.levels[k][side][cell];
    for (; k > 0; k--) {
      cell *= 2;
      if (this.levels[k - 1][side][cell] !== want) cell++;
    }
    return cell;
  }

  // Index of the maximum in [from, to).
  greatest(from, to) {
    let best = from;
    const max = this.levels[0].max;
    for (let i = from; i < to;) {
      let k = 0;
      while (k + 1 < this.levels.length && i % 2 ** (k + 1) === 0 && i + 2 ** (k + 1) <= to) k++;
      if (this.levels[k].max[i / 2 ** k] > max[best]) best = this.locate(k, i / 2 ** k, "max");
      i += 2 ** k;
    }
    return best;
  }

  // Number of writes that the points in [from, to) represent.
  writesIn(from, to) {
    return Math.min(this.total, to * this.group) - Math.min(this.total, from * this.group);
  }
}
