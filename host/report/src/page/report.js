// The page itself: reads the data, builds a panel for every run, and handles theme, tabs and printing.

const WORDS = {
  write: { noun: "write", quantity: "Write latency", position: "bytes written" },
  read: { noun: "read", quantity: "Read latency", position: "bytes read" },
  interval: { noun: "interval", quantity: "Interval between samples", position: "time from the start", isInterval: true },
};

function wordsFor(run) {
  const words = WORDS[run.noun] || WORDS.write;
  return run.points?.x_us ? { ...words, position: "time from the start" } : words;
}

function table(caption, rows) {
  const body = rows.map(([name, value, hint]) =>
    element("tr", {}, element("th", { scope: "row", title: hint }, name), element("td", {}, value)),
  );
  return element("table", { class: "figures" }, element("caption", {}, caption), element("tbody", {}, ...body));
}

function figures(run, words) {
  const s = run.summary;
  const t = s.latency_us || {};
  const stalls = s.stalls || {};
  const spacing = stalls.spacing_bytes || {};
  const throughput = s.throughput_bytes_per_s || {};
  const speed = [
    ["mean", rate(throughput.mean), "Payload divided by the sum of the latencies"],
    ["worst case", rate(throughput.worst_case), "Payload per write divided by the worst-case latency"],
    [`${words.noun}s per second`, isNumber(s.operations_per_s) ? significant(s.operations_per_s) : DASH],
  ];
  const tables = [
    table(words.quantity, [
      ["min", time(t.min)],
      ["mean", time(t.mean)],
      ["median", time(t.median)],
      ["p90", time(t.p90)],
      ["p99", time(t.p99)],
      ["p99.9", time(t.p99_9)],
      ["p99.99", time(t.p99_99)],
      ["worst case", time(t.worst_case)],
    ]),
    table(words.isInterval ? "Extent" : "Throughput", [
      ...(words.isInterval ? [] : speed),
      [`${words.noun}s`, count(s.writes)],
      ["payload", bytes(s.payload_bytes)],
      ["elapsed", duration(s.elapsed_us)],
    ]),
  ];
  if (!words.isInterval)
    tables.push(
      table("Stalls", [
        [`threshold (${run.threshold_is_default ? "default" : "given"})`, time(stalls.threshold_us)],
        ["stalls", count(stalls.count)],
        ["median latency", time(stalls.latency_us?.median)],
        ["median spacing", bytes(spacing.median)],
        ["most frequent spacing", bytes(spacing.mode)],
      ]),
    );
  const rows = everyNth(s.sustained_rates || []);
  if (rows.length)
    tables.push(
      table(
        "Sustained rate",
        // A buffer smaller than one write sustains nothing.
        rows.map((r) => {
          const sustained = r.rate_bytes_per_s ? rate(r.rate_bytes_per_s) : DASH;
          return [`${binaryBytes(r.buffer_bytes)} buffer`, sustained];
        }),
      ),
    );
  if (s.energy) tables.push(energyTable(run, words));
  return element("section", { class: "tables", "aria-label": "Figures" }, ...tables);
}

// The plot shows every buffer size; the table only a few.
function everyNth(rows) {
  const every = Math.max(1, Math.ceil(rows.length / 6));
  return rows.filter((_, i) => i % every === 0);
}

function cadence(run, timeline) {
  const c = run.summary.cadence;
  if (!c) return null;
  const tables = [
    table("Sample timing", [
      ["samples", count(c.samples)],
      ...(isNumber(c.period_us) ? [["period", time(c.period_us)]] : []),
      ["median interval", time(c.median_interval_us)],
      ["mean interval", time(c.mean_interval_us)],
      ["late samples", count(c.late_samples)],
      isNumber(c.room_for_samples)
        ? ["room for samples", count(c.room_for_samples), "No sample period fits"]
        : ["missing samples", missingSamples(c)],
      ["longest gap", time(c.longest_gap_us)],
      ...(c.drift_us
        ? [["drift", (c.drift_us < 0 ? "−" : "+") + time(Math.abs(c.drift_us)), "Last sample against a constant period"]]
        : []),
    ]),
  ];
  if (c.gaps?.length) tables.push(gapTable(c, timeline));
  return element("section", { class: "tables cadence", "aria-label": "Sample timing" }, ...tables);
}

