//! The integration tests in one program: as separate programs, each would compile the same generic code again.

mod controller;
mod flips;
mod laws;
mod mmc_bus;
mod power_and_defects;
mod power_cuts;
mod random_faults;
mod receive_ahead;
mod reference;
mod replay;
mod rig;
mod script;
mod sd_clocks;
mod sd_drivers;
mod sd_misuse;
mod sd_responses;
mod sd_script;
mod state;
mod wire_async;
mod wire_bytes;
mod wire_faults;
mod wire_misuse;
mod wire_power;
mod wire_responses;
