// Common parts of all plots: a canvas sharp on any screen, colours from the style sheet, axes, labels and a tooltip.

const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';

function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.filter((c) => c !== null && c !== undefined));
  return node;
}

function readInks() {
  const style = getComputedStyle(document.documentElement);
  const names = ["paper", "ink", "muted", "rule", "data", "stall", "second"];
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue("--" + name).trim()]));
}

class Plot {
  static all = new Set();
  static print = null; // drawing scale while printing

  // draw(ctx, size, ink) paints; probe(x, y) returns the item under the pointer as { x, y, lines }, or null.
  constructor({ label, draw, probe }) {
    this.paint = draw;
    this.probe = probe;
    this.base = element("canvas", { role: "img", "aria-label": label });
    this.over = element("canvas", { class: "over", "aria-hidden": "true" });
    this.tip = element("div", { class: "tip", hidden: "" });
    this.host = element("div", { class: "plot" }, this.base, this.over, this.tip);
    this.host.addEventListener("pointermove", (e) => this.hover(e));
    this.host.addEventListener("pointerdown", (e) => this.hover(e));
    // A touch pointer leaves as soon as the finger is lifted; its tooltip stays.
    this.host.addEventListener("pointerleave", (e) => e.pointerType === "touch" || this.clearOver());
    new ResizeObserver(() => this.redraw()).observe(this.host);
    Plot.all.add(this);
  }

  redraw() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.drawNow();
    });
  }

  drawNow() {
    const [w, h] = [this.host.clientWidth, this.host.clientHeight];
    if (w === 0 || h === 0) return;
    const scale = Plot.print || window.devicePixelRatio || 1;
    for (const canvas of [this.base, this.over]) {
      const [pw, ph] = [Math.round(w * scale), Math.round(h * scale)];
      // Setting a size clears and reallocates, so only when it differs.
      if (canvas.width !== pw) canvas.width = pw;
      if (canvas.height !== ph) canvas.height = ph;
    }
    this.size = { w, h, scale };
    this.clearOver();
    const ctx = this.context(this.base);
    ctx.clearRect(0, 0, w, h);
    this.paint(ctx, this.size, Plot.ink || (Plot.ink = readInks()));
  }

  context(canvas) {
    const ctx = canvas.getContext("2d");
    ctx.setTransform(this.size.scale, 0, 0, this.size.scale, 0, 0);
    ctx.font = FONT;
    ctx.lineWidth = 1;
    ctx.lineJoin = "round";
    ctx.setLineDash([]);
    ctx.globalAlpha = 1;
    return ctx;
  }

  at(event) {
    const box = this.host.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  clearOver() {
    this.tip.hidden = true;
    if (!this.size) return;
    this.context(this.over).clearRect(0, 0, this.size.w, this.size.h);
  }

  hover(event) {
    if (!this.size || this.busy) return;
    const hit = this.probe?.(...this.at(event));
    this.clearOver();
    if (hit) this.point(hit);
  }

  point({ x, y, lines }) {
    const ctx = this.context(this.over);
    ctx.strokeStyle = Plot.ink.ink;
    ctx.lineWidth = 1.5;
    ctx.beginPath();
    ctx.arc(x, y, 5, 0, 2 * Math.PI);
    ctx.stroke();
    this.tip.replaceChildren(...lines.map((line) => element("div", {}, line)));
    this.tip.hidden = false;
    const [w, h] = [this.tip.offsetWidth, this.tip.offsetHeight];
    const left = x + 12 + w > this.size.w ? x - 12 - w : x + 12;
    this.tip.style.left = Math.max(0, Math.min(left, this.size.w - w)) + "px";
    this.tip.style.top = Math.max(0, Math.min(y - h - 8, this.size.h - h)) + "px";
  }
}

// Scales: value to pixel and back.

function linear(d0, d1, r0, r1) {
  const slope = (r1 - r0) / (d1 - d0);
  return Object.assign((v) => r0 + (v - d0) * slope, { invert: (p) => d0 + (p - r0) / slope });
}

