// The simulated card: WebAssembly with the C ABI of the crate in wasm/.

import { readFileSync } from "node:fs";

const CHUNK_BYTES = 1 << 20;
export const BLOCK_BYTES = 512;

/** Loads the module. */
export function load(path) {
  const module = new WebAssembly.Module(readFileSync(path));
  return new WebAssembly.Instance(module).exports;
}

export class Card {
  constructor(wasm, handle) {
    if (handle < 0) throw new Error(text(wasm));
    this.wasm = wasm;
    this.handle = handle;
  }

  /** Creates a card of a bundled profile. */
  static create(wasm, profile, seed, capacityBytes) {
    put(wasm, new TextEncoder().encode(profile));
    return new Card(wasm, wasm.card_new(BigInt(seed), BigInt(capacityBytes)));
  }

  /** Continues with a saved card. */
  static fromState(wasm, profile, capacityBytes, state) {
    const name = new TextEncoder().encode(profile);
    put(wasm, Buffer.concat([name, state]));
    return new Card(wasm, wasm.card_from_state(name.length, BigInt(capacityBytes)));
  }

  exchangeAt(startNs, endNs, byte) {
    return this.wasm.card_exchange_at(this.handle, startNs, endNs, byte) & 0xff;
  }

  select(isSelected) {
    this.wasm.card_select(this.handle, isSelected ? 1 : 0);
  }

  setPower(nowNs, isOn) {
    this.wasm.card_power(this.handle, nowNs, isOn ? 1 : 0);
  }

  /** Number of stalls so far, and the longest in ms. */
  stalls() {
    return {
      count: this.wasm.card_stalls(this.handle),
      longestMs: this.wasm.card_stall_ns_max(this.handle) / 1e6,
    };
  }

  /** Copies an image to a card of zeros, without taking time. */
  store(image) {
    const zeros = Buffer.alloc(CHUNK_BYTES);
    for (let at = 0; at < image.length; at += CHUNK_BYTES) {
      const chunk = image.subarray(at, at + CHUNK_BYTES);
      if (chunk.equals(zeros)) continue;
      put(this.wasm, chunk);
      this.wasm.card_store(this.handle, at / BLOCK_BYTES);
    }
  }

  /** Returns the first bytes of the card. */
  image(bytes) {
    const image = Buffer.alloc(bytes);
    for (let at = 0; at < bytes; at += CHUNK_BYTES) {
      this.wasm.buffer(Math.min(CHUNK_BYTES, bytes - at));
      this.wasm.card_read(this.handle, at / BLOCK_BYTES);
      image.set(contents(this.wasm), at);
    }
    return image;
  }
}

function put(wasm, bytes) {
  const address = wasm.buffer(bytes.length);
  new Uint8Array(wasm.memory.buffer, address, bytes.length).set(bytes);
}

function contents(wasm) {
  const bytes = wasm.buffer_bytes();
  return new Uint8Array(wasm.memory.buffer, wasm.buffer(bytes), bytes);
}

function text(wasm) {
  return new TextDecoder().decode(contents(wasm));
}
