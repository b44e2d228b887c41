//! Test firmware for the device crates. Runs on QEMU's lm3s6965evb.
//!
//! Prints a line for each passed test and ends QEMU with an exit status. `cargo xtask firmware` then checks
//! the contents of the card.
#![no_std]
#![no_main]

mod card;
mod instructions;
mod producer;
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
        instructions::test();
        producer::test_push();
        let mut card = card::driver();
        card::test(&mut card);
        recording::test(card);
        hprintln!(
            "RAM: {} B static, {} B maximum stack",
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
fn panic(info: &PanicInfo) -> ! {
    hprintln!("{}", info);
    exit(EXIT_FAILURE);
    loop {
        cortex_m::asm::wfi();
    }
}
