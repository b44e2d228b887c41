//! Exported functions.
#![allow(unsafe_code, reason = "the attribute no_mangle counts as unsafe")]

use crate::card::BoardCard;
use std::cell::RefCell;

/// Result of a function that failed; the buffer holds the message.
const FAILED: i32 = -1;

thread_local! {
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    static CARDS: RefCell<Vec<BoardCard>> = const { RefCell::new(Vec::new()) };
}

/// Sets the length of the buffer; returns its address.
#[unsafe(no_mangle)]
pub extern "C" fn buffer(bytes: usize) -> *mut u8 {
    BUFFER.with_borrow_mut(|buffer| {
        buffer.resize(bytes, 0);
        buffer.as_mut_ptr()
    })
}

/// Returns the number of bytes in the buffer.
#[unsafe(no_mangle)]
pub extern "C" fn buffer_bytes() -> usize {
    BUFFER.with_borrow(Vec::len)
}

/// Creates a card of the bundled profile whose name is in the buffer; returns its handle.
#[unsafe(no_mangle)]
pub extern "C" fn card_new(seed: u64, capacity_bytes: u64) -> i32 {
    let name = BUFFER.with_borrow(|buffer| String::from_utf8_lossy(buffer).into_owned());
    add(BoardCard::new(&name, seed, capacity_bytes))
}

/// Continues with a saved card of the same capacity. The buffer holds the name of its profile, in `name_bytes` bytes, and
/// then the state. Returns the handle.
#[unsafe(no_mangle)]
pub extern "C" fn card_from_state(name_bytes: usize, capacity_bytes: u64) -> i32 {
    let card = BUFFER.with_borrow(|buffer| {
        let (name, state) = buffer
            .split_at_checked(name_bytes)
            .ok_or("the buffer is shorter than the name in it")?;
        BoardCard::from_state(&String::from_utf8_lossy(name), capacity_bytes, state)
    });
    add(card)
}

/// Exchanges a byte on the bus from `start_ns` to `end_ns`; returns the card's byte.
#[unsafe(no_mangle)]
pub extern "C" fn card_exchange_at(card: usize, start_ns: f64, end_ns: f64, byte: u8) -> u8 {
    with(card, |card| {
        card.exchange_at(start_ns as u64, end_ns as u64, byte)
    })
    .unwrap_or(0xFF)
}

/// Asserts chip select (1) or deasserts it (0).
#[unsafe(no_mangle)]
pub extern "C" fn card_select(card: usize, is_selected: u32) {
    with(card, |card| card.select(is_selected != 0));
}

/// Cuts the power (0) or restores it (1).
#[unsafe(no_mangle)]
pub extern "C" fn card_power(card: usize, now_ns: f64, is_on: u32) {
    with(card, |card| card.set_power(now_ns as u64, is_on != 0));
}

/// Stores the blocks in the buffer from block `start` on, bypassing the bus.
#[unsafe(no_mangle)]
pub extern "C" fn card_store(card: usize, start: u32) {
    BUFFER.with_borrow(|buffer| with(card, |card| card.store(start.into(), buffer)));
}

/// Fills the buffer with the blocks from block `start` on, bypassing the bus.
#[unsafe(no_mangle)]
pub extern "C" fn card_read(card: usize, start: u32) {
    BUFFER.with_borrow_mut(|buffer| with(card, |card| card.load(start.into(), buffer)));
}

/// Returns the number of stalls so far: busy times of at least 50 ms.
#[unsafe(no_mangle)]
pub extern "C" fn card_stalls(card: usize) -> u32 {
    with(card, |card| card.stalls).unwrap_or(0)
}

/// Returns the longest busy time so far, in ns.
#[unsafe(no_mangle)]
pub extern "C" fn card_stall_ns_max(card: usize) -> f64 {
    with(card, |card| card.stall_ns_max as f64).unwrap_or(0.0)
}

/// Carries out a request of the page. The buffer holds the request, in `request_bytes` bytes, and then the file; it
/// holds the response afterwards. Returns 0.
#[cfg(feature = "playground")]
#[unsafe(no_mangle)]
pub extern "C" fn respond(request_bytes: usize) -> i32 {
    let buffer = BUFFER.take();
    let Some((request, file)) = buffer.split_at_checked(request_bytes) else {
        return FAILED;
    };
    let (response, result) =
        match crate::playground::respond(request, file, &mut |share| progress(share)) {
            Ok(response) => (response, 0),
            Err(message) => (message, FAILED),
        };
    BUFFER.set(response.into_bytes());
    result
}

#[cfg(all(feature = "playground", target_family = "wasm"))]
#[link(wasm_import_module = "page")]
unsafe extern "C" {
    /// Receives the share of the work that is done, from 0 to 1.
    safe fn progress(share: f64);
}

/// Nobody shows the progress outside of a browser.
#[cfg(all(feature = "playground", not(target_family = "wasm")))]
fn progress(_: f64) {}

fn add(card: Result<BoardCard, String>) -> i32 {
    match card {
        Ok(card) => CARDS.with_borrow_mut(|cards| {
            cards.push(card);
            cards.len() as i32 - 1
        }),
        Err(message) => {
            BUFFER.set(message.into_bytes());
            FAILED
        }
    }
}

/// Returns `None` if there is no such card.
fn with<T>(card: usize, act: impl FnOnce(&mut BoardCard) -> T) -> Option<T> {
    CARDS.with_borrow_mut(|cards| cards.get_mut(card).map(act))
}
