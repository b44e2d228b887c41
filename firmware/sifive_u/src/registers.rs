//! Registers, settings and linker symbols. No other file accesses raw addresses.
#![allow(unsafe_code)]

use core::ptr;

/// A register of the chip.
#[derive(Clone, Copy)]
pub struct Register(usize);

impl Register {
    /// Returns the register at an offset.
    pub const fn at(self, offset: usize) -> Register {
        Register(self.0 + offset)
    }

    pub fn read(self) -> u32 {
        // SAFETY: all registers are offsets from the constants below, aligned and within a device of this chip, or one
        // of the settings, which no Rust object occupies.
        unsafe { ptr::read_volatile(ptr::with_exposed_provenance(self.0)) }
    }

    pub fn write(self, value: u32) {
        // SAFETY: as above. The registers that pass memory addresses to the Ethernet MAC get those of atomic variables,
        // which may change at any time.
        unsafe { ptr::write_volatile(ptr::with_exposed_provenance_mut(self.0), value) }
    }
}

/// Core-local interruptor: time, and the time of the next timer interrupt.
pub const CLINT: Register = Register(0x0200_0000);
/// Platform-level interrupt controller.
#[cfg(feature = "network")]
pub const PLIC: Register = Register(0x0C00_0000);
/// First UART.
pub const UART: Register = Register(0x1001_0000);
/// SPI controller of the card.
pub const SPI: Register = Register(0x1005_0000);
/// Gigabit Ethernet MAC by Cadence.
#[cfg(feature = "network")]
pub const MAC: Register = Register(0x1009_0000);
/// Words that QEMU sets before the start (`-device loader`), in place of jumpers. Zero by default.
pub const SETTINGS: Register = Register(0x8200_0000);

// Symbols of the linker script.
unsafe extern "C" {
    static __sdata: u32;
    static __ebss: u32;
    static _stack_start: u32;
}

/// Pattern with which the stack is filled to measure its depth.
const STACK_PAINT: u32 = 0xCCCC_CCCC;
/// Part of the stack in use while it is painted, in bytes.
const PAINTING_BYTES: usize = 256;

/// Fills the unused part of the stack with a pattern. Not inlined, so that everything in use is above its own variable.
#[inline(never)]
pub fn paint_stack() {
    let here = 0_u32;
    let end = (&raw const here).addr() - PAINTING_BYTES;
    let mut word = (&raw const __ebss).cast_mut();
    while word.addr() < end {
        // SAFETY: the words between static variables and the stack's top are unused memory, aligned.
        unsafe { ptr::write_volatile(word, STACK_PAINT) };
        word = word.wrapping_add(1);
    }
}

/// Returns the size of static variables, in bytes.
pub fn static_bytes() -> usize {
    (&raw const __ebss).addr() - (&raw const __sdata).addr()
}

/// Returns the memory for the stack, in bytes.
pub fn stack_bytes() -> usize {
    (&raw const _stack_start).addr() - (&raw const __ebss).addr()
}

/// Returns the largest depth of the stack so far, in bytes.
pub fn stack_bytes_max() -> usize {
    let (mut word, top) = (&raw const __ebss, &raw const _stack_start);
    // SAFETY: the words between the two symbols are the stack's memory, aligned. Words in use may change during the
    // loop, but it stops at the first word that is not painted.
    while word < top && unsafe { ptr::read_volatile(word) } == STACK_PAINT {
        word = word.wrapping_add(1);
    }
    top.addr() - word.addr()
}

/// Enables interrupts by the timer and by devices.
pub fn enable_interrupts() {
    // SAFETY: both have handlers, and no critical section relies on a masked interrupt.
    unsafe {
        riscv::register::mie::set_mtimer();
        riscv::register::mie::set_mext();
        riscv::interrupt::enable();
    }
}

/// Parks the other processors. The start-up code sends them here.
#[unsafe(no_mangle)]
extern "C" fn abort() -> ! {
    loop {
        riscv::asm::wfi();
    }
}
