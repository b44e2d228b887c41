// Runs the firmware on an emulated Raspberry Pi Pico with a simulated card.
//
//   node run.mjs FOLDER PROFILE stalls COUNT    records until the card has stalled COUNT times, then for a second
//   node run.mjs FOLDER PROFILE cuts COUNT SEED cuts the power COUNT times, at moments that the seed determines
//   node run.mjs FOLDER PROFILE repairs         starts without a card, then without a file system; pulls the card
//
// FOLDER contains node_modules, card.wasm, firmware.elf, card.img (blocks of the new card) and card.state (its flash).
// All tasks write images of the card and result.json to FOLDER.

import { readFileSync, writeFileSync } from "node:fs";
import { Card, load } from "./card.mjs";
import { Pico, emulator } from "./pico.mjs";

const SECOND_NS = 1e9;
/** Time limit of each step, in s of the board's clock. */
const STEP_S_MAX = 1000;
/** Time after the last stall, in which the ring empties. */
const AFTER_NS = SECOND_NS;
/** Time without power. */
const OFF_NS = SECOND_NS / 10;
/** Longest recording before a power cut. */
const RECORDING_NS_MAX = 5 * SECOND_NS;

const [folder, profile, task, count, seed] = process.argv.slice(2);
const image = readFileSync(`${folder}/card.img`);
const state = readFileSync(`${folder}/card.state`);
const card = Card.fromState(load(`${folder}/card.wasm`), profile, image.length, state);
const chips = emulator(folder);

/** Starts the board; `lines` collects its reports. */
function start(sinceNs) {
  const lines = [];
  const onLine = (line) => {
    console.log(`${(pico.nowNs() / SECOND_NS).toFixed(3)} s: ${line}`);
    lines.push(line);
  };
  const pico = new Pico(chips, `${folder}/firmware.elf`, card, sinceNs, onLine);
  return { pico, lines };
}

/** Runs until a condition holds. */
function runUntil(pico, what, isDone) {
  pico.run(STEP_S_MAX * SECOND_NS, isDone);
  if (!isDone()) throw new Error(`${what} did not happen within ${STEP_S_MAX} s`);
}

function runStalls(count) {
  card.store(image);
  const { pico, lines } = start(0);
  runUntil(pico, `stall ${count}`, () => card.stalls().count >= count);
  pico.run(AFTER_NS);
  const pressedUs = pico.clock.nanos / 1000;
  pico.press(true);
  runUntil(pico, "the end of the recording", () => lines.at(-1)?.startsWith("stopped"));
  save("recorded.img");
  return { pressed_us: pressedUs, files: recordings(lines), ...card.stalls() };
}

function runCuts(count, seed) {
  card.store(image);
  const random = splitMix(BigInt(seed));
  const cuts = [];
  let board = start(0);
  for (let cut = 1; cut <= count; cut++) {
    const { pico } = board;
    const file = runToRecording(board);
    const beganUs = pico.clock.nanos / 1000;
    pico.run(random() * RECORDING_NS_MAX);
    cuts.push({ file, began_us: beganUs, cut_us: pico.clock.nanos / 1000 });
    card.setPower(pico.nowNs(), false);
    console.log(`${(pico.nowNs() / SECOND_NS).toFixed(3)} s: power cut ${cut}`);
    const onNs = pico.nowNs() + OFF_NS;
    card.setPower(onNs, true);
    board = start(onNs);
    runToRecording(board);
    save(`cut-${cut}.img`);
  }
  return { cuts };
}

function runRepairs() {
  const setPower = (isOn) => card.setPower(pico.nowNs(), isOn);
  const { pico, lines } = start(0);
  const runToLine = (text) => {
    lines.length = 0;
    runUntil(pico, `"${text}"`, () => lines.some((line) => line.includes(text)));
  };
  setPower(false);
  runToLine("no card responds");
  setPower(true);
  runToLine("no file system");
  card.store(image);
  runToLine("recording to REC00000/REC00001.BIN");
  pico.run(2 * SECOND_NS);
  setPower(false);
  runToLine("the card does not respond");
  setPower(true);
  runToLine("recording to REC00000/REC00002.BIN");
  pico.run(2 * SECOND_NS);
  pico.press(true);
  runToLine("stopped");
  save("recorded.img");
  return {};
}

/** Runs until the board records; returns the path of its file. */
function runToRecording({ pico, lines }) {
  const find = () => recordings(lines)[0];
  runUntil(pico, "the start of the recording", find);
  return find();
}

/** Returns the paths of the files that the board has recorded to. */
function recordings(lines) {
  const prefix = "recording to ";
  return lines.filter((line) => line.startsWith(prefix)).map((line) => line.slice(prefix.length));
}

function save(name) {
  writeFileSync(`${folder}/${name}`, card.image(image.length));
}

/** Random numbers from 0 to 1, by SplitMix64. */
function splitMix(state) {
  const mix = (z, shift, factor) => BigInt.asUintN(64, (z ^ (z >> shift)) * factor);
  return () => {
    state = BigInt.asUintN(64, state + 0x9e3779b97f4a7c15n);
    const z = mix(mix(state, 30n, 0xbf58476d1ce4e5b9n), 27n, 0x94d049bb133111ebn);
    return Number((z ^ (z >> 31n)) >> 11n) / 2 ** 53;
  };
}

const tasks = {
  stalls: () => runStalls(Number(count)),
  cuts: () => runCuts(Number(count), seed),
  repairs: runRepairs,
};
writeFileSync(`${folder}/result.json`, JSON.stringify(tasks[task]()));
