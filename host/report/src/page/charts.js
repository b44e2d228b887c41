// Plots 2 to 5. Each takes a run and returns { plot, text }, or { text } alone if there is nothing to draw.

const sentence = (text) => ({ text });

const NO_ORDER = "A histogram does not contain the order of the writes.";

// 2. Fraction of writes with at least a given latency.
function distribution(run, words) {
  const curve = (run.ccdf || []).filter(([t, share]) => t > 0 && share > 0);
  if (run.summary.input === "histogram") return sentence("The table lists the percentiles of this histogram.");
  if (curve.length === 0) return sentence("No latency is above 0.");
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
      yTitle: `fraction of ${words.noun}s with at least this latency`,
    });
    ctx.strokeStyle = ink.data;
    ctx.lineWidth = 2;
    stroke(ctx, stepsOf(curve, x, y, area));
    ctx.lineWidth = 1;
    for (const m of markers) dot(ctx, x(m.t), y(m.share), m.stall ? ink.stall : ink.data, ink.paper);
    // The worst case first: a percentile next to it must not take its place.
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
    // The curve is read at the step under the pointer.
    const [at, share] = curve.find(([v]) => v >= t) || curve.at(-1);
    return { x: x(at), y: y(share), lines: [time(at), `${significant(share * 100)}${NBSP}% take at least this long`] };
  };

  const p = run.summary.latency_us || {};
  const parts = [];
  if (isNumber(p.median)) parts.push(`Median ${time(p.median)}`);
  if (isNumber(p.p99)) parts.push(`p99 ${time(p.p99)}`);
  if (isNumber(p.worst_case)) parts.push(`worst case ${time(p.worst_case)}`);
  const text = parts.length ? parts.join(", ") + "." : `Latency distribution of the ${words.noun}s.`;
  return { plot: new Plot({ label: `Distribution. ${text}`, draw, probe }), text };
}

// Percentiles beyond the resolution of the number of writes would only repeat the worst case.
function percentileMarkers(summary, total) {
  const p = summary.latency_us || {};
  const all = [
    ["median", p.median, 0.5],
    ["p90", p.p90, 0.1],
    ["p99", p.p99, 0.01],
    ["p99.9", p.p99_9, 0.001],
    ["p99.99", p.p99_99, 0.0001],
  ];
  const markers = all
    .filter(([, t, share]) => isNumber(t) && t > 0 && share > 1 / total)
    .map(([name, t, share]) => ({ name, t, share }));
  if (isNumber(p.worst_case) && p.worst_case > 0)
    markers.push({ name: "worst case", t: p.worst_case, share: 1 / total, stall: true });
  return markers;
}

// 3. The bytes between one stall and the next.
function spacings(run) {
  const stalls = run.summary.stalls || {};
  const counts = run.spacing?.counts || [];
  const width = run.spacing?.bin_bytes;
  const total = counts.reduce((a, b) => a + b, 0);
  if (!isNumber(stalls.threshold_us)) return sentence("No stall threshold is set.");
  if (!stalls.count) return sentence(`No stalls above ${time(stalls.threshold_us)}.`);
  if (total === 0 || !(width > 0))
    return sentence(`${plural(stalls.count, "stall")} above ${time(stalls.threshold_us)}: too few for a spacing.`);

  const first = run.spacing.first_bin || 0;
  const shown = tailCut(counts, total);
  const beyond = counts.slice(shown).reduce((a, b) => a + b, 0);
  const { median, mode } = stalls.spacing_bytes || {};
  const marks = [
    ["median", median],
    ["mode", mode],
  ].filter(([, v]) => isNumber(v));
  const xRange = [first * width, (first + shown) * width];
  // A few bins alone would fill the plot with wide slabs.
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
    drawAxes(ctx, area, ink, { x, y, xTicks, yTicks, xTitle: "bytes from stall to stall", yTitle: "spacings" });
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

  const parts = [`${plural(total, "spacing")} between ${plural(stalls.count, "stall")}`];
  if (isNumber(median)) parts.push(`median ${bytes(median)}`);
  if (isNumber(mode)) parts.push(`most often ${bytes(mode)} ± ${bytes(width / 2)}`);
  const text = parts.join(", ") + (beyond ? `; ${count(beyond)} beyond ${bytes(xRange[1])} not drawn.` : ".");
  return { plot: new Plot({ label: `Stall spacing. ${text}`, draw, probe }), text };
}

