// Plots 2 to 5. Each takes a run and gives { plot, text }, or { text } alone where there is nothing to draw.

const sentence = (text) => ({ text });

// 2. The share of writes that take at least so long.
function distribution(run, words) {
  const curve = (run.ccdf || []).filter(([t, share]) => t > 0 && share > 0);
  if (curve.length === 0) return sentence("The trace holds no distribution.");
  const total = run.points?.total || run.summary.writes || 1;
  const least = Math.min(curve.at(-1)[1], 1 / total);
  const xRange = logRange(curve[0][0], curve.at(-1)[0]);
  const yRange = [Math.min(0.3, least / 2.5), 1];
  const markers = percentileMarkers(run.summary, total);
  let area, x, y;

  const draw = (ctx, size, ink) => {
    const yTicks = logTicks(yRange, size.h - 72, 18, percent);
    area = areaFor(ctx, size, yTicks);
    [x, y] = [logarithmic(...xRange, area.left, area.right), logarithmic(...yRange, area.bottom, area.top)];
    const xTicks = logTicks(xRange, area.right - area.left, 52, (v) => tick(v, TIME));
    drawAxes(ctx, area, ink, {
      x,
      y,
      xTicks,
      yTicks,
      xTitle: words.quantity.toLowerCase(),
      yTitle: `share of ${words.noun}s at least this long`,
    });
    ctx.strokeStyle = ink.data;
    ctx.lineWidth = 2;
    const steps = [[area.left, y(1)]];
    let level = 1;
    for (const [t, share] of curve) {
      // Just past t only the next share is left: a step, not a slope.
      steps.push([x(t), y(level)], [x(t), y(share)]);
      level = share;
    }
    steps.push([x(curve.at(-1)[0]), area.bottom]);
    stroke(ctx, steps);
    ctx.lineWidth = 1;
    for (const m of markers) dot(ctx, x(m.t), y(m.share), m.peak ? ink.peak : ink.data, ink.paper);
    // The longest first: it must not lose its place to a percentile next to it.
    placeLabels(
      ctx,
      markers.toReversed().map((m) => ({ x: x(m.t), y: y(m.share), text: `${m.name}  ${time(m.t)}` })),
      area,
      ink,
    );
  };

  const probe = (px) => {
    if (!area || px < area.left || px > area.right) return null;
    const t = x.invert(px);
    // Among equal distances the curve is read at the step the pointer is on.
    const [at, share] = curve.find(([v]) => v >= t) || curve.at(-1);
    return { x: x(at), y: y(share), lines: [time(at), `${significant(share * 100)}${NBSP}% take as long or longer`] };
  };

  const p = run.summary.write_time_us || {};
  const said = [];
  if (isNumber(p.p50)) said.push(`Half take ${time(p.p50)} or more`);
  if (isNumber(p.p99)) said.push(`one in a hundred ${time(p.p99)} or more`);
  if (isNumber(p.max)) said.push(`the longest ${time(p.max)}`);
  const text = said.length ? said.join(", ") + "." : `How often a ${words.noun} is slow.`;
  return { plot: new Plot({ label: `Distribution. ${text}`, draw, probe }), text };
}

// Percentiles beyond what so few writes can resolve would only repeat the longest.
function percentileMarkers(summary, total) {
  const p = summary.write_time_us || {};
  const all = [
    ["p50", p.p50, 0.5],
    ["p90", p.p90, 0.1],
    ["p99", p.p99, 0.01],
    ["p99.9", p.p99_9, 0.001],
    ["p99.99", p.p99_99, 0.0001],
  ];
  const markers = all
    .filter(([, t, share]) => isNumber(t) && t > 0 && share > 1 / total)
    .map(([name, t, share]) => ({ name, t, share }));
  if (isNumber(p.max) && p.max > 0) markers.push({ name: "longest", t: p.max, share: 1 / total, peak: true });
  return markers;
}

