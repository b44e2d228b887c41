// Plot 1: the latency of every write over the bytes written, or over time if the energy is plotted below; the steps of
// a recording over time.

const DOTS = 3000; // up to this number, every point is drawn as a round dot
const SAMPLE = 60000; // above it, at most this many points are counted into the picture

class Timeline {
  constructor(run, words) {
    this.words = words;
    this.series = new Series(run.points);
    // A sample is late if it follows the previous one after more than 1.5 median intervals.
    this.threshold = words.isInterval ? run.summary.cadence?.median_interval_us * 1.5 : run.summary.stalls?.threshold_us;
    this.thresholdIsDefault = run.threshold_is_default;
    this.full = this.series.timed ? sharedSpan(run.energy, this.series.end) : [this.series.x(0), this.series.end];
    this.below = []; // plots that share the view
    this.view = this.full;
    this.range = this.timeRange(run.summary);
    this.plot = new Plot({
      label: `${words.quantity} of ${plural(this.series.total, words.noun)} over the ${words.position}, on a logarithmic scale`,
      draw: (ctx, size, ink) => this.draw(ctx, size, ink),
      probe: (x, y) => this.probe(x, y),
    });
    this.zoomer = makeZoomable(this.plot, {
      full: () => this.full,
      get: () => this.view,
      set: (view) => this.setView(view),
      least: () => ((this.full[1] - this.full[0]) / this.series.length) * Math.min(8, this.series.length),
      area: () => this.area,
    });
    this.plot.host.classList.add("tall", "zoomable");
    this.plot.host.setAttribute("aria-label", "Plot: plus and minus zoom, arrows move, 0 shows all");
    this.readout = element("span", { class: "readout" });
  }

  setView(view) {
    this.view = view;
    for (const plot of [this.plot, ...this.below]) plot.redraw();
  }

  timeRange(summary) {
    const top = this.series.levels.at(-1);
    const hi = timeOf(top.max[0]) || 0.001;
    // A single interval of 0 must not press the rest into a corner of the scale.
    const median = summary.latency_us?.median ?? summary.cadence?.median_interval_us;
    const floor = isNumber(median) && median > 0 ? median / 1000 : 0;
    const [a, b] = logRange(Math.min(hi, Math.max(timeOf(top.min[0]), floor)), hi);
    const line = this.threshold;
    return isNumber(line) && line > 0 && line < b * 10 ? [Math.min(a, line / 1.2), Math.max(b, line * 1.2)] : [a, b];
  }

  showWorstCase() {
    const i = this.series.greatest(0, this.series.length);
    const half = (this.full[1] - this.full[0]) / Math.min(200, Math.max(2, this.series.length / 20)) / 2;
    this.showAt(this.series.x(i), half);
  }

  showAt(x, half = (this.full[1] - this.full[0]) / 100) {
    this.zoomer.set(x - half, x + half);
  }

  visible() {
    const from = Math.min(this.series.length - 1, this.series.indexAt(this.view[0]));
    return [from, Math.max(from + 1, this.series.indexAt(this.view[1]))];
  }

  draw(ctx, size, ink) {
    const yTicks = logTicks(this.range, size.h - 72, 20, (v) => tick(v, TIME));
    const area = (this.area = areaFor(ctx, size, yTicks, 28, this.series.timed ? SHARED_LEFT : 0));
    const [width, height] = [area.right - area.left, area.bottom - area.top];
    this.x = linear(...this.view, area.left, area.right);
    this.y = logarithmic(...this.range, area.bottom, area.top);
    const xTicks = fittingTicks(ctx, this.view, width, this.series.timed ? axisUnits(this.view) : BYTES);
    drawAxes(ctx, area, ink, {
      x: this.x,
      y: this.y,
      xTicks,
      yTicks,
      xTitle: this.words.position,
      yTitle: this.words.quantity,
    });
    const [from, to] = this.visible();
    if (to - from <= DOTS) this.drawDots(ctx, ink, from, to);
    else this.drawDensity(ctx, area, size.scale, width, height, ink, from, to);
    this.drawThreshold(ctx, area, ink);
    this.showReadout(from, to);
  }

