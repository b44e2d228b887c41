//! Ethernet: the Cadence GEM, as embassy-net's driver.
//!
//! The MAC reads and writes main memory. Descriptors and frames are therefore atomic variables: a descriptor with the bit
//! [`RX_FILLED`] or [`TX_SENT`] belongs to this driver, the others belong to the MAC.

use crate::registers::{MAC, PLIC, Register};
use core::array::from_fn;
use core::sync::atomic::{AtomicU32, Ordering, fence};
use core::task::Context;
use embassy_net_driver::{Capabilities, Driver, HardwareAddress, LinkState, RxToken, TxToken};
use embassy_sync::waitqueue::AtomicWaker;
use riscv::interrupt::Interrupt;

/// Longest frame, in bytes: a packet of 576 B and the header of 14 B, in whole units of the MAC.
const FRAME_BYTES: usize = 640;
/// Longest frame that the network stack sends, in bytes.
const MTU: usize = 590;
const FRAME_WORDS: usize = FRAME_BYTES / 4;
const RX_FRAMES: usize = 2;
/// Shortest frame, without its checksum.
const FRAME_BYTES_MIN: usize = 60;

const CONTROL: Register = MAC.at(0x00);
const CONFIG: Register = MAC.at(0x04);
const DMA_CONFIG: Register = MAC.at(0x10);
const RX_STATUS: Register = MAC.at(0x20);
const RX_QUEUE: Register = MAC.at(0x18);
const TX_QUEUE: Register = MAC.at(0x1C);
const INTERRUPTS: Register = MAC.at(0x24);
const INTERRUPT_ENABLE: Register = MAC.at(0x28);
const ADDRESS_LOW: Register = MAC.at(0x88);
const ADDRESS_HIGH: Register = MAC.at(0x8C);

/// Control: enable receiver and transmitter.
const ENABLE: u32 = 1 << 2 | 1 << 3;
/// Control: send.
const SEND: u32 = 1 << 9;
/// Configuration: 100 Mbit/s, full duplex, without the checksum of received frames.
const MODE: u32 = 1 << 0 | 1 << 1 | 1 << 17;
/// DMA: length of receive buffers in units of 64 B, bursts of 4 words, all of the MAC's memory.
const DMA_MODE: u32 = (FRAME_BYTES as u32 / 64) << 16 | 7 << 8 | 4;
/// Interrupt: a frame was received.
const RECEIVED: u32 = 1 << 1;

/// Word 0 of a receive descriptor: filled by the MAC.
const RX_FILLED: u32 = 1;
/// Word 0 of a receive descriptor: the last one.
const RX_LAST: u32 = 2;
/// Word 1 of a receive descriptor: length.
const RX_LENGTH: u32 = 0x1FFF;
/// Word 1 of a receive descriptor: the frame begins and ends in this buffer.
const RX_WHOLE: u32 = 1 << 14 | 1 << 15;
/// Word 1 of the transmit descriptor: sent by the MAC.
const TX_SENT: u32 = 1 << 31;
/// Word 1 of the transmit descriptor: the last one of the queue, and of the frame.
const TX_LAST: u32 = 1 << 30 | 1 << 15;

/// Number of the MAC's interrupt.
const INTERRUPT: usize = 53;
const PRIORITY: Register = PLIC.at(4 * INTERRUPT);
const ENABLED: Register = PLIC.at(0x2000 + 4 * (INTERRUPT / 32));
const CLAIM: Register = PLIC.at(0x20_0004);

/// A locally administered address; QEMU's network has no other board.
const ADDRESS: [u8; 6] = [0x02, 0x43, 0x47, 0x00, 0x00, 0x01];

type Frame = [AtomicU32; FRAME_WORDS];
type Descriptor = [AtomicU32; 2];

/// Memory that the MAC accesses.
struct Dma {
    rx: [Descriptor; RX_FRAMES],
    tx: Descriptor,
    rx_frames: [Frame; RX_FRAMES],
    tx_frame: Frame,
}

static DMA: Dma = Dma {
    rx: [const { [const { AtomicU32::new(0) }; 2] }; RX_FRAMES],
    tx: [const { AtomicU32::new(0) }; 2],
    rx_frames: [const { [const { AtomicU32::new(0) }; FRAME_WORDS] }; RX_FRAMES],
    tx_frame: [const { AtomicU32::new(0) }; FRAME_WORDS],
};

static WAKER: AtomicWaker = AtomicWaker::new();

/// The MAC.
pub struct Mac {
    /// Receive descriptor that the MAC filled or fills next.
    next: usize,
}