// 3. The bytes between one peak and the next.
function spacings(run) {
  const peaks = run.summary.peaks || {};
  const counts = run.spacing?.counts || [];
  const width = run.spacing?.bin_bytes;
  const total = counts.reduce((a, b) => a + b, 0);
  if (!isNumber(peaks.threshold_us)) return sentence("No threshold for peaks is set.");
  if (!peaks.count) return sentence(`No peaks above ${time(peaks.threshold_us)}.`);
  if (total === 0 || !(width > 0))
    return sentence(`${plural(peaks.count, "peak")} above ${time(peaks.threshold_us)}: too few for a spacing.`);

  const first = run.spacing.first_bin || 0;
  const shown = tailCut(counts, total);
  const beyond = counts.slice(shown).reduce((a, b) => a + b, 0);
  const { median, mode } = peaks.spacing_bytes || {};
  const marks = [
    ["median", median],
    ["mode", mode],
  ].filter(([, v]) => isNumber(v));
  const xRange = [first * width, (first + shown) * width];
  // A few bins alone would fill the plot with slabs.
  const spare = Math.max(0, 12 - shown) * width;
  xRange[0] = Math.max(0, xRange[0] - Math.ceil(spare / width / 2) * width);
  xRange[1] += Math.ceil(spare / width / 2) * width;
  const tallest = counts.reduce((a, b) => Math.max(a, b), 0);
  let area, x, y;

  const draw = (ctx, size, ink) => {
    const yTicks = countTicks(tallest, (size.h - 90) / 28);
    area = areaFor(ctx, size, yTicks, 46);
    x = linear(...xRange, area.left, area.right);
    y = linear(0, tallest * 1.04, area.bottom, area.top);
    const xTicks = fittingTicks(ctx, xRange, area.right - area.left, BYTES);
    drawAxes(ctx, area, ink, { x, y, xTicks, yTicks, xTitle: "bytes from peak to peak", yTitle: "spacings" });
    ctx.fillStyle = ink.data;
    const gap = x(width) - x(0) > 6 ? 1 : 0;
    for (let i = 0; i < shown; i++) {
      if (!counts[i]) continue;
      const left = x((first + i) * width);
      const bar = Math.max(1, x((first + i + 1) * width) - left - gap);
      const top = Math.min(area.bottom - 1, y(counts[i]));
      ctx.fillRect(left, top, bar, area.bottom - top);
    }
    drawMarks(ctx, area, ink, x, marks);
  };

  const probe = (px) => {
    if (!area) return null;
    const i = Math.floor(x.invert(px) / width) - first;
    if (!(i >= 0 && i < shown)) return null;
    const centre = x((first + i + 0.5) * width);
    return {
      x: centre,
      y: y(counts[i]),
      lines: [plural(counts[i], "spacing"), `${bytes((first + i) * width)} to ${bytes((first + i + 1) * width)}`],
    };
  };

  const said = [`${plural(total, "spacing")} between ${plural(peaks.count, "peak")}`];
  if (isNumber(median)) said.push(`median ${bytes(median)}`);
  if (isNumber(mode)) said.push(`most often ${bytes(mode)} ± ${bytes(width / 2)}`);
  const text = said.join(", ") + (beyond ? `; ${count(beyond)} beyond ${bytes(xRange[1])} not drawn.` : ".");
  return { plot: new Plot({ label: `Peak spacing. ${text}`, draw, probe }), text };
}

// A long thin tail would squeeze the body into a few pixels; it is cut well past the body and said in words.
function tailCut(counts, total) {
  let sum = 0;
  const body = counts.findIndex((n) => (sum += n) >= total * 0.98) + 1;
  return body * 2 + 10 < counts.length ? body + Math.ceil(body / 4) : counts.length;
}

function countTicks(tallest, room) {
  const ticks = linearTicks([0, Math.max(1, tallest)], Math.max(2, room), [[1, ""]]);
  return ticks.filter((t) => Number.isInteger(t.value)).map((t) => ({ value: t.value, text: count(t.value) }));
}

