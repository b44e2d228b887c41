//! Test of the instruction counter.

use crate::time::instructions;
use cortex_m::asm::{delay, nop};
use cortex_m_semihosting::hprintln;

/// Counts code with a known number of instructions.
pub fn test() {
    assert_eq!(instructions(|| ()), 0);
    assert_eq!(instructions(nop), 1);
    assert_eq!(instructions(ten), 10);
    assert_eq!(instructions(hundred), 100);
    let (short, long) = (instructions(|| turns(7)), instructions(|| turns(400_007)));
    assert_eq!(long - short, 2 * 400_000);
    hprintln!("ok: instructions are counted");
}

/// Runs a loop of a subtraction and a branch. Not inlined, because padding for alignment would change the
/// count.
#[inline(never)]
fn turns(count: u32) {
    delay(count);
}

#[inline(always)]
fn hundred() {
    ten();
    ten();
    ten();
    ten();
    ten();
    ten();
    ten();
    ten();
    ten();
    ten();
}

#[inline(always)]
fn ten() {
    nop();
    nop();
    nop();
    nop();
    nop();
    nop();
    nop();
    nop();
    nop();
    nop();
}