/// Starts the MAC. Call it once.
pub fn start() -> Mac {
    for (index, (descriptor, frame)) in DMA.rx.iter().zip(&DMA.rx_frames).enumerate() {
        let last = if index + 1 == RX_FRAMES { RX_LAST } else { 0 };
        descriptor[0].store(address_of(frame) | last, Ordering::Relaxed);
    }
    DMA.tx[0].store(address_of(&DMA.tx_frame), Ordering::Relaxed);
    DMA.tx[1].store(TX_SENT | TX_LAST, Ordering::Relaxed);
    fence(Ordering::SeqCst);

    CONTROL.write(0);
    CONFIG.write(MODE);
    DMA_CONFIG.write(DMA_MODE);
    let [a, b, c, d, e, f] = ADDRESS;
    ADDRESS_LOW.write(u32::from_le_bytes([a, b, c, d]));
    ADDRESS_HIGH.write(u32::from_le_bytes([e, f, 0, 0]));
    RX_QUEUE.write(address_of(&DMA.rx));
    TX_QUEUE.write(address_of(&DMA.tx));
    INTERRUPT_ENABLE.write(RECEIVED);
    CONTROL.write(ENABLE);
    PRIORITY.write(1);
    ENABLED.write(1 << (INTERRUPT % 32));
    Mac { next: 0 }
}

fn address_of<T>(memory: &'static T) -> u32 {
    (&raw const *memory).expose_provenance() as u32
}

#[riscv_rt::core_interrupt(Interrupt::MachineExternal)]
fn receive() {
    let claimed = CLAIM.read();
    // Reading clears the causes in QEMU, and writing does on other versions of the MAC.
    INTERRUPTS.write(INTERRUPTS.read());
    WAKER.wake();
    CLAIM.write(claimed);
}

impl Mac {
    /// Finds the next received frame; returns its length. Skips frames that are too long.
    fn find(&mut self) -> Option<usize> {
        loop {
            let [address, status] = &DMA.rx[self.next];
            if address.load(Ordering::Acquire) & RX_FILLED == 0 {
                return None;
            }
            let status = status.load(Ordering::Relaxed);
            let bytes = (status & RX_LENGTH) as usize;
            if status & RX_WHOLE == RX_WHOLE && bytes <= FRAME_BYTES {
                return Some(bytes);
            }
            self.give_back();
        }
    }

    /// Returns the next buffer to the MAC, which takes notice when its control register is written.
    fn give_back(&mut self) {
        DMA.rx[self.next][0].fetch_and(!RX_FILLED, Ordering::Release);
        RX_STATUS.write(u32::MAX);
        CONTROL.write(ENABLE);
        self.next = (self.next + 1) % RX_FRAMES;
    }
}

fn copy_out(frame: &Frame, bytes: &mut [u8]) {
    for (word, bytes) in frame.iter().zip(bytes.chunks_mut(4)) {
        let word = word.load(Ordering::Relaxed).to_le_bytes();
        bytes.copy_from_slice(&word[..bytes.len()]);
    }
}

fn has_sent() -> bool {
    DMA.tx[1].load(Ordering::Acquire) & TX_SENT != 0
}

/// A received frame, and its length.
pub struct Received<'a>(&'a mut Mac, usize);

impl RxToken for Received<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, handle: F) -> R {
        let Received(mac, bytes) = self;
        let mut frame = [0; FRAME_BYTES];
        copy_out(&DMA.rx_frames[mac.next], &mut frame[..bytes]);
        mac.give_back();
        handle(&mut frame[..bytes])
    }
}

/// Permission to send a frame.
pub struct Sending(());

impl TxToken for Sending {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, bytes: usize, fill: F) -> R {
        let mut frame = [0; FRAME_BYTES];
        let filled = fill(&mut frame[..bytes]);
        for (word, bytes) in DMA.tx_frame.iter().zip(frame.chunks_exact(4)) {
            let bytes: [u8; 4] = from_fn(|i| bytes[i]);
            word.store(u32::from_le_bytes(bytes), Ordering::Relaxed);
        }
        let bytes = bytes.max(FRAME_BYTES_MIN) as u32;
        DMA.tx[1].store(TX_LAST | bytes, Ordering::Release);
        fence(Ordering::SeqCst);
        CONTROL.write(ENABLE | SEND);
        filled
    }
}

impl Driver for Mac {
    type RxToken<'a> = Received<'a>;
    type TxToken<'a> = Sending;

    fn receive(&mut self, context: &mut Context) -> Option<(Received<'_>, Sending)> {
        WAKER.register(context.waker());
        if !has_sent() {
            return None;
        }
        let bytes = self.find()?;
        Some((Received(self, bytes), Sending(())))
    }

    fn transmit(&mut self, context: &mut Context) -> Option<Sending> {
        WAKER.register(context.waker());
        has_sent().then_some(Sending(()))
    }

    fn link_state(&mut self, _: &mut Context) -> LinkState {
        LinkState::Up
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::default();
        capabilities.max_transmission_unit = MTU;
        capabilities.max_burst_size = Some(1);
        capabilities
    }

    fn hardware_address(&self) -> HardwareAddress {
        HardwareAddress::Ethernet(ADDRESS)
    }
}