// Names stand above the bars, side by side as far as there is room, so they never cover one another.
function drawMarks(ctx, area, ink, x, marks) {
  const placed = marks
    .map(([name, v]) => ({ px: x(v), text: `${name} ${bytes(v)}` }))
    .filter((m) => m.px >= area.left && m.px <= area.right);
  placed.sort((a, b) => a.px - b.px);
  ctx.textBaseline = "bottom";
  placed.forEach((m, i) => {
    ctx.strokeStyle = ink.peak;
    ctx.setLineDash(m.text.startsWith("mode") ? [2, 3] : []);
    ctx.lineWidth = 1.5;
    stroke(ctx, [
      [m.px, area.top - 8],
      [m.px, area.bottom],
    ]);
    ctx.setLineDash([]);
    ctx.lineWidth = 1;
    const w = ctx.measureText(m.text).width;
    const side = placed.length > 1 && i === 0 && m.px - w - 6 > area.left ? "right" : "left";
    const flip = side === "left" && m.px + w + 6 > area.right + 14;
    ctx.textAlign = flip ? "right" : side;
    const other = placed[1 - i];
    const near = other && Math.abs(other.px - m.px) < 2 * w;
    const crowded = near && i === 0;
    halo(ctx, m.text, m.px + (ctx.textAlign === "left" ? 5 : -5), area.top - (crowded ? 14 : 0), ink.ink, ink.paper);
  });
}

// 4. What waits in RAM while the trace is replayed at one rate.
function backlog(run) {
  const b = run.backlog;
  if (!b || !b.t_us?.length) return sentence("No rate was given to replay the trace at.");
  const [ts, waiting] = [b.t_us, b.bytes];
  const most = waiting.reduce((a, v) => Math.max(a, v), 0);
  const has = isNumber(b.ram_bytes);
  // RAM far above the curve would flatten it; its line is then only named.
  const near = has && b.ram_bytes < most * 8;
  const yRange = [0, Math.max(near ? b.ram_bytes : 0, most, 1) * 1.12];
  const end = ts.at(-1) > ts[0] ? ts.at(-1) : ts[0] + 1;
  let area, x, y;

  const draw = (ctx, size, ink) => {
    const yTicks = linearTicks(yRange, (size.h - 72) / 30, RAM, true);
    area = areaFor(ctx, size, yTicks);
    [x, y] = [linear(ts[0], end, area.left, area.right), linear(...yRange, area.bottom, area.top)];
    const xTicks = fittingTicks(ctx, [ts[0], end], area.right - area.left, LONG_TIME);
    drawAxes(ctx, area, ink, { x, y, xTicks, yTicks, xTitle: "time from the start", yTitle: "waiting in RAM" });
    const line = ts.map((t, i) => [x(t), y(waiting[i])]);
    ctx.lineWidth = line.length > area.right - area.left ? 1 : 1.5;
    ctx.strokeStyle = ink.data;
    stroke(ctx, line);
    if (has && most > b.ram_bytes) drawOverflow(ctx, area, ink, line, y(b.ram_bytes));
    ctx.lineWidth = 1;
    const name = `RAM ${ram(b.ram_bytes)}`;
    if (near) reference(ctx, area, y(b.ram_bytes), name, ink.peak, ink.paper);
    else if (has) reference(ctx, area, area.top, `${name}, far above`, ink.muted, ink.paper);
  };

  const probe = (px) => {
    if (!area || px < area.left || px > area.right) return null;
    const i = nearestIndex(ts, x.invert(px));
    return { x: x(ts[i]), y: y(waiting[i]), lines: [`${inUnit(waiting[i], RAM)} waiting`, `at ${moment(ts[i])}`] };
  };

  let text = `Replayed at ${rate(b.rate_Bps)}, at most ${ram(most)} wait`;
  if (has)
    text += most > b.ram_bytes ? `: more than the ${ram(b.ram_bytes)} of RAM.` : ` in ${ram(b.ram_bytes)} of RAM.`;
  else text += ".";
  return { plot: new Plot({ label: `Backlog over time. ${text}`, draw, probe }), text };
}

function drawOverflow(ctx, area, ink, line, limit) {
  ctx.save();
  ctx.beginPath();
  ctx.rect(area.left, 0, area.right - area.left, limit);
  ctx.clip();
  ctx.strokeStyle = ink.peak;
  stroke(ctx, line);
  ctx.restore();
}

function nearestIndex(sorted, v) {
  let [lo, hi] = [0, sorted.length - 1];
  while (lo < hi) {
    const mid = (lo + hi) >> 1;
    if (sorted[mid] < v) lo = mid + 1;
    else hi = mid;
  }
  return lo > 0 && v - sorted[lo - 1] < sorted[lo] - v ? lo - 1 : lo;
}

