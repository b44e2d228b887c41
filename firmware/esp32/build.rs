//! Passes the memory layout of the chip to the linker.

fn main() {
    println!("cargo::rustc-link-arg-bins=-Tlinkall.x");
}
