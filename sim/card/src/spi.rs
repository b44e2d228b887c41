//! Bytes clocked for a block over SPI, by formula.
//!
//! Counted as embedded-sdmmc 0.10 drives the bus: before every command one byte is read to see that
//! the card is not busy; `ncr` is the bytes before an answer. Time the card keeps the host waiting
//! is not in them.

/// Command, argument and checksum.
const COMMAND: u64 = 6;
/// Start token, 512 bytes and two of checksum.
const DATA: u64 = 1 + 512 + 2;

/// CMD17: a block read.
pub(crate) const fn read_single_bytes(ncr: u64) -> u64 {
    1 + COMMAND + ncr + 1 + DATA
}

/// CMD18 and CMD12: a burst of blocks read. CMD12 goes out unasked and has a byte of stuff.
pub(crate) const fn read_burst_bytes(blocks: u64, ncr: u64) -> u64 {
    1 + COMMAND + ncr + 1 + blocks * DATA + COMMAND + 1 + ncr + 1
}

/// CMD24 with a CMD13 after it: a block written and its status asked for.
pub(crate) const fn write_single_bytes(ncr: u64) -> u64 {
    let block = 1 + COMMAND + ncr + 1 + DATA + 1;
    let status = 1 + 1 + COMMAND + ncr + 2;
    block + status
}

/// CMD55, ACMD23, CMD25 and the stop token: a burst of blocks written.
pub(crate) const fn write_burst_bytes(blocks: u64, ncr: u64) -> u64 {
    517 * blocks + 27 + 3 * ncr
}

// The published count for a single block: 534 + 2*NCR.
const _: () = assert!(write_single_bytes(1) == 536 && write_single_bytes(8) == 550);
