//! The device crates as firmware, on QEMU's lm3s6965evb: wiring, and a test of it.
//!
//! Prints a line for each test that passed, and ends QEMU with a status. What is left on the card is
//! looked at by `cargo xtask firmware`.
#![no_std]
#![no_main]

mod card;
mod instructions;
mod producer;
mod qemu;
mod recording;
mod registers;
mod ssi;
mod time;

use core::panic::PanicInfo;
use cortex_m::Peripherals;
use cortex_m_rt::entry;
use cortex_m_semihosting::debug::{EXIT_FAILURE, EXIT_SUCCESS, exit};
use cortex_m_semihosting::hprintln;

#[entry]
fn main() -> ! {
    if let Some(mut peripherals) = Peripherals::take() {
        time::start(&mut peripherals.SYST);
        instructions::are_counted();
        producer::push_is_cheap();
        let mut card = card::on_wires();
        card::is_written_and_read(&mut card);
        recording::is_complete(card);
        hprintln!(
            "RAM: {} B static, {} B stack at most",
            registers::static_bytes(),
            registers::stack_bytes_max()
        );
        exit(EXIT_SUCCESS);
    }
    loop {
        cortex_m::asm::wfi();
    }
}

#[panic_handler]
fn panic(why: &PanicInfo) -> ! {
    hprintln!("{}", why);
    exit(EXIT_FAILURE);
    loop {
        cortex_m::asm::wfi();
    }
}
