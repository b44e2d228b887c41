//! Wi-Fi of a data logger, without the radio: everything that can be decided, parsed or built in memory.
//!
//! ```text
//!   card ── CARDIOGR.TXT ──> Settings ── router, name, time server         (settings/)
//!                              │
//!   radio <── Action ──────── Link ── joins the router, or opens an access point (link.rs)
//!         ─── Event ────────>   │
//!                              │
//!   UDP <── AddressServer ────┤ addresses in the access point: DHCP        (address/)
//!       <── Responder ────────┤ name.local: multicast DNS                  (responder.rs)
//!       <── TimeRequest ──────┘ time from a server: SNTP                   (time.rs, calendar.rs)
//! ```
//!
//! Nothing here does I/O, reads a clock, or allocates: the caller passes received bytes and the time, and sends what
//! the functions return. A board connects these parts to its radio and its UDP sockets; `firmware/esp32` does so. The
//! crate is tested on a computer. It has not controlled a radio yet.
#![no_std]
#![forbid(unsafe_code)]
#[cfg(test)]
extern crate std;

mod address;
mod calendar;
mod link;
mod passphrase;
mod responder;
mod settings;
mod time;

pub use address::{
    ADDRESS, AddressServer, DHCP_CLIENT_PORT, DHCP_SERVER_PORT, LEASES, REPLY_BYTES, Reply,
};
pub use calendar::fat_time;
pub use link::{Action, Event, JoinFailure, Link, State};
pub use passphrase::{PASSPHRASE_BYTES, Passphrase, access_point_name};
pub use responder::{MDNS_ADDRESS, MDNS_PORT, Responder, Target};
pub use settings::{
    ErrorKind, FILE_BYTES_MAX, FILE_NAME, NAME_BYTES_MAX, PASSWORD_BYTES_MAX, Router,
    SERVER_BYTES_MAX, SSID_BYTES_MAX, Secret, Settings, SettingsError,
};
pub use time::{SNTP_BYTES, SNTP_PORT, TimeError, TimeRequest};
