// Pans the first plot at every zoom and measures the script that draws it.
const [plot] = Plot.all;
const press = (key) => plot.host.dispatchEvent(new KeyboardEvent("keydown", { key }));
const levels = [];
for (let zoom = 1; zoom <= 2 ** 14; zoom *= 4) {
  const times = [];
  for (let i = 0; i < 60; i++) {
    const begin = performance.now();
    press(i % 20 < 10 ? "ArrowRight" : "ArrowLeft");
    plot.drawNow();
    times.push(performance.now() - begin);
  }
  times.sort((a, b) => a - b);
  levels.push({ zoom, median_ms: times[30], worst_ms: times[59] });
  press("+");
  press("+");
}
const out = document.createElement("pre");
out.id = "pans";
out.textContent = JSON.stringify(levels);
document.body.append(out);