function logarithmic(d0, d1, r0, r1) {
  const inner = linear(Math.log(d0), Math.log(d1), r0, r1);
  return Object.assign((v) => inner(Math.log(v)), { invert: (p) => Math.exp(inner.invert(p)) });
}

// A range with some width even if all values are equal.
function logRange(lo, hi, least = 4) {
  const pad = Math.max(1.2, Math.sqrt(least / (hi / lo)));
  return [lo / pad, hi * pad];
}

// Ticks: { value, text }; minor ticks have no text.

function logTicks([lo, hi], pixels, gap, text) {
  const decade = pixels / Math.log10(hi / lo);
  const labelled = decade * 0.3 > gap ? [1, 2, 5] : decade * 0.47 > gap ? [1, 3] : [1];
  const every = Math.max(1, Math.ceil(gap / decade));
  const ticks = [];
  for (let e = Math.floor(Math.log10(lo)); e <= Math.ceil(Math.log10(hi)); e++) {
    for (let m = 1; m < 10; m++) {
      const value = Number((m * 10 ** e).toPrecision(3));
      if (value < lo || value > hi) continue;
      if (labelled.includes(m) && e % every === 0) ticks.push({ value, text: text(value) });
      else if (m === 1 || decade > 40) ticks.push({ value });
    }
  }
  return ticks;
}

function linearTicks([lo, hi], room, units, binary = false) {
  const [factor, name] = unitFor(Math.max(Math.abs(lo), Math.abs(hi)), units);
  const rough = (hi - lo) / factor / Math.max(1, room);
  let step = 2 ** Math.ceil(Math.log2(rough));
  if (!binary) {
    const power = 10 ** Math.floor(Math.log10(rough));
    step = power * [1, 2, 5, 10].find((m) => m * power >= rough * 0.999);
  }
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const ticks = [];
  for (let i = Math.ceil(lo / factor / step - 1e-9); i * step * factor <= hi * (1 + 1e-12); i++) {
    const number = binary ? String(i * step) : (i * step).toFixed(Math.min(decimals, 9));
    const text = i === 0 ? "0" : group(number) + NBSP + name;
    ticks.push({ value: i * step * factor, text });
  }
  return ticks;
}

// Along x, the width of the labels determines how many fit.
function fittingTicks(ctx, range, width, units) {
  for (let room = width / 56; ; room *= 0.8) {
    const ticks = linearTicks(range, room, units);
    const widest = Math.max(0, ...ticks.map((t) => ctx.measureText(t.text).width));
    if (ticks.length < 3 || (widest + 24) * (range[1] - range[0]) <= width * (ticks[1].value - ticks[0].value))
      return ticks;
  }
}

function binaryTicks([lo, hi], pixels, gap, text) {
  const octave = pixels / Math.log2(hi / lo);
  const every = [1, 2, 5, 10].find((k) => k * octave >= gap) || 20;
  const ticks = [];
  for (let e = Math.ceil(Math.log2(lo) - 1e-9); e <= Math.log2(hi) + 1e-9; e++) {
    ticks.push(e % every === 0 ? { value: 2 ** e, text: text(2 ** e) } : { value: 2 ** e });
  }
  return ticks;
}

// The widest label sets the left margin, so that no label is clipped.
function areaFor(ctx, size, yTicks, top = 28, least = 0) {
  ctx.font = FONT;
  const widest = Math.ceil(Math.max(24, ...yTicks.map((t) => (t.text ? ctx.measureText(t.text).width : 0)))) + 12;
  return { left: Math.max(least, widest), top, right: size.w - 16, bottom: size.h - 44 };
}

