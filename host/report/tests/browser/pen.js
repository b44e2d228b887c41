// Records the lines, dots and texts that are drawn on each canvas; the last drawing remains as JSON in the page.
const drawn = {};
const pen = CanvasRenderingContext2D.prototype;
const before = (name, act) => {
  const real = pen[name];
  pen[name] = function (...args) {
    const label = this.canvas.getAttribute("aria-label");
    if (label) act((drawn[label] ||= { lines: [], texts: [], dots: [], path: [] }), this, args);
    return real.apply(this, args);
  };
};
before("clearRect", (d) => Object.assign(d, { lines: [], texts: [], dots: [] }));
before("beginPath", (d) => (d.path = []));
before("lineTo", (d, _, point) => d.path.push(point));
before("stroke", (d, ctx) => d.path.length && d.lines.push({ width: ctx.lineWidth, points: d.path }));
before("fillText", (d, ctx, [text, x, y]) => d.texts.push({ text, x, y, align: ctx.textAlign }));
const arc = Path2D.prototype.arc;
Path2D.prototype.arc = function (x, y, ...rest) {
  (this.dots ||= []).push([x, y]);
  return arc.call(this, x, y, ...rest);
};
before("fill", (d, ctx, [path]) => path?.dots && d.dots.push({ colour: ctx.fillStyle, points: path.dots }));
setTimeout(() => {
  // A test may press one of the page's buttons first.
  document.querySelector(document.documentElement.dataset.press)?.click();
  // Frames are not in step with the virtual time of the browser: the plots are drawn here once more.
  for (const plot of Plot.all) plot.drawNow();
  const all = Object.entries(drawn).map(([label, { lines, dots, texts }]) => ({ label, lines, dots, texts }));
  const out = document.createElement("pre");
  out.id = "drawn";
  out.textContent = JSON.stringify(all);
  document.body.append(out);
}, 3000);
