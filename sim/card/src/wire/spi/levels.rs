//! Bytes that the host reads while the card sends no data.

/// Byte that the host reads while the card does not drive MISO, which is pulled up.
pub(super) const RELEASED: u8 = 0xFF;
/// Byte that the host reads while the card is busy.
pub(super) const BUSY: u8 = 0;
