// Several cards compared: a table, the verdicts, and the latencies of all cards in one plot.

const SIDE_INKS = ["data", "stall", "second"];
// Every fourth side has the same ink again, with other dashes.
const SIDE_DASHES = [[], [7, 4], [2, 3]];

// A share applies from the previous latency up to its own: a step, not a slope.
function stepsOf(curve, x, y, area) {
  const steps = [];
  let from = area.left;
  for (const [t, share] of curve) {
    steps.push([from, y(share)], [x(t), y(share)]);
    from = x(t);
  }
  steps.push([from, area.bottom]);
  return steps;
}

function overlay(runs, names) {
  const all = runs.map((run, i) => ({
    name: names[i],
    curve: (run.ccdf || []).filter(([t, share]) => t > 0 && share > 0),
    ink: SIDE_INKS[i % SIDE_INKS.length],
    dash: SIDE_DASHES[Math.floor(i / SIDE_INKS.length) % SIDE_DASHES.length],
  }));
  const sides = all.filter((side) => side.curve.length > 0);
  const omitted = all.filter((side) => side.curve.length === 0).map((side) => side.name);
  if (sides.length === 0) return sentence("No card has a latency above 0.");
  const xRange = logRange(
    Math.min(...sides.map((side) => side.curve[0][0])),
    Math.max(...sides.map((side) => side.curve.at(-1)[0])),
  );
  const yRange = [Math.min(0.3, ...sides.map((side) => side.curve.at(-1)[1] / 2.5)), 1];
  let area, x, y;

  const draw = (ctx, size, ink) => {
    const yTicks = logTicks(yRange, size.h - 72, 18, percent);
    area = areaFor(ctx, size, yTicks, 46);
    [x, y] = [logarithmic(...xRange, area.left, area.right), logarithmic(...yRange, area.bottom, area.top)];
    const xTicks = logTicks(xRange, area.right - area.left, 52, (v) => tick(v, TIME));
    drawAxes(ctx, area, ink, {
      x,
      y,
      xTicks,
      yTicks,
      xTitle: "write latency",
      yTitle: "fraction of writes with at least this latency",
    });
    ctx.lineWidth = 2;
    for (const side of sides) {
      ctx.strokeStyle = ink[side.ink];
      ctx.setLineDash(side.dash);
      stroke(ctx, stepsOf(side.curve, x, y, area));
    }
    ctx.setLineDash([]);
    ctx.lineWidth = 1;
    nameSides(ctx, area, ink, sides);
  };

  const probe = (px) => {
    if (!area || px < area.left || px > area.right) return null;
    const t = x.invert(px);
    const share = (side) => side.curve.find(([latency]) => latency >= t)?.[1] ?? 0;
    const lines = sides.map((side) => `${side.name}: ${percent(Number(share(side).toPrecision(3)))}`);
    const first = share(sides[0]);
    return { x: px, y: first > 0 ? y(first) : area.bottom, lines: [`of the writes take at least ${time(t)}`, ...lines] };
  };

  const missing = omitted.length ? ` Without a latency above 0: ${omitted.join(", ")}.` : "";
  const drawn = sides.map((side) => side.name).join(", ");
  const text = `${drawn}: the lower the curve, the faster the card.${missing}`;
  return { plot: new Plot({ label: `Comparison of latencies. ${text}`, draw, probe }), text };
}

// The names of the sides stand above the plot, in their colours.
function nameSides(ctx, area, ink, sides) {
  ctx.textAlign = "left";
  ctx.textBaseline = "bottom";
  let left = area.left;
  for (const side of sides) {
    ctx.fillStyle = ink[side.ink];
    ctx.fillText(side.name, left, area.top - 6);
    left += ctx.measureText(side.name).width + 16;
  }
}

function comparison(runs, { heads, rows, sentences, notes }) {
  const body = rows.map(([name, ...values]) =>
    element("tr", {}, element("th", { scope: "row" }, name), ...values.map((value) => element("td", {}, value))),
  );
  const legend = heads.slice(1).map((name, i) => element("li", {}, `${name}: ${runs[i]?.title || ""}`));
  return element(
    "section",
    { class: "comparison", "aria-label": "Comparison" },
    element("h2", {}, "Comparison"),
    element("ul", { class: "notes", "aria-label": "Cards" }, ...legend),
    element("ul", { class: "verdicts", "aria-label": "Verdicts" }, ...sentences.map((s) => element("li", {}, s))),
    listTable("Figures", heads, body),
    notes.length
      ? element("ul", { class: "notes", "aria-label": "Notes" }, ...notes.map((note) => element("li", {}, note)))
      : null,
    figure(
      "Latencies of all cards",
      attempt(() => overlay(runs, heads.slice(1))),
    ),
  );
}
