//! Registers and linker symbols. No other file accesses raw addresses.
#![allow(unsafe_code)]

use core::ptr;

/// A register of the chip.
pub struct Register(usize);

impl Register {
    pub fn read(&self) -> u32 {
        // SAFETY: only this module creates registers, as the constants below. They are aligned registers of
        // this chip.
        unsafe { ptr::read_volatile(ptr::with_exposed_provenance(self.0)) }
    }

    pub fn write(&self, value: u32) {
        // SAFETY: as above; none of these registers passes a memory address to a peripheral.
        unsafe { ptr::write_volatile(ptr::with_exposed_provenance_mut(self.0), value) }
    }
}

/// Run-mode clock configuration.
pub const RCC: Register = Register(0x400F_E060);
/// Run-mode clock gating 1: timers and SSI.
pub const RCGC1: Register = Register(0x400F_E104);
/// Run-mode clock gating 2: ports.
pub const RCGC2: Register = Register(0x400F_E108);

/// SSI 0 (an ARM PL022): frame format.
pub const SSI_CR0: Register = Register(0x4000_8000);
/// SSI 0: enable.
pub const SSI_CR1: Register = Register(0x4000_8004);
/// SSI 0: data.
pub const SSI_DR: Register = Register(0x4000_8008);
/// SSI 0: status of the FIFOs.
pub const SSI_SR: Register = Register(0x4000_800C);
/// SSI 0: clock prescale divisor, an even number.
pub const SSI_CPSR: Register = Register(0x4000_8010);

/// Port A: alternate function select.
pub const PORT_A_AFSEL: Register = Register(0x4000_4420);
/// Port A: digital enable.
pub const PORT_A_DEN: Register = Register(0x4000_451C);
/// Port D: data of pin 0 only, the card's chip select.
pub const PORT_D_DATA_0: Register = Register(0x4000_7004);
/// Port D: direction.
pub const PORT_D_DIR: Register = Register(0x4000_7400);
/// Port D: digital enable.
pub const PORT_D_DEN: Register = Register(0x4000_751C);

/// Registers of a general-purpose timer.
pub struct TimerRegisters {
    /// Mode: one-shot or periodic.
    pub mode: Register,
    /// Control: enable.
    pub control: Register,
    /// Interrupt mask.
    pub interrupt_mask: Register,
    /// Interrupt clear.
    pub interrupt_clear: Register,
    /// Interval load, in clocks.
    pub load: Register,
}

const fn timer(base: usize) -> TimerRegisters {
    TimerRegisters {
        mode: Register(base + 0x04),
        control: Register(base + 0x0C),
        interrupt_mask: Register(base + 0x18),
        interrupt_clear: Register(base + 0x24),
        load: Register(base + 0x28),
    }
}

pub const TIMER_0: TimerRegisters = timer(0x4003_0000);
pub const TIMER_1: TimerRegisters = timer(0x4003_1000);
/// Interrupt set-enable for interrupts 0 to 31.
pub const NVIC_ISER0: Register = Register(0xE000_E100);

// Symbols of the linker script and start-up code of cortex-m-rt.
unsafe extern "C" {
    static __sdata: u32;
    static __euninit: u32;
    static _stack_end: u32;
    static _stack_start: u32;
}

/// Pattern with which the start-up code fills the stack.
const STACK_PAINT: u32 = 0xCCCC_CCCC;

/// Returns the size of static variables, in bytes.
pub fn static_bytes() -> usize {
    (&raw const __euninit).addr() - (&raw const __sdata).addr()
}

/// Returns the largest depth of the stack so far, in bytes.
pub fn stack_bytes_max() -> usize {
    let (mut word, top) = (&raw const _stack_end, &raw const _stack_start);
    // SAFETY: the words between the two symbols are the stack's memory, aligned. Words in use may change
    // during the loop, but it stops at the first word that is not painted.
    while word < top && unsafe { ptr::read_volatile(word) } == STACK_PAINT {
        word = word.wrapping_add(1);
    }
    top.addr() - word.addr()
}
