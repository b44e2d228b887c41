//! Static memory. `docs/boards/sifive_u.md` has a table of all of it.

use cardiograph_recorder::{ReadDesk, Ring};
use core::sync::atomic::AtomicU8;
use static_cell::{ConstStaticCell, StaticCell};

/// Size of the ring buffer: 0.28 s of samples at 860 Hz, or 0.52 s without a network.
const RING_BYTES: usize = match cfg!(feature = "network") {
    true => 24 * 1024,
    false => 44 * 1024,
};
/// Memory for reads and uploads, in blocks, and the number of buffers in it. Uploads need two.
const READ_BLOCKS: usize = 4;
const READ_BUFFERS: usize = 2;
/// Ring buffer of the samples.
pub type SampleRing = Ring<[AtomicU8; RING_BYTES]>;

/// Memory of the recorder and its readers.
pub struct Memory {
    pub ring: &'static mut SampleRing,
    pub desk: &'static ReadDesk<'static>,
}

/// Returns the memory; panics at the second call. Not inlined, so that nobody keeps the 6 KB of stack that this takes.
#[inline(never)]
pub fn take() -> Memory {
    static RING: ConstStaticCell<SampleRing> = ConstStaticCell::new(Ring::new());
    static BLOCKS: ConstStaticCell<[[u8; 512]; READ_BLOCKS]> =
        ConstStaticCell::new([[0; 512]; READ_BLOCKS]);
    static DESK: StaticCell<ReadDesk<'static>> = StaticCell::new();
    Memory {
        ring: RING.take(),
        desk: DESK.init_with(|| ReadDesk::with_buffers(BLOCKS.take(), READ_BUFFERS)),
    }
}