// The number of missing samples, or the range that is certain.
function missingSamples(c) {
  if (isNumber(c.missing_samples)) return count(c.missing_samples);
  if (!isNumber(c.missing_samples_min)) return DASH;
  return `${count(c.missing_samples_min)} to ${count(c.missing_samples_max)}`;
}

function gapTable(cadence, timeline, most = 12) {
  const longest = [...cadence.gaps].sort((a, b) => b.length_us - a.length_us);
  const row = (g) =>
    element(
      "tr",
      {},
      element("td", {}, time(g.length_us)),
      element("td", {}, isNumber(g.missing_samples) ? count(g.missing_samples) : `up to ${count(g.room_for_samples)}`),
      element("td", {}, moment(g.at_us)),
      element(
        "td",
        {},
        timeline && isNumber(g.at_us)
          ? element("button", { type: "button", onclick: () => timeline.showAt(g.at_us) }, "Show")
          : "",
      ),
    );
  const caption = longest.length > most ? `Longest gaps (${most} of ${count(cadence.late_samples)})` : "Longest gaps";
  const head = ["Length", "Missing samples", "Time from start", ""];
  return listTable(caption, head, longest.slice(0, most).map(row));
}

function listTable(caption, head, rows) {
  return element(
    "div",
    { class: "scroll" },
    element(
      "table",
      { class: "list" },
      element("caption", {}, caption),
      element("thead", {}, element("tr", {}, ...head.map((h) => element("th", { scope: "col" }, h)))),
      element("tbody", {}, ...rows),
    ),
  );
}

// The phases of a workload, as the tables of the studies compare them.
function phases(run) {
  if (!run.phases?.length) return null;
  const head = ["Phase", "Operations", "Median latency", "Median throughput", "Min throughput", "Max throughput"];
  const row = (p) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, p.label),
      ...[
        count(p.count),
        time(p.median_us),
        rate(p.throughput_bytes_per_s),
        rate(p.throughput_bytes_per_s_min),
        rate(p.throughput_bytes_per_s_max),
      ].map((value) => element("td", {}, value)),
    );
  return listTable("Phases of the workload", head, run.phases.map(row));
}

function figure(title, part, ...tools) {
  return element(
    "figure",
    {},
    element("figcaption", {}, element("h3", {}, title), ...tools, element("p", {}, part.text)),
    part.plot?.host,
  );
}

// A plot that cannot be drawn shows the reason and leaves the others alone.
function attempt(make) {
  try {
    return make();
  } catch (error) {
    return sentence(`This plot cannot be drawn: ${error.message.replace(/\.$/, "")}.`);
  }
}

// The number of stalls, or of late samples of a recording, as the end of a sentence.
function slowOnes(run, threshold) {
  if (!isNumber(threshold)) return "";
  const { stalls, cadence } = run.summary;
  const [n, noun] = cadence ? [cadence.late_samples, "late sample"] : [stalls?.count, "stall"];
  return `, ${n ? plural(n, noun) : `no ${noun}s`} above ${time(threshold)}`;
}