function drawAxes(ctx, area, ink, { x, y, xTicks, yTicks, xTitle, yTitle }) {
  ctx.font = FONT;
  ctx.textBaseline = "middle";
  ctx.textAlign = "right";
  for (const t of yTicks) {
    const py = Math.round(y(t.value)) + 0.5;
    ctx.strokeStyle = ink.rule;
    ctx.fillStyle = ink.muted;
    stroke(ctx, [
      [t.text ? area.left : area.left - 3, py],
      [t.text ? area.right : area.left, py],
    ]);
    if (t.text) ctx.fillText(t.text, area.left - 8, py);
  }
  ctx.textBaseline = "top";
  ctx.textAlign = "center";
  let taken = -Infinity;
  for (const t of xTicks) {
    const px = Math.round(x(t.value)) + 0.5;
    ctx.strokeStyle = ink.muted;
    stroke(ctx, [
      [px, area.bottom],
      [px, area.bottom + (t.text ? 6 : 3)],
    ]);
    if (!t.text) continue;
    const half = ctx.measureText(t.text).width / 2;
    const centre = Math.min(px, area.right + 16 - half);
    if (centre - half < taken + 8) continue;
    ctx.fillText(t.text, centre, area.bottom + 9);
    taken = centre + half;
  }
  ctx.strokeStyle = ink.muted;
  stroke(ctx, [
    [area.left, area.bottom + 0.5],
    [area.right, area.bottom + 0.5],
  ]);
  ctx.fillStyle = ink.muted;
  ctx.textAlign = "left";
  ctx.fillText(yTitle, 0, 0);
  ctx.textAlign = "right";
  ctx.textBaseline = "bottom";
  ctx.fillText(xTitle, area.right, area.bottom + 42);
}

function stroke(ctx, vertices) {
  ctx.beginPath();
  for (const [x, y] of vertices) ctx.lineTo(x, y);
  ctx.stroke();
}

function dot(ctx, x, y, fill, ring, radius = 3.5) {
  ctx.beginPath();
  ctx.arc(x, y, radius, 0, 2 * Math.PI);
  ctx.fillStyle = fill;
  ctx.fill();
  ctx.strokeStyle = ring;
  ctx.lineWidth = 1.5;
  ctx.stroke();
  ctx.lineWidth = 1;
}

// A halo in the colour of the paper keeps text over data readable.
function halo(ctx, text, x, y, fill, paper) {
  ctx.strokeStyle = paper;
  ctx.lineWidth = 4;
  ctx.strokeText(text, x, y);
  ctx.lineWidth = 1;
  ctx.fillStyle = fill;
  ctx.fillText(text, x, y);
}

// A dashed reference line across the plot with its label above it.
function reference(ctx, area, py, text, colour, paper) {
  ctx.strokeStyle = colour;
  ctx.setLineDash([5, 4]);
  stroke(ctx, [
    [area.left, Math.round(py) + 0.5],
    [area.right, Math.round(py) + 0.5],
  ]);
  ctx.setLineDash([]);
  ctx.textAlign = "right";
  ctx.textBaseline = "bottom";
  halo(ctx, text, area.right - 4, py - 3, colour, paper);
}

// Each label takes the first position around its point at which it overlaps no other.
function placeLabels(ctx, labels, area, ink) {
  const taken = [];
  ctx.textBaseline = "middle";
  ctx.textAlign = "left";
  for (const { x, y, text } of labels) {
    const w = ctx.measureText(text).width;
    const offsets = [
      [9, -9],
      [9, 0],
      [9, -18],
      [-9 - w, 9],
      [-9 - w, 0],
      [-9 - w, 20],
      [9, 12],
      [-w / 2, -18],
    ];
    for (const [dx, dy] of offsets) {
      const box = { l: x + dx - 3, r: x + dx + w + 3, t: y + dy - 8, b: y + dy + 8 };
      const inside = box.l >= area.left && box.r <= area.right + 14 && box.t >= area.top - 12 && box.b <= area.bottom;
      if (!inside || taken.some((o) => box.l < o.r && o.l < box.r && box.t < o.b && o.t < box.b)) continue;
      taken.push(box);
      halo(ctx, text, x + dx, y + dy, ink.ink, ink.paper);
      break;
    }
  }
}