// A long thin tail would squeeze the body into a few pixels; it is cut well past the body and mentioned in the text.
function tailCut(counts, total) {
  let sum = 0;
  const body = counts.findIndex((n) => (sum += n) >= total * 0.98) + 1;
  return body * 2 + 10 < counts.length ? body + Math.ceil(body / 4) : counts.length;
}

function countTicks(tallest, room) {
  const ticks = linearTicks([0, Math.max(1, tallest)], Math.max(2, room), [[1, ""]]);
  return ticks.filter((t) => Number.isInteger(t.value)).map((t) => ({ value: t.value, text: count(t.value) }));
}

// Labels stand above the bars, side by side as far as there is room, so that they never overlap.
function drawMarks(ctx, area, ink, x, marks) {
  const placed = marks
    .map(([name, v]) => ({ px: x(v), text: `${name} ${bytes(v)}` }))
    .filter((m) => m.px >= area.left && m.px <= area.right);
  placed.sort((a, b) => a.px - b.px);
  ctx.textBaseline = "bottom";
  placed.forEach((m, i) => {
    ctx.strokeStyle = ink.stall;
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

// 4. Buffer fill level while the trace is replayed at a constant rate.
function backlog(run) {
  const b = run.backlog;
  if (run.summary.input === "histogram") return sentence(NO_ORDER);
  if (!b || !b.t_us?.length) return sentence("No backlog: the buffer is too small to sustain any rate.");
  const [ts, waiting] = [b.t_us, b.bytes];
  const most = waiting.reduce((a, v) => Math.max(a, v), 0);
  const has = isNumber(b.buffer_bytes);
  // A buffer far above the curve would flatten it; its line is then only labelled.
  const near = has && b.buffer_bytes < most * 8;
  const yRange = [0, Math.max(near ? b.buffer_bytes : 0, most, 1) * 1.12];
  const end = ts.at(-1) > ts[0] ? ts.at(-1) : ts[0] + 1;
  let area, x, y;

  const draw = (ctx, size, ink) => {
    const yTicks = linearTicks(yRange, (size.h - 72) / 30, BINARY_BYTES, true);
    area = areaFor(ctx, size, yTicks);
    [x, y] = [linear(ts[0], end, area.left, area.right), linear(...yRange, area.bottom, area.top)];
    const xTicks = fittingTicks(ctx, [ts[0], end], area.right - area.left, LONG_TIME);
    drawAxes(ctx, area, ink, { x, y, xTicks, yTicks, xTitle: "time from the start", yTitle: "backlog" });
    const line = ts.map((t, i) => [x(t), y(waiting[i])]);
    ctx.lineWidth = line.length > area.right - area.left ? 1 : 1.5;
    ctx.strokeStyle = ink.data;
    stroke(ctx, line);
    if (has && most > b.buffer_bytes) drawOverflow(ctx, area, ink, line, y(b.buffer_bytes));
    ctx.lineWidth = 1;
    const name = `buffer ${binaryBytes(b.buffer_bytes)}`;
    if (near) reference(ctx, area, y(b.buffer_bytes), name, ink.stall, ink.paper);
    else if (has) reference(ctx, area, area.top, `${name}, far above`, ink.muted, ink.paper);
  };

  const probe = (px) => {
    if (!area || px < area.left || px > area.right) return null;
    const i = nearestIndex(ts, x.invert(px));
    return {
      x: x(ts[i]),
      y: y(waiting[i]),
      lines: [`${binaryBytes(waiting[i])} waiting`, `at ${moment(ts[i])}`],
    };
  };

  let text = `Replayed at ${rate(b.rate_bytes_per_s)}, the backlog reaches ${binaryBytes(most)}`;
  const size = binaryBytes(b.buffer_bytes);
  if (has) text += most > b.buffer_bytes ? `: more than the ${size} buffer holds.` : ` of the ${size} buffer.`;
  else text += ".";
  return { plot: new Plot({ label: `Backlog over time. ${text}`, draw, probe }), text };
}

// Late samples and missing samples of a recording, counted from its start.
function lateSamples(run) {
  const { late_samples, missing_samples, missing_samples_max, room_for_samples } = run.summary.cadence;
  const { t_us: ts, late, missing } = run.late;
  if (ts.length === 0) return sentence("No sample is late, and no sample is missing.");
  // Without a certain number, the curve shows the greatest one.
  const mostMissing = missing_samples ?? missing_samples_max ?? room_for_samples;
  const noun = missing_samples === null ? "possible sample" : "missing sample";
  const most = Math.max(late.at(-1), missing.at(-1));
  const end = run.summary.elapsed_us || 1;
  const curves = [
    [`${noun}s`, missing, "stall"],
    ["late samples", late, "data"],
  ];
  let area, x, y;

  const draw = (ctx, size, ink) => {
    const yTicks = countTicks(most, (size.h - 72) / 30);
    area = areaFor(ctx, size, yTicks, 46);
    [x, y] = [linear(0, end, area.left, area.right), linear(0, most * 1.04, area.bottom, area.top)];
    const xTicks = fittingTicks(ctx, [0, end], area.right - area.left, LONG_TIME);
    drawAxes(ctx, area, ink, { x, y, xTicks, yTicks, xTitle: "time from the start", yTitle: "since the start" });
    for (const [, values, colour] of curves) {
      const steps = [[area.left, area.bottom]];
      ts.forEach((t, i) => steps.push([x(t), steps.at(-1)[1]], [x(t), y(values[i])]));
      steps.push([area.right, steps.at(-1)[1]]);
      ctx.strokeStyle = ink[colour];
      ctx.lineWidth = 2;
      stroke(ctx, steps);
      ctx.lineWidth = 1;
    }
    nameCurves(ctx, area, ink, curves);
  };

  const probe = (px) => {
    if (!area || px < area.left || px > area.right) return null;
    const i = ts.findLastIndex((t) => t <= x.invert(px));
    if (i < 0) return null;
    const lines = [plural(late[i], "late sample"), `${plural(missing[i], noun)}`, `up to ${moment(ts[i])}`];
    return { x: x(ts[i]), y: y(missing[i]), lines };
  };

  const text = `${plural(late_samples, "late sample")} with ${plural(mostMissing, noun)}.`;
  return { plot: new Plot({ label: `Late samples and missing samples over time. ${text}`, draw, probe }), text };
}

// The names of the curves stand above the plot, in their colours.
function nameCurves(ctx, area, ink, curves) {
  ctx.textAlign = "left";
  ctx.textBaseline = "bottom";
  let left = area.left;
  for (const [name, , colour] of curves) {
    ctx.fillStyle = ink[colour];
    ctx.fillText(name, left, area.top - 6);
    left += ctx.measureText(name).width + 16;
  }
}

function drawOverflow(ctx, area, ink, line, limit) {
  ctx.save();
  ctx.beginPath();
  ctx.rect(area.left, 0, area.right - area.left, limit);
  ctx.clip();
  ctx.strokeStyle = ink.stall;
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

// 5. Sustained rate versus buffer size.
function sustainedRates(run) {
  const points = (run.summary.sustained_rates || [])
    .filter((p) => p.buffer_bytes > 0 && p.rate_bytes_per_s > 0)
    .sort((a, b) => a.buffer_bytes - b.buffer_bytes);
  if (points.length === 0) return sentence("The sustained rate could not be computed.");
  const { mean, worst_case } = run.summary.throughput_bytes_per_s || {};
  const given = run.backlog && run.backlog.rate_bytes_per_s > 0 && run.backlog.buffer_bytes > 0 ? run.backlog : null;
  const lines = [
    ["mean", mean],
    ["worst case", worst_case],
  ].filter(([, v]) => isNumber(v) && v > 0);
  const values = [...points.map((p) => p.rate_bytes_per_s), ...lines.map(([, v]) => v)];
  const yRange = logRange(Math.min(...values), Math.max(...values), 10);
  const [least, most] = [points[0].buffer_bytes, points.at(-1).buffer_bytes];
  const xRange = [Math.min(1024, least), Math.max(most, least * 2)];
  let area, x, y;

  const draw = (ctx, size, ink) => {
    const yTicks = logTicks(yRange, size.h - 72, 20, (v) => tick(v, RATE));
    area = areaFor(ctx, size, yTicks);
    [x, y] = [logarithmic(...xRange, area.left, area.right), logarithmic(...yRange, area.bottom, area.top)];
    const xTicks = binaryTicks(xRange, area.right - area.left, 58, binaryBytes);
    drawAxes(ctx, area, ink, { x, y, xTicks, yTicks, xTitle: "buffer size", yTitle: "sustained rate" });
    for (const [name, v] of lines) {
      ctx.strokeStyle = ink.second;
      ctx.setLineDash([5, 4]);
      stroke(ctx, [
        [area.left, y(v)],
        [area.right, y(v)],
      ]);
      ctx.setLineDash([]);
    }
    const line = points.map((p) => [x(p.buffer_bytes), y(p.rate_bytes_per_s)]);
    ctx.strokeStyle = ink.data;
    ctx.lineWidth = 2;
    stroke(ctx, line);
    for (const [px, py] of line) dot(ctx, px, py, ink.data, ink.paper, 3);
    if (
      given &&
      given.buffer_bytes >= xRange[0] &&
      given.buffer_bytes <= xRange[1] &&
      given.rate_bytes_per_s > yRange[0] &&
      given.rate_bytes_per_s < yRange[1]
    ) {
      dot(ctx, x(given.buffer_bytes), y(given.rate_bytes_per_s), ink.stall, ink.paper, 4.5);
    }
    nameLines(ctx, area, ink, y, lines);
  };

  const probe = (px) => {
    if (!area) return null;
    const p = points.reduce((a, b) => (Math.abs(x(b.buffer_bytes) - px) < Math.abs(x(a.buffer_bytes) - px) ? b : a));
    const share =
      isNumber(mean) && mean > 0
        ? [`${significant((p.rate_bytes_per_s / mean) * 100, 2)}${NBSP}% of the mean throughput`]
        : [];
    return {
      x: x(p.buffer_bytes),
      y: y(p.rate_bytes_per_s),
      lines: [rate(p.rate_bytes_per_s), `with a ${binaryBytes(p.buffer_bytes)} buffer`, ...share],
    };
  };

  const named = (p) => `${rate(p.rate_bytes_per_s)} with a ${binaryBytes(p.buffer_bytes)} buffer`;
  let text = `From ${named(points[0])} to ${named(points.at(-1))}.`;
  if (points.length === 1) text = `${named(points[0])}.`;
  if (given) text += " The dot marks rate and buffer size of the backlog plot.";
  return { plot: new Plot({ label: `Sustained rate. ${text}`, draw, probe }), text };
}

// The mean is the ceiling and its label goes above it, at the left where the curve is low. The worst case is the floor,
// with room above it at the right where the curve is high, unless the two coincide.
function nameLines(ctx, area, ink, y, lines) {
  for (const [name, v] of lines) {
    const left = name === "mean";
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