function timelineFigure(run, words) {
  const part = attempt(() => {
    if (run.summary.input === "histogram") return sentence(NO_ORDER);
    if (!run.points) throw new Error("the data contain no points");
    const timeline = new Timeline(run, words);
    const { group, stalls } = timeline.series;
    const single = stalls ? `; each ${words.isInterval ? "late sample" : "stall"} is drawn individually` : "";
    const grouped =
      group > 1 ? ` Each point shows the minimum or maximum of ${group} consecutive ${words.noun}s${single}.` : "";
    const found = slowOnes(run, timeline.threshold);
    return { timeline, plot: timeline.plot, text: `${plural(timeline.series.total, words.noun)}${found}.${grouped}` };
  });
  const title = `${words.quantity} over ${run.points?.x_us ? "time" : words.position}`;
  if (!part.timeline) return { node: figure(title, part) };
  const { timeline } = part;
  const button = (name, hint, action) =>
    element("button", { type: "button", title: hint, "aria-label": hint, onclick: action }, name);
  const tools = element(
    "div",
    { class: "tools" },
    button("−", "Zoom out", () => timeline.zoomer.zoom(2)),
    button("+", "Zoom in", () => timeline.zoomer.zoom(0.5)),
    button("All", "Show all", () => timeline.zoomer.reset()),
    button("Worst case", "Show the worst case", () => timeline.showWorstCase()),
  );
  const node = figure(title, part, tools);
  const hints = [
    element("span", { class: "mouse" }, "Wheel to zoom, drag to select, shift-drag to move, double-click to reset."),
    element("span", { class: "touch" }, "Pinch to zoom, drag to move."),
  ];
  node.append(element("div", { class: "below" }, ...hints, timeline.readout));
  return { node, timeline };
}

function panelFor(run) {
  if (!run || typeof run !== "object" || !run.summary)
    return element("p", { class: "failure" }, "This run contains no summary, so there is nothing to show.");
  const words = wordsFor(run);
  const list = (items, kind, label) =>
    items?.length
      ? element("ul", { class: kind, "aria-label": label }, ...items.map((text) => element("li", {}, text)))
      : null;
  if (run.energy && !run.points) return energyPanel(run, list);
  const { node, timeline } = timelineFigure(run, words);
  if (run.energy) node.append(energyFigure(run, timeline));
  const about = (run.about || []).map(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]).flat();
  return element(
    "article",
    {},
    element("p", { class: "title" }, run.title || ""),
    element("h2", { class: "headline" }, run.headline || ""),
    list(run.warnings, "warnings", "Warnings"),
    list(run.notes, "notes", "Notes"),
    node,
    cadence(run, timeline),
    figures(run, words),
    phases(run),
    element(
      "div",
      { class: "pair" },
      figure(
        "Distribution",
        attempt(() => distribution(run, words)),
      ),
      ...(words.isInterval ? [] : [["Stall spacing", spacings], ["Backlog", backlog], ["Sustained rate", sustainedRates]]).map(
        ([title, draw]) => figure(title, attempt(() => draw(run))),
      ),
      words.isInterval ? figure("Late samples and missing samples", attempt(() => lateSamples(run))) : null,
    ),
    about.length
      ? element(
          "section",
          { class: "about", "aria-label": "About this run" },
          element("h3", {}, "About this run"),
          element("dl", {}, ...about),
        )
      : null,
  );
}

// A report of a scope's file alone.
function energyPanel(run, list) {
  return element(
    "article",
    {},
    element("p", { class: "title" }, run.title || ""),
    element("h2", { class: "headline" }, run.headline || ""),
    list(run.warnings, "warnings", "Warnings"),
    list(run.notes, "notes", "Notes"),
    energyFigure(run, null),
    element("section", { class: "tables alone", "aria-label": "Figures" }, energyTable(run, WORDS.write)),
  );
}

// Several runs: one table that compares them, whose rows lead to the runs.
function overview(runs, tabs) {
  const columns = runs.every((run) => run?.summary?.cadence) ? RECORDING_COLUMNS : WRITE_COLUMNS;
  const head = ["Run", ...columns.map(([name]) => name)].map((name) => element("th", { scope: "col" }, name));
  const row = (run, i) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, tabs[i]),
      ...columns.map(([, value]) => element("td", {}, value(run?.summary || {}))),
    );
  const whole = element(
    "table",
    { class: "list runs" },
    element("thead", {}, element("tr", {}, ...head)),
    element("tbody", {}, ...runs.map(row)),
  );
  return element("nav", { class: "scroll", "aria-label": "Runs" }, whole);
}

const WRITE_COLUMNS = [
  ["Median", (s) => time(s.latency_us?.median)],
  ["p99.9", (s) => time(s.latency_us?.p99_9)],
  ["Worst case", (s) => time(s.latency_us?.worst_case)],
  ["Mean", (s) => rate(s.throughput_bytes_per_s?.mean)],
  ["Worst-case throughput", (s) => rate(s.throughput_bytes_per_s?.worst_case)],
  [
    `Sustained, 64${NBSP}KiB`,
    (s) => rate(s.sustained_rates?.find((r) => r.buffer_bytes === 65536)?.rate_bytes_per_s),
  ],
];

