//! Fuzz targets: with libFuzzer for `cargo xtask fuzz`, as plain programs for `cargo xtask test`.
//!
//! A plain program runs the seeds of its target and mutations of them, the same ones every time. It needs neither
//! instrumentation nor libFuzzer, whose build takes minutes, but nothing guides its mutations to new code.

/// Defines the target of a program: `target!(|bytes: &[u8]| { ... });`.
#[cfg(fuzzing)]
pub use libfuzzer_sys::fuzz_target as target;

/// Defines the target of a program: `target!(|bytes: &[u8]| { ... });`.
#[cfg(not(fuzzing))]
#[macro_export]
macro_rules! target {
    (|$bytes:ident: &[u8]| $body:block) => {
        fn main() -> std::process::ExitCode {
            $crate::main(env!("CARGO_BIN_NAME"), |$bytes: &[u8]| $body)
        }
    };
}

#[cfg(not(fuzzing))]
mod mutate;
#[cfg(not(fuzzing))]
mod plain;
#[cfg(not(fuzzing))]
pub use plain::main;
