"use strict";
// Numbers as text: three significant digits, suitable units, a dash for unknown values.

const DASH = "–";
const NBSP = "\u00a0";

const TIME = [
  [1e-3, "ns"],
  [1, "µs"],
  [1e3, "ms"],
  [1e6, "s"],
];
const LONG_TIME = [...TIME, [6e7, "min"], [3.6e9, "h"]];
const BYTES = [
  [1, "B"],
  [1e3, "kB"],
  [1e6, "MB"],
  [1e9, "GB"],
  [1e12, "TB"],
];
const BINARY_BYTES = [
  [1, "B"],
  [1024, "KiB"],
  [1048576, "MiB"],
  [1073741824, "GiB"],
];
const RATE = BYTES.map(([factor, name]) => [factor, name + "/s"]);

const ENERGY = [
  [1e-3, "nJ"],
  [1, "µJ"],
  [1e3, "mJ"],
  [1e6, "J"],
];
const POWER = [
  [1e-3, "µW"],
  [1, "mW"],
  [1e3, "W"],
];

const isNumber = (v) => typeof v === "number" && Number.isFinite(v);

function group(digits) {
  const [whole, rest] = digits.split(".");
  const grouped = whole.length > 3 ? whole.replace(/\B(?=(\d{3})+$)/g, ",") : whole;
  return rest ? grouped + "." + rest : grouped;
}

// As units.rs: without trailing zeros, 17 ms and not 17.0 ms.
// toPrecision would switch to exponents and round 999.7 up without changing its digits.
function significant(v, digits = 3) {
  if (v === 0) return "0";
  const rounded = Number(v.toPrecision(digits));
  const decimals = Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(rounded))));
  const text = rounded.toFixed(Math.min(decimals, 12));
  return group(text.includes(".") ? text.replace(/\.?0+$/, "") : text);
}

// The unit is chosen after rounding, so that 999.7 µs reads 1 ms.
function unitFor(v, units) {
  const size = Math.max(Math.abs(v), Math.abs(Number(v.toPrecision(3))));
  let unit = units[0];
  for (const u of units) if (size >= u[0]) unit = u;
  return unit;
}

function inUnit(v, units, digits = 3) {
  if (!isNumber(v)) return DASH;
  if (v === 0) return "0" + NBSP + (units === TIME ? "µs" : units[0][1]);
  const [factor, name] = unitFor(v, units);
  // Whole bytes and powers of two need no decimals.
  const exact = Number.isInteger(v / factor) && (units === BINARY_BYTES || name === "B");
  return (exact ? group(String(v / factor)) : significant(v / factor, digits)) + NBSP + name;
}

const time = (us) => inUnit(us, TIME);
const bytes = (b) => inUnit(b, BYTES);
const binaryBytes = (b) => inUnit(b, BINARY_BYTES);
const rate = (r) => inUnit(r, RATE);
const energy = (uj) => inUnit(uj, ENERGY);
const power = (mw) => inUnit(mw, POWER);
const count = (n) => (isNumber(n) ? group(String(Math.round(n))) : DASH);
const exactBytes = (b) => group(String(Math.round(b))) + NBSP + "B";

function duration(us) {
  if (!isNumber(us) || us < 1.2e8) return time(us);
  const s = Math.round(us / 1e6);
  const [h, m] = [Math.floor(s / 3600), Math.floor(s / 60) % 60];
  return h ? `${h}${NBSP}h ${m}${NBSP}min` : `${m}${NBSP}min ${s % 60}${NBSP}s`;
}

// A time within a run: 7.02 s, 4:23.43, 1:05:32.64.
function moment(us) {
  if (!isNumber(us) || us < 6e7) return inUnit(us, TIME, 4);
  const hundredths = Math.round(us / 1e4);
  const [h, m] = [Math.floor(hundredths / 360000), Math.floor(hundredths / 6000) % 60];
  const two = (n) => String(n).padStart(2, "0");
  const rest = `${two(Math.floor(hundredths / 100) % 60)}.${two(hundredths % 100)}`;
  return h ? `${h}:${two(m)}:${rest}` : `${m}:${rest}`;
}

// On a zoomed time axis, minutes would need too many decimals; the tooltip uses the units of the axis.
const axisUnits = ([from, to]) => (to - from < 1.2e8 ? TIME : LONG_TIME);
const axisTime = (us) => inUnit(us, TIME, 6);

// Ticks have more digits than a table.
function tick(v, units) {
  const [factor, name] = unitFor(v, units);
  return group(String(Number((v / factor).toPrecision(6)))) + NBSP + name;
}

function percent(share) {
  return group(String(Number((share * 100).toPrecision(6)))) + NBSP + "%";
}

const plural = (n, noun) => `${count(n)} ${noun}${n === 1 ? "" : "s"}`;