const RECORDING_COLUMNS = [
  ["Samples", (s) => count(s.cadence.samples)],
  ["Median interval", (s) => time(s.cadence.median_interval_us)],
  ["Late samples", (s) => count(s.cadence.late_samples)],
  ["Missing samples", (s) => missingSamples(s.cadence)],
  ["Longest gap", (s) => time(s.cadence.longest_gap_us)],
];

function build(data) {
  const main = document.getElementById("report");
  document.getElementById("tool").textContent = data.tool || "";
  if (data.command) document.getElementById("command").append("Made by ", element("code", {}, data.command));
  const runs = Array.isArray(data.runs) ? data.runs : [];
  if (runs.length === 0) return fail("The report contains no runs.");
  document.title = runs.length === 1 ? `${runs[0]?.title || "Run"} – Cardiograph` : `${runs.length} runs – Cardiograph`;
  const holders = runs.map(() => element("div", { class: "run" }));
  // Built when first shown: building a pyramid for every run at once would delay the first one.
  const fill = (i) => holders[i].childElementCount || holders[i].append(panelFor(runs[i]));
  const show = (chosen) => {
    fill(chosen);
    holders.forEach((holder, i) => (holder.hidden = i !== chosen));
    tabs.forEach((tab, i) =>
      i === chosen ? tab.setAttribute("aria-current", "true") : tab.removeAttribute("aria-current"),
    );
  };
  const tabs = runs.map((run, i) =>
    element("button", { type: "button", class: "tab", onclick: () => show(i) }, run?.title || `Run ${i + 1}`),
  );
  if (data.comparison) main.append(comparison(runs, data.comparison));
  if (runs.length > 1) main.append(overview(runs, tabs));
  main.append(...holders);
  show(Math.min(runs.length, Math.max(1, Number(location.hash.match(/run-(\d+)/)?.[1] || 1))) - 1);
  // In print: every run, in the light theme.
  addEventListener("beforeprint", () => {
    runs.forEach((_, i) => fill(i));
    document.documentElement.classList.add("printing");
    setTheme("light", PRINT_SCALE);
  });
  addEventListener("afterprint", () => {
    document.documentElement.classList.remove("printing");
    setTheme(wantedTheme());
  });
}

const PRINT_SCALE = 3;
const systemDark = matchMedia("(prefers-color-scheme: dark)");
// Selected by the button, or by #dark or #light in the address; otherwise by the system.
let askedTheme = location.hash.match(/\b(dark|light)\b/)?.[1];

const wantedTheme = () => askedTheme || (systemDark.matches ? "dark" : "light");

function setTheme(name, print = null) {
  document.documentElement.dataset.theme = name;
  const other = name === "dark" ? "Light" : "Dark";
  const button = document.getElementById("theme");
  button.textContent = other;
  button.setAttribute("aria-label", `Switch to ${other.toLowerCase()} colours`);
  Plot.print = print;
  Plot.ink = null;
  // Printing does not wait for the next frame.
  for (const plot of Plot.all) print ? plot.drawNow() : plot.redraw();
}

function followTheme() {
  document.getElementById("theme").addEventListener("click", () => {
    askedTheme = wantedTheme() === "dark" ? "light" : "dark";
    setTheme(askedTheme);
  });
  systemDark.addEventListener("change", () => setTheme(wantedTheme()));
  setTheme(wantedTheme());
}

function fail(text) {
  document.getElementById("report").replaceChildren(element("p", { class: "failure" }, text));
}

function start() {
  followTheme();
  let data;
  try {
    data = JSON.parse(document.getElementById("data").textContent);
  } catch (error) {
    return fail(`The data of this report cannot be read: ${error.message}`);
  }
  try {
    build(data || {});
  } catch (error) {
    fail(`This report cannot be shown: ${error.message}`);
    throw error; // for the console
  }
}

start();
