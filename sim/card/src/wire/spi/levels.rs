//! Bytes that the host reads while the card sends no data.

/// The card does not drive MISO, which is pulled up.
pub(super) const RELEASED: u8 = 0xFF;
/// The card is busy.
pub(super) const BUSY: u8 = 0;
