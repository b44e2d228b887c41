// Plot 1, lower part: energy that the card drew, bin by bin, on the time axis of the writes.

const SHARED_LEFT = 68; // wider than any label, so that both plots share one axis

// The time span of the writes, and of the energy around them as far as the writes stay in sight.
function sharedSpan(energy, end) {
  if (!energy) return [0, end];
  const margin = end / 4;
  return [Math.max(Math.min(0, energy.start_us), -margin), Math.min(Math.max(end, energy.end_us), end + margin)];
}

class EnergyPlot {
  // Follows the timeline if there is one, and zooms on its own otherwise.
  constructor(run, timeline) {
    const { start_us, end_us, bin_us, bins_uJ } = run.energy;
    [this.start, this.end, this.width] = [start_us, end_us, bin_us];
    this.bins = decodeFloats(bins_uJ);
    if (this.bins.length === 0) throw new Error("the energy trace is empty");
    const [least, most] = this.bins.reduce(([a, b], v) => [Math.min(a, v), Math.max(b, v)], [0, 0]);
    this.range = [least, most > least ? most + (most - least) * 0.04 : 1];
    this.full = timeline ? timeline.full : [start_us, end_us];
    this.view = this.full;
    this.timeline = timeline;
    this.binName = tick(bin_us, LONG_TIME);
    this.plot = new Plot({
      label: `Energy in each ${this.binName} over time`,
      draw: (ctx, size, ink) => this.draw(ctx, size, ink),
      probe: (x) => this.probe(x),
    });
    timeline?.below.push(this.plot);
    this.zoomer = makeZoomable(this.plot, {
      full: () => this.full,
      get: () => this.shown(),
      set: (view) => this.setView(view),
      least: () => Math.min(this.width * 8, this.full[1] - this.full[0]),
      area: () => this.area,
    });
    this.plot.host.classList.add("low", "zoomable");
    this.plot.host.setAttribute("aria-label", "Plot: plus and minus zoom, arrows move, 0 shows all");
  }

  shown() {
    return this.timeline ? this.timeline.view : this.view;
  }

  setView(view) {
    if (this.timeline) return this.timeline.setView(view);
    this.view = view;
    this.plot.redraw();
  }

  draw(ctx, size, ink) {
    const yTicks = linearTicks(this.range, (size.h - 72) / 28, ENERGY);
    const area = (this.area = areaFor(ctx, size, yTicks, 28, SHARED_LEFT));
    const view = this.shown();
    this.x = linear(...view, area.left, area.right);
    this.y = linear(...this.range, area.bottom, area.top);
    const xTicks = fittingTicks(ctx, view, area.right - area.left, axisUnits(view));
    drawAxes(ctx, area, ink, {
      x: this.x,
      y: this.y,
      xTicks,
      yTicks,
      xTitle: this.timeline ? "time from the start" : "time of the scope",
      yTitle: `energy in ${this.binName}`,
    });
    const perBin = this.x(this.width) - this.x(0);
    if (perBin >= 1) this.drawBars(ctx, area, ink, view, perBin);
    else this.drawColumns(ctx, area, ink, 1 / perBin);
  }

  // A bin takes a pixel or more: each is drawn as a bar.
  drawBars(ctx, area, ink, view, perBin) {
    ctx.fillStyle = ink.second;
    const gap = perBin > 6 ? 1 : 0;
    const from = Math.max(0, Math.floor((view[0] - this.start) / this.width));
    const to = Math.min(this.bins.length, Math.ceil((view[1] - this.start) / this.width));
    for (let i = from; i < to; i++) {
      const left = Math.max(area.left, this.x(this.start + i * this.width));
      const right = Math.min(area.right, this.x(Math.min(this.end, this.start + (i + 1) * this.width)));
      this.bar(ctx, left, Math.max(right - left - gap, 0.5), 0, this.bins[i]);
    }
  }

