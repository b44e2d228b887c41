// A Raspberry Pi Pico in rp2040js, with a card on SPI 0, a button and a serial port.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const MISO_FLOATING = 0xff;
/** Start of the vector table: the second boot stage before it is not run. */
const VECTORS = 0x10000100;
const FLASH = 0x10000000;
const SELECT_PIN = 17;
const BUTTON_PIN = 22;
const GPIO_LOW = 0;
/** Upper bits of the watchdog's address. */
const WATCHDOG = 0x40058;

/** Loads rp2040js from a folder with node_modules. */
export function emulator(folder) {
  return createRequire(`${folder}/`)("rp2040js");
}

export class Pico {
  /** Switches a board and its card on, at `sinceNs` of the card's clock. */
  constructor({ RP2040 }, elf, card, sinceNs, onLine) {
    Object.assign(this, { RP2040, elf, card, onLine, isPressed: false });
    this.start(sinceNs);
  }

  start(sinceNs) {
    this.chip = new this.RP2040();
    this.clock = this.chip.clock;
    this.sinceNs = sinceNs;
    this.mustReset = false;
    const watchdog = this.chip.peripherals[WATCHDOG];
    watchdog.onWatchdogTrigger = () => {
      this.mustReset = true;
      // Otherwise, its alarm would fire again without end.
      watchdog.alarm.enable = false;
    };
    this.chip.logger = new Log(this.chip.core);
    loadElf(this.chip.flash, this.elf);
    this.connect(this.card);
    this.listen(this.onLine);
    this.press(this.isPressed);
    const { core, flash } = this.chip;
    const view = new DataView(flash.buffer, flash.byteOffset + VECTORS - FLASH);
    core.VTOR = VECTORS;
    core.SP = view.getUint32(0, true);
    core.PC = view.getUint32(4, true) & ~1;
  }

  /** Time on the card's clock, in ns. */
  nowNs() {
    return this.sinceNs + this.clock.nanos;
  }

  /** Presses or releases the button. */
  press(isPressed) {
    this.isPressed = isPressed;
    this.chip.gpio[BUTTON_PIN].setInputValue(!isPressed);
  }

  connect(card) {
    const spi = this.chip.spi[0];
    this.chip.gpio[SELECT_PIN].addListener((level) => card.select(level === GPIO_LOW));
    let received = MISO_FLOATING;
    const end = this.clock.createAlarm(() => spi.completeTransmit(received));
    spi.onTransmit = (byte) => {
      const byteNs = 8e9 / spi.clockFrequency;
      const startNs = this.nowNs();
      received = card.exchangeAt(startNs, startNs + byteNs, byte);
      end.schedule(byteNs);
    };
  }

  listen(onLine) {
    let line = "";
    this.chip.uart[0].onByte = (byte) => {
      if (byte === 0x0a) {
        onLine(line.trimEnd());
        line = "";
      } else {
        line += String.fromCharCode(byte);
      }
    };
  }

  /** Runs for a time in ns, or until `isDone` returns true. */
  run(ns, isDone = () => false) {
    const endNs = this.nowNs() + ns;
    while (this.nowNs() < endNs && !isDone()) {
      if (this.mustReset) this.start(this.nowNs());
      const { chip, clock } = this;
      const [cycleNs, untilNs] = [1e9 / chip.clkSys, endNs - this.sinceNs];
      for (let steps = 0; steps < 10_000 && clock.nanos < untilNs && !this.mustReset; steps++) {
        if (chip.core.waiting) {
          clock.tick(Math.min(clock.nanosToNextAlarm, untilNs - clock.nanos));
        } else {
          clock.tick(chip.core.executeInstruction() * cycleNs);
        }
      }
    }
  }
}

/** Passes errors on, and adds an instruction that rp2040js 1.4 only logs: SEV, by which an executor wakes itself. */
class Log {
  constructor(core) {
    this.core = core;
  }
  info(component, message) {
    if (message === "SEV") this.core.eventRegistered = true;
  }
  error(component, message) {
    throw new Error(`the emulated board failed in ${component}: ${message}`);
  }
  debug() {}
  warn() {}
}

/** Copies the segments of an ELF file to the flash. */
function loadElf(flash, path) {
  const elf = readFileSync(path);
  const [offset, size, count] = [elf.readUInt32LE(28), elf.readUInt16LE(42), elf.readUInt16LE(44)];
  for (let at = offset; at < offset + size * count; at += size) {
    const [type, from, , physical, bytes] = [0, 4, 8, 12, 16].map((n) => elf.readUInt32LE(at + n));
    if (type === 1 && bytes > 0) flash.set(elf.subarray(from, from + bytes), physical - FLASH);
  }
}
