// Zooming and panning along x by wheel, drag, touch and keys; all of them call setView([x0, x1]).

// A plot that slides under the pointer must not capture the scrolling of the page.
let lastScroll = -Infinity;
addEventListener("scroll", () => (lastScroll = performance.now()), { passive: true });

// `view` provides full(), get(), set([x0, x1]), least() (the smallest span) and area() (left and right in pixels).
function makeZoomable(plot, view) {
  const { host } = plot;
  const fingers = new Map();
  let drag = null;

  const toValue = (px) => {
    const { left, right } = view.area();
    const [x0, x1] = view.get();
    return x0 + ((px - left) / (right - left)) * (x1 - x0);
  };

  const set = (x0, x1) => {
    const [f0, f1] = view.full();
    const span = Math.min(f1 - f0, Math.max(view.least(), x1 - x0));
    const start = Math.min(Math.max(f0, (x0 + x1 - span) / 2), f1 - span);
    view.set([start, start + span]);
  };

  const zoom = (factor, about) => {
    const [x0, x1] = view.get();
    const centre = about ?? (x0 + x1) / 2;
    // Anchored at the cursor even if the span reaches its limits.
    const span = Math.min(view.full()[1] - view.full()[0], Math.max(view.least(), (x1 - x0) * factor));
    const start = centre - ((centre - x0) / (x1 - x0)) * span;
    set(start, start + span);
  };

  const pan = (share) => {
    const [x0, x1] = view.get();
    set(x0 + share * (x1 - x0), x1 + share * (x1 - x0));
  };

  const reset = () => set(...view.full());
  const zoomed = () => view.get()[1] - view.get()[0] < (view.full()[1] - view.full()[0]) * 0.9999;

  function onWheel(e) {
    if (performance.now() - lastScroll < 250) return;
    const sideways = Math.abs(e.deltaX) > Math.abs(e.deltaY);
    if (!zoomed() && (sideways || e.deltaY > 0)) return; // nothing to zoom or pan: let the page scroll
    e.preventDefault();
    const step = e.deltaMode === 1 ? 16 : 1;
    if (sideways) pan((e.deltaX * step) / host.clientWidth);
    else zoom(Math.exp(Math.max(-0.5, Math.min(0.5, e.deltaY * step * 0.002))), toValue(plot.at(e)[0]));
  }

  function onDown(e) {
    if (e.button !== 0 || e.target.closest("button")) return;
    const [x] = plot.at(e);
    host.setPointerCapture(e.pointerId);
    fingers.set(e.pointerId, x);
    drag = { from: x, last: x, select: e.pointerType === "mouse" && !e.shiftKey };
  }

  function onMove(e) {
    if (!drag || !fingers.has(e.pointerId)) return;
    const [x] = plot.at(e);
    if (fingers.size === 2) pinch(e.pointerId, x);
    else if (drag.select) {
      plot.busy = Math.abs(x - drag.from) > 3;
      if (plot.busy) drawSelection(drag.from, x);
    } else if (zoomed()) pan((drag.last - x) / (view.area().right - view.area().left));
    drag.last = x;
    fingers.set(e.pointerId, x);
  }

  function pinch(id, x) {
    const other = [...fingers].find(([key]) => key !== id)[1];
    const before = Math.abs(fingers.get(id) - other);
    const now = Math.abs(x - other);
    if (before > 10 && now > 10) zoom(before / now, toValue((x + other) / 2));
  }

  function onUp(e) {
    if (!fingers.delete(e.pointerId) || !drag) return;
    const { from, last, select } = drag;
    if (fingers.size === 0) drag = null;
    else drag.last = [...fingers.values()][0]; // continue from the remaining finger
    if (plot.busy) plot.clearOver();
    plot.busy = false;
    if (select && e.type === "pointerup" && Math.abs(last - from) > 3) {
      const [a, b] = [toValue(from), toValue(last)];
      set(Math.min(a, b), Math.max(a, b));
    }
  }

  function drawSelection(a, b) {
    const { left, right, top, bottom } = view.area();
    const [l, r] = [Math.max(left, Math.min(a, b)), Math.min(right, Math.max(a, b))];
    plot.clearOver();
    const ctx = plot.context(plot.over);
    ctx.fillStyle = Plot.ink.data;
    ctx.globalAlpha = 0.18;
    ctx.fillRect(l, top, r - l, bottom - top);
  }

  const keys = {
    "+": () => zoom(0.5),
    "=": () => zoom(0.5),
    "-": () => zoom(2),
    ArrowLeft: () => pan(-0.2),
    ArrowRight: () => pan(0.2),
    PageUp: () => pan(-0.9),
    PageDown: () => pan(0.9),
    0: reset,
    Escape: reset,
  };

  host.addEventListener("wheel", onWheel, { passive: false });
  host.addEventListener("pointerdown", onDown);
  host.addEventListener("pointermove", onMove);
  host.addEventListener("pointerup", onUp);
  host.addEventListener("pointercancel", onUp);
  host.addEventListener("dblclick", reset);
  host.addEventListener("keydown", (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || !keys[e.key]) return;
    e.preventDefault();
    keys[e.key]();
  });
  host.tabIndex = 0;
  host.setAttribute("role", "group");
  return { zoom, reset, set };
}