  // Several bins share a pixel: full colour up to their mean, and lighter up to their maximum, so that no maximum is
  // lost and the area still shows the energy.
  drawColumns(ctx, area, ink, perPixel) {
    ctx.fillStyle = ink.second;
    for (let px = area.left; px < area.right; px++) {
      const first = (this.x.invert(px) - this.start) / this.width;
      const from = Math.max(0, Math.floor(first));
      const to = Math.min(this.bins.length, Math.max(Math.floor(first) + 1, Math.floor(first + perPixel)));
      if (from >= to) continue;
      let [sum, most] = [0, -Infinity];
      for (let i = from; i < to; i++) {
        sum += this.bins[i];
        most = Math.max(most, this.bins[i]);
      }
      const mean = sum / (to - from);
      ctx.globalAlpha = 1;
      this.bar(ctx, px, 1, 0, mean);
      ctx.globalAlpha = 0.45;
      this.bar(ctx, px, 1, Math.max(0, mean), most);
    }
    ctx.globalAlpha = 1;
  }

  bar(ctx, left, width, from, to) {
    const [a, b] = [this.y(from), this.y(to)];
    if (a !== b) ctx.fillRect(left, Math.min(a, b), width, Math.abs(a - b));
  }

  probe(px) {
    const at = Math.floor((this.x.invert(px) - this.start) / this.width);
    if (!this.area || px < this.area.left || px > this.area.right || !(at >= 0 && at < this.bins.length)) return null;
    // The last bin may be filled only partly.
    const from = this.start + at * this.width;
    const long = Math.min(this.width, this.end - from) || this.width;
    // If bins share a pixel, the maximum nearby is the visible one.
    const reach = Math.round(2 / (this.x(this.width) - this.x(0)));
    let i = at;
    for (let k = Math.max(0, at - reach); k < Math.min(this.bins.length, at + reach + 1); k++)
      if (this.bins[k] > this.bins[i]) i = k;
    const start = this.start + i * this.width;
    return {
      x: this.x(start + this.width / 2),
      y: this.y(this.bins[i]),
      lines: [
        `${energy(this.bins[i])} in ${this.binName}`,
        `${power((this.bins[i] / (i === at ? long : this.width)) * 1e3)}`,
        `at ${axisTime(start)}`,
      ],
    };
  }
}

const percentOf = (share) => (isNumber(share) ? significant(share * 100) + NBSP + "%" : DASH);

function energyFigure(run, timeline) {
  const s = run.summary.energy;
  const result = attempt(() => {
    const { plot } = new EnergyPlot(run, timeline);
    const parts = [`${energy(s.total_uJ)} in ${duration(s.duration_us)}`];
    const { energy_ratio, time_ratio } = s.in_stalls;
    if (isNumber(energy_ratio) && isNumber(time_ratio) && run.summary.stalls.count)
      parts.push(`stalls use ${percentOf(energy_ratio)} of the trace's energy in ${percentOf(time_ratio)} of its time`);
    return { plot, text: parts.join("; ") + "." };
  });
  return figure("Energy", result);
}

function energyTable(run, words) {
  const s = run.summary.energy;
  const ofCovered = "Of the part of the trace that the scope covers";
  const all = [
    ["total", energy(s.total_uJ)],
    ["mean power", power(s.power_mW.mean)],
    [`peak over ${tick(s.bin_us, LONG_TIME)}`, power(s.power_mW.max)],
  ];
  const ofWrites = [
    [`power during ${words.noun}s`, power(s.power_mW.in_writes)],
    [`power between ${words.noun}s`, power(s.power_mW.between_writes)],
    [`per ${words.noun}`, energy(s.per_write_uJ)],
    ["per kB of payload", energy(s.per_kB_uJ)],
    [`energy in ${words.noun}s`, percentOf(s.in_writes.energy_ratio), ofCovered],
    [`time in ${words.noun}s`, percentOf(s.in_writes.time_ratio), ofCovered],
    ["energy in stalls", percentOf(s.in_stalls.energy_ratio), ofCovered],
    ["time in stalls", percentOf(s.in_stalls.time_ratio), ofCovered],
  ];
  return table("Energy", isNumber(s.trace_covered_ratio) ? [...all, ...ofWrites] : all);
}
