//! The registers and symbols that are used; nothing else here touches an address.
#![allow(unsafe_code)]

use core::ptr;

/// A register of the chip.
pub struct Register(usize);

impl Register {
    /// Reads it.
    pub fn read(&self) -> u32 {
        // SAFETY: only the constants below can be made. They are aligned registers of this chip.
        unsafe { ptr::read_volatile(ptr::with_exposed_provenance(self.0)) }
    }

    /// Writes it.
    pub fn write(&self, value: u32) {
        // SAFETY: as above; none of these registers gives a device an address of memory.
        unsafe { ptr::write_volatile(ptr::with_exposed_provenance_mut(self.0), value) }
    }
}

/// Run-mode clock configuration.
pub const RCC: Register = Register(0x400F_E060);
/// Clocks of timers and SSI.
pub const RCGC1: Register = Register(0x400F_E104);
/// Clocks of ports.
pub const RCGC2: Register = Register(0x400F_E108);

/// SSI 0, an ARM PL022: frame format.
pub const SSI_CR0: Register = Register(0x4000_8000);
/// SSI 0: on and off.
pub const SSI_CR1: Register = Register(0x4000_8004);
/// SSI 0: a byte out, a byte in.
pub const SSI_DR: Register = Register(0x4000_8008);
/// SSI 0: what is in the queues.
pub const SSI_SR: Register = Register(0x4000_800C);
/// SSI 0: the even number that the clock is divided by.
pub const SSI_CPSR: Register = Register(0x4000_8010);

/// Port A: pins that a peripheral has.
pub const PORT_A_AFSEL: Register = Register(0x4000_4420);
/// Port A: pins that are digital.
pub const PORT_A_DEN: Register = Register(0x4000_451C);
/// Port D: pin 0 alone, which selects the card.
pub const PORT_D_DATA_0: Register = Register(0x4000_7004);
/// Port D: pins that are outputs.
pub const PORT_D_DIR: Register = Register(0x4000_7400);
/// Port D: pins that are digital.
pub const PORT_D_DEN: Register = Register(0x4000_751C);

/// A general-purpose timer.
pub struct TimerRegisters {
    /// One shot or periodic.
    pub mode: Register,
    /// On and off.
    pub control: Register,
    /// What interrupts.
    pub interrupt_mask: Register,
    /// Ends an interrupt.
    pub interrupt_clear: Register,
    /// Clocks of a period.
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

/// Timer 0.
pub const TIMER_0: TimerRegisters = timer(0x4003_0000);
/// Timer 1.
pub const TIMER_1: TimerRegisters = timer(0x4003_1000);
/// Interrupts 0 to 31: writing a bit lets one come.
pub const NVIC_ISER0: Register = Register(0xE000_E100);

// Of the linker script and start-up code of cortex-m-rt.
unsafe extern "C" {
    static __sdata: u32;
    static __euninit: u32;
    static _stack_end: u32;
    static _stack_start: u32;
}

/// What start-up code painted the stack with.
const STACK_PAINT: u32 = 0xCCCC_CCCC;

/// Bytes of variables that live as long as the program.
pub fn static_bytes() -> usize {
    (&raw const __euninit).addr() - (&raw const __sdata).addr()
}

/// Bytes that the stack had at its deepest so far.
pub fn stack_bytes_max() -> usize {
    let (mut word, top) = (&raw const _stack_end, &raw const _stack_start);
    // SAFETY: the words between the two symbols are memory of the stack's, aligned. They may change
    // while this runs, but not those that were never used.
    while word < top && unsafe { ptr::read_volatile(word) } == STACK_PAINT {
        word = word.wrapping_add(1);
    }
    top.addr() - word.addr()
}