  drawDots(ctx, ink, from, to) {
    const { min, max } = this.series.levels[0];
    const cut = isNumber(this.threshold) ? codeOf(this.threshold) - 0.5 : Infinity;
    const radius = to - from <= 400 ? 2.5 : 1.7;
    const ordinary = new Path2D();
    const stalls = new Path2D();
    const put = (px, code) => {
      const path = code >= cut ? stalls : ordinary;
      const r = code >= cut ? radius + 0.6 : radius;
      const py = Math.min(this.area.bottom, this.y(timeOf(code)));
      path.moveTo(px + r, py);
      path.arc(px, py, r, 0, 2 * Math.PI);
    };
    for (let i = from; i < to; i++) {
      const px = this.x(this.series.x(i));
      if (!this.series.isKept(min[i])) put(px, min[i]);
      if (max[i] !== min[i] && !this.series.isKept(max[i])) put(px, max[i]);
    }
    this.series.stallsIn(this.view, (x, code) => put(this.x(x), code));
    ctx.globalAlpha = 0.8;
    ctx.fillStyle = ink.data;
    ctx.fill(ordinary);
    ctx.globalAlpha = 1;
    ctx.fillStyle = ink.stall;
    ctx.fill(stalls);
  }

  // Counts the points that fall on each pixel and shades by the count. A random sample provides the body of the
  // picture; the pyramid provides the extremes of every half pixel column, so that no stall is lost.
  drawDensity(ctx, area, scale, width, height, ink, from, to) {
    const [w, h] = [Math.round(width * scale), Math.round(height * scale)];
    const shades = this.shades(w, h);
    const { series } = this;
    const top = codeOf(this.range[1]);
    const perCode = h / (top - codeOf(this.range[0]));
    const perUnit = w / (this.view[1] - this.view[0]);
    const x0 = this.view[0];
    const stamp = (x, code, size) => {
      const px = Math.min(w - size, Math.max(0, Math.round((x - x0) * perUnit - size / 2)));
      const py = Math.min(h - size, Math.max(0, Math.round((top - code) * perCode - size / 2)));
      for (let r = 0; r < size; r++) {
        const row = (py + r) * w + px;
        for (let c = 0; c < size; c++) if (shades[row + c] < 255) shades[row + c]++;
      }
    };
    const few = (to - from) / width < 40;
    const small = Math.max(1, Math.round((few ? 2 : 1) * scale));
    const large = Math.max(2, Math.round(2.5 * scale));
    const cut = isNumber(this.threshold) ? codeOf(this.threshold) - 0.5 : Infinity;

    const body = series.levelFor(to - from, SAMPLE);
    const { pick } = series.levels[body];
    const last = Math.ceil(to / 2 ** body);
    for (let i = Math.floor(from / 2 ** body); i < last; i++) {
      if (pick[i] < cut) stamp(series.x(i * 2 ** body), pick[i], small);
    }
    const edge = series.levelFor(to - from, width * 2);
    const { min, max } = series.levels[edge];
    for (let i = Math.floor(from / 2 ** edge); i < Math.ceil(to / 2 ** edge); i++) {
      stamp(series.x(series.locate(edge, i, "min")), min[i], small);
      if (max[i] < cut) stamp(series.x(series.locate(edge, i, "max")), max[i], small);
    }
    // Stalls are few; searching finer cells for them costs little and resolves as many as the eye can.
    const fine = series.levelFor(to - from, width * 16);
    const stalls = series.levels[fine].max;
    let found = 0;
    for (let i = Math.floor(from / 2 ** fine); i < Math.ceil(to / 2 ** fine); i++) {
      if (stalls[i] < cut || series.isKept(stalls[i])) continue;
      stamp(series.x(series.locate(fine, i, "max")), stalls[i], large);
      found++;
    }
    series.stallsIn(this.view, (x, code) => {
      stamp(x, code, large);
      found++;
    });
    const border = Math.max(0, Math.min(h, Math.round((top - cut) * perCode + large / 2)));
    this.colour(this.pixels.subarray(0, border * w), 0, ink.stall, found < width ? 0.9 : 0.55);
    this.colour(this.pixels.subarray(border * w), border * w, ink.data, few ? 0.6 : 0.3);
    this.sheet.getContext("2d").putImageData(this.picture, 0, 0);
    ctx.drawImage(this.sheet, area.left, area.top, width, height);
  }

