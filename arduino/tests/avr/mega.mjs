// Runs a program on an emulated ATmega2560 and prints what it sends over its first serial port, until the line that ends a
// trace. usage: node mega.mjs FLASH.bin FOLDER_WITH_node_modules

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const [program, modules] = process.argv.slice(2);
const { avrInstruction, AVRTimer, AVRUSART, CPU, timer0Config, usart0Config } = createRequire(`${modules}/`)("avr8js");

const CLOCK_HZ = 16e6;
const SECONDS_MAX = 60;
const FLASH_BYTES = 256 << 10;
const RAM_BYTES = 8192;
// Interrupt vectors of the ATmega2560, as word addresses; the defaults are those of the ATmega328P.
const TIMER0 = { ...timer0Config, compAInterrupt: 0x2a, compBInterrupt: 0x2c, ovfInterrupt: 0x2e };
const USART0 = { ...usart0Config, rxCompleteInterrupt: 0x32, dataRegisterEmptyInterrupt: 0x34, txCompleteInterrupt: 0x36 };

const flash = new Uint8Array(FLASH_BYTES).fill(0xff);
flash.set(readFileSync(program));
// The emulator adds the 256 bytes of registers itself.
const cpu = new CPU(new Uint16Array(flash.buffer), RAM_BYTES + 256);
new AVRTimer(cpu, TIMER0);
const serial = new AVRUSART(cpu, USART0, CLOCK_HZ);

let line = "";
let isOver = false;
serial.onByteTransmit = (byte) => {
  line += String.fromCharCode(byte);
  if (byte !== 10) return;
  process.stdout.write(line);
  isOver ||= /^CG1 [EX] /.test(line);
  line = "";
};

while (!isOver && cpu.cycles < SECONDS_MAX * CLOCK_HZ) {
  avrInstruction(cpu);
  cpu.tick();
}
if (!isOver) {
  console.error(`mega: no trace ended within ${SECONDS_MAX} s of the board's time`);
  process.exit(1);
}