// 5. The lossless rate that RAM buys.
function frontier(run) {
  const points = (run.summary.frontier || [])
    .filter((p) => p.ram_bytes > 0 && p.lossless_Bps > 0)
    .sort((a, b) => a.ram_bytes - b.ram_bytes);
  if (points.length === 0) return sentence("No lossless rate could be worked out.");
  const { average, guaranteed } = run.summary.throughput_Bps || {};
  const given = run.backlog && run.backlog.rate_Bps > 0 && run.backlog.ram_bytes > 0 ? run.backlog : null;
  const lines = [
    ["average", average],
    ["guaranteed", guaranteed],
  ].filter(([, v]) => isNumber(v) && v > 0);
  const values = [...points.map((p) => p.lossless_Bps), ...lines.map(([, v]) => v)];
  const yRange = logRange(Math.min(...values), Math.max(...values), 10);
  const xRange = [Math.min(1024, points[0].ram_bytes), Math.max(points.at(-1).ram_bytes, points[0].ram_bytes * 2)];
  let area, x, y;

  const draw = (ctx, size, ink) => {
    const yTicks = logTicks(yRange, size.h - 72, 20, (v) => tick(v, RATE));
    area = areaFor(ctx, size, yTicks);
    [x, y] = [logarithmic(...xRange, area.left, area.right), logarithmic(...yRange, area.bottom, area.top)];
    const xTicks = binaryTicks(xRange, area.right - area.left, 58, ram);
    drawAxes(ctx, area, ink, { x, y, xTicks, yTicks, xTitle: "RAM for the buffer", yTitle: "lossless rate" });
    for (const [name, v] of lines) {
      ctx.strokeStyle = ink.second;
      ctx.setLineDash([5, 4]);
      stroke(ctx, [
        [area.left, y(v)],
        [area.right, y(v)],
      ]);
      ctx.setLineDash([]);
    }
    const line = points.map((p) => [x(p.ram_bytes), y(p.lossless_Bps)]);
    ctx.strokeStyle = ink.data;
    ctx.lineWidth = 2;
    stroke(ctx, line);
    for (const [px, py] of line) dot(ctx, px, py, ink.data, ink.paper, 3);
    if (
      given &&
      given.ram_bytes >= xRange[0] &&
      given.ram_bytes <= xRange[1] &&
      given.rate_Bps > yRange[0] &&
      given.rate_Bps < yRange[1]
    ) {
      dot(ctx, x(given.ram_bytes), y(given.rate_Bps), ink.peak, ink.paper, 4.5);
    }
    nameLines(ctx, area, ink, y, lines);
  };

  const probe = (px) => {
    if (!area) return null;
    const p = points.reduce((a, b) => (Math.abs(x(b.ram_bytes) - px) < Math.abs(x(a.ram_bytes) - px) ? b : a));
    const share =
      isNumber(average) && average > 0
        ? [`${significant((p.lossless_Bps / average) * 100, 2)}${NBSP}% of the average`]
        : [];
    return {
      x: x(p.ram_bytes),
      y: y(p.lossless_Bps),
      lines: [rate(p.lossless_Bps), `with ${ram(p.ram_bytes)} of RAM`, ...share],
    };
  };

  const [low, high] = [points[0], points.at(-1)];
  let text = `From ${rate(low.lossless_Bps)} with ${ram(low.ram_bytes)} to ${rate(high.lossless_Bps)} with ${ram(high.ram_bytes)}.`;
  if (points.length === 1) text = `${rate(low.lossless_Bps)} with ${ram(low.ram_bytes)}.`;
  if (given) text += " The dot is the backlog's rate and RAM.";
  return { plot: new Plot({ label: `Frontier. ${text}`, draw, probe }), text };
}

// The average is the ceiling and its name goes over it, at the left where the curve is low; the guaranteed rate
// is the ground, and over it there is room at the right where the curve is high, unless the two are one.
function nameLines(ctx, area, ink, y, lines) {
  for (const [name, v] of lines) {
    const left = name === "average";
    const below = !left && lines.length > 1 && y(v) - y(lines[0][1]) < 24;
    ctx.textAlign = left ? "left" : "right";
    ctx.textBaseline = below ? "top" : "bottom";
    halo(
      ctx,
      `${name} ${rate(v)}`,
      left ? area.left + 6 : area.right - 4,
      y(v) + (below ? 5 : -3),
      ink.second,
      ink.paper,
    );
  }
}
