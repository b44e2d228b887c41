// The buffer's level over time, with busy times of the card and lost samples.

/** Time in which a recording is played, in ms. */
const PLAY_MS = 2500;

/** A round number of about a fifth of `most`: 1, 2 or 5 times a power of ten. */
function step(most) {
  const power = 10 ** Math.floor(Math.log10(most / 5));
  return power * ([1, 2, 5, 10].find((factor) => factor * power >= most / 5) ?? 10);
}

/** Draws a recording on a canvas. */
class Chart {
  constructor(canvas) {
    this.canvas = canvas;
    this.share = 1;
    new ResizeObserver(() => this.draw()).observe(canvas);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.draw());
  }

  /** Shows a recording from its start on. */
  play(course, bufferBytes) {
    Object.assign(this, { course, bufferBytes });
    cancelAnimationFrame(this.frame);
    if (matchMedia('(prefers-reduced-motion: reduce)').matches) {
      this.share = 1;
      this.draw();
      return;
    }
    let begun;
    const next = (now) => {
      begun ??= now;
      this.share = Math.min((now - begun) / PLAY_MS, 1);
      this.draw();
      if (this.share < 1) this.frame = requestAnimationFrame(next);
    };
    this.frame = requestAnimationFrame(next);
  }

  draw() {
    const { canvas, course, bufferBytes } = this;
    if (!course || !canvas.clientWidth) return;
    const ratio = devicePixelRatio;
    canvas.width = canvas.clientWidth * ratio;
    canvas.height = canvas.clientHeight * ratio;
    const at = canvas.getContext('2d');
    at.scale(ratio, ratio);
    const style = getComputedStyle(canvas);
    const colour = (name) => style.getPropertyValue(`--${name}`);
    at.font = `12px ${style.fontFamily}`;
    const left = 62;
    const [width, height] = [canvas.clientWidth - left - 8, canvas.clientHeight - 24];
    const spans = course.level_bytes_max.length;
    const totalS = (spans * course.span_us) / 1e6;
    const x = (seconds) => left + (seconds / totalS) * width;
    const y = (bytes) => 8 + (height - 8) * (1 - bytes / bufferBytes);

    at.fillStyle = colour('muted');
    at.strokeStyle = colour('rule');
    at.textAlign = 'right';
    for (let part = 0; part <= 4; part += 1) {
      const bytes = (bufferBytes * part) / 4;
      at.fillText(`${+(bytes / 1024).toPrecision(3)} KiB`, left - 6, y(bytes) + 4);
      at.beginPath();
      at.moveTo(left, y(bytes));
      at.lineTo(left + width, y(bytes));
      at.stroke();
    }
    at.textAlign = 'center';
    const each = step(totalS);
    for (let time = 0; time <= totalS * 1.0001; time += each) {
      at.fillText(`${+time.toPrecision(6)} s`, Math.min(x(time), left + width - 12), height + 18);
    }

    const shownS = totalS * this.share;
    at.fillStyle = colour('second');
    for (const [atUs, busyUs] of course.busy_us) {
      if (atUs < 0 || atUs / 1e6 > shownS) continue;
      at.fillRect(x(atUs / 1e6), height + 1, Math.max((busyUs / 1e6 / totalS) * width, 1.5), 5);
    }
    at.fillStyle = colour('data');
    at.globalAlpha = 0.85;
    const columns = Math.ceil(width);
    const highest = new Float64Array(columns);
    const lost = new Uint8Array(columns);
    course.level_bytes_max.forEach((bytes, span) => {
      const column = Math.min(Math.floor((span / spans) * columns), columns - 1);
      highest[column] = Math.max(highest[column], bytes);
      lost[column] |= course.lost[span] > 0;
    });
    const wide = Math.max(Math.ceil(columns / spans), 1);
    for (let column = 0; column < columns * this.share; column += 1) {
      if (highest[column] > 0) at.fillRect(left + column, y(highest[column]), wide, y(0) - y(highest[column]));
    }
    at.globalAlpha = 1;
    at.fillStyle = colour('stall');
    for (let column = 0; column < columns * this.share; column += 1) {
      if (lost[column]) at.fillRect(left + column, 2, Math.max(wide, 2), 6);
    }
  }
}