  // One counter buffer and one picture, reused for every frame.
  shades(w, h) {
    if (this.picture?.width !== w || this.picture?.height !== h) {
      this.picture = new ImageData(w, h);
      this.pixels = new Uint32Array(this.picture.data.buffer);
      this.counts = new Uint8Array(w * h);
      this.sheet = element("canvas", { width: w, height: h });
    }
    this.counts.fill(0);
    return this.counts;
  }

  // `offset` is the index of the first of these pixels in the counts.
  colour(pixels, offset, ink, opacity) {
    const table = shadeTable(ink, opacity);
    const { counts } = this;
    for (let i = 0; i < pixels.length; i++) pixels[i] = table[counts[offset + i]];
  }

  drawThreshold(ctx, area, ink) {
    if (!isNumber(this.threshold)) return;
    const py = this.y(this.threshold);
    if (py < area.top || py > area.bottom) return;
    ctx.strokeStyle = ctx.fillStyle = ink.stall;
    ctx.setLineDash([5, 4]);
    stroke(ctx, [
      [area.left, Math.round(py) + 0.5],
      [area.right, Math.round(py) + 0.5],
    ]);
    // Labelled in the margin: near the line there may be points on either side.
    const origin = this.thresholdIsDefault ? "default" : "given";
    const text = this.words.isInterval
      ? `late: above ${time(this.threshold)}`
      : `stall threshold ${time(this.threshold)} (${origin})`;
    ctx.textAlign = "right";
    ctx.textBaseline = "top";
    ctx.fillText(text, area.right, 0);
    const start = area.right - ctx.measureText(text).width - 8;
    if (start > 200)
      stroke(ctx, [
        [start - 23, 6.5],
        [start, 6.5],
      ]);
    ctx.setLineDash([]);
  }

  showReadout(from, to) {
    const whole = from === 0 && to === this.series.length;
    const worst = timeOf(this.series.levels[0].max[this.series.greatest(from, to)]);
    const n = plural(this.series.writesIn(from, to), this.words.noun);
    this.readout.textContent = whole ? "" : `In view: ${n}, worst case ${time(worst)}`;
  }

  probe(px, py) {
    const near = this.nearest(px, py);
    if (!near) return null;
    const { series } = this;
    return {
      x: this.x(near.x),
      y: Math.min(this.area.bottom, this.y(timeOf(near.code))),
      lines: [
        time(timeOf(near.code)) + this.extremeOf(near),
        `at ${series.timed ? axisTime(near.x) : exactBytes(near.x)}`,
        ...this.namesOf(near),
      ],
    };
  }

  extremeOf({ i, code }) {
    const { group, levels } = this.series;
    if (i === undefined || group === 1) return "";
    return ` ${code === levels[0].min[i] ? "min" : "max"} of ${group}`;
  }

  namesOf({ i }) {
    if (i === undefined) return [];
    const { noun } = this.words;
    const { group, total } = this.series;
    const first = i * group;
    if (group === 1) return [`${noun} ${count(first)}`];
    return [`${noun}s ${count(first)} to ${count(Math.min(first + group, total) - 1)}`];
  }

  // The nearest drawn dot: of point i, or a single stall, which has no i.
  nearest(px, py, reach = 14) {
    const { series } = this;
    const { min, max } = series.levels[0];
    const span = [this.x.invert(px - reach), this.x.invert(px + reach)];
    let best = null;
    let least = 40 ** 2;
    const consider = (x, code, i) => {
      const far = (this.x(x) - px) ** 2 + (Math.min(this.area.bottom, this.y(timeOf(code))) - py) ** 2;
      if (far < least) [least, best] = [far, { x, code, i }];
    };
    const to = Math.min(series.length, series.indexAt(span[1]) + 1);
    for (let i = series.indexAt(span[0]); i < to; i++) {
      for (const code of min === max ? [min[i]] : [min[i], max[i]])
        if (!series.isKept(code)) consider(series.x(i), code, i);
    }
    series.stallsIn(span, consider);
    return best;
  }
}

// Opacity of n overlapping dots, as little-endian RGBA words.
function shadeTable(colour, opacity) {
  const [r, g, b] = colour.match(/[\da-f]{2}/gi).map((pair) => parseInt(pair, 16));
  const table = new Uint32Array(256);
  for (let n = 1; n < 256; n++) {
    const alpha = Math.round(255 * (1 - (1 - opacity) ** n));
    table[n] = ((alpha << 24) | (b << 16) | (g << 8) | r) >>> 0;
  }
  return table;
}
