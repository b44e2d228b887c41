//! Numeric limits, and the reason for each value.

/// Buffer for a request head and the first bytes after it. Browsers send about 700 bytes.
pub const HEAD_BYTES_MAX: usize = 1504;
/// Part of that buffer that stays free for the body, because chunk sizes are parsed there.
pub(crate) const TAIL_BYTES_MIN: usize = 64;
/// Maximum number of header fields.
pub(crate) const FIELDS_MAX: usize = 32;
/// Buffer for generated text (lists, events, rows, pages) and for the bodies of requests.
pub(crate) const OUT_BYTES: usize = 768;
/// Maximum length of a form, in bytes: a session's name and settings, each byte encoded as three.
pub(crate) const FORM_BYTES_MAX: usize = 512;
/// Maximum length of a line with a chunk's size, or of a trailer, in bytes.
pub(crate) const CHUNK_LINE_BYTES_MAX: usize = 256;
/// Maximum length of a multipart boundary, in bytes (RFC 2046).
pub(crate) const BOUNDARY_BYTES_MAX: usize = 70;

/// Time within which a head must be complete, from its first byte or from the start of the connection, in ms.
pub(crate) const HEAD_MS: u64 = 5_000;
/// Time that a connection may be idle between requests, in ms.
pub(crate) const IDLE_MS: u64 = 10_000;
/// Period over which the rate of a slow client is measured, in ms of waiting for it.
pub(crate) const SLOW_MS: u32 = 10_000;
/// Bytes that a client must send or receive in this period: 1 KiB/s.
pub(crate) const SLOW_BYTES_MIN: u32 = 10 * 1024;
/// Delay before the response to wrong credentials, in ms.
pub(crate) const WRONG_CREDENTIALS_MS: u32 = 1_000;
/// Bytes of an unread body that are read before the connection closes. A client that is still sending would
/// otherwise lose the response.
pub(crate) const DRAIN_BYTES_MAX: u64 = 64 * 1024;
/// Maximum time for reading an unread body, in ms.
pub(crate) const DRAIN_MS: u32 = 1_000;
/// Interval at which a change tries to get its turn again, in ms.
pub(crate) const TURN_MS: u32 = 5;
/// Interval at which a growing file is checked for new bytes, in ms.
pub(crate) const FOLLOW_MS: u32 = 200;
/// Interval at which `/live?all=1` sends new samples, in ms. It is short enough for a sample to reach a client within
/// 250 ms of its recording, including the network (tested in host/compare/tests/served.rs).
pub(crate) const SAMPLES_MS: u32 = 100;
/// Interval of status events on `/live`, in ms.
pub(crate) const STATUS_MS: u64 = 500;
/// Time after which a client may repeat a request that found the card busy, in s.
pub(crate) const RETRY_AFTER_S: u32 = 1;
