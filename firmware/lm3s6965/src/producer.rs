//! Samples that a timer interrupt pushes into a ring buffer.

use crate::time::instructions;
use cardiograph_recorder::{
    Column, Consumer, Control, Format, Kind, LINE_BYTES_MAX, MAGOD2, Producer, Ring, Schema,
};
use core::cell::RefCell;
use core::hint::black_box;
use core::sync::atomic::{AtomicU8, Ordering};
use cortex_m::interrupt::{Mutex, free};
use cortex_m_semihosting::hprintln;

/// Size of the ring buffer.
const RING_BYTES: usize = 16 * 1024;
/// Samples per millisecond.
const SAMPLES_PER_TICK: u32 = 4;
/// Largest overhead of a push over copying its bytes.
const PUSH_INSTRUCTIONS_MAX: u32 = 100;
const TEST_RING_BYTES: usize = 1024;
const SAMPLE_BYTES: usize = SCHEMA.sample_bytes();

/// Columns of a sample. `xtask/src/firmware/recording.rs` checks the values.
const SCHEMA: Schema = Schema::new(&[
    Column {
        name: "index",
        kind: Kind::U32,
    },
    Column {
        name: "value",
        kind: Kind::I32,
    },
    Column {
        name: "check",
        kind: Kind::U16,
    },
]);

/// File format of the recording.
pub const FORMAT: Format = Format::Csv(&[SCHEMA]);

/// Control block shared with the recorder.
pub static CONTROL: Control = Control::new();

/// State of the interrupt handler during a recording.
static SAMPLING: Mutex<RefCell<Option<Sampling>>> = Mutex::new(RefCell::new(None));

struct Sampling {
    producer: Producer<'static>,
    next: u32,
    end: u32,
}

/// Creates the ring buffer. The interrupt handler pushes `samples` samples into it once the recorder is
/// ready, then closes it.
pub fn start(samples: u32) -> Consumer<'static> {
    let ring = cortex_m::singleton!(: Ring<[AtomicU8; RING_BYTES]> = Ring::new());
    let (producer, consumer) = ring.expect("start is called once").split(FORMAT);
    let sampling = Sampling {
        producer,
        next: 0,
        end: samples,
    };
    free(|free| SAMPLING.borrow(free).replace(Some(sampling)));
    consumer
}

/// Handles the timer interrupt of each millisecond.
pub fn tick(now_us: u64) {
    free(|free| {
        let mut sampling = SAMPLING.borrow(free).borrow_mut();
        let Some(some) = sampling.as_mut().filter(|_| CONTROL.is_ready()) else {
            return;
        };
        for _ in 0..SAMPLES_PER_TICK {
            // Samples that do not fit are reported as a gap in the recording.
            let _ = some.producer.push(&sample(some.next), now_us);
            some.next += 1;
        }
        if some.next >= some.end {
            some.producer.close();
            *sampling = None;
        }
    });
}

fn sample(index: u32) -> [u8; SAMPLE_BYTES] {
    let value = index.wrapping_mul(0x9E37_79B1);
    let mut sample = [0; SAMPLE_BYTES];
    sample[..4].copy_from_slice(&index.to_le_bytes());
    sample[4..8].copy_from_slice(&value.to_le_bytes());
    sample[8..].copy_from_slice(&((value >> 16) as u16).to_le_bytes());
    sample
}

/// Schema of the shortest sample in this test.
const SHORT: Schema = Schema::new(&[Column {
    name: "short",
    kind: Kind::U8,
}]);
const LONG: Schema = Schema::new(
    &[const {
        Column {
            name: "long",
            kind: Kind::I64,
        }
    }; 19],
);
const LINES: Format = Format::Lines {
    header: "",
    line_bytes_max: LINE_BYTES_MAX as u16,
};
const BYTES_MAX: usize = LONG.sample_bytes();

/// Asserts that a push costs little more than copying its bytes, with and without room in the buffer.
pub fn test_push() {
    let mut sample = [7; BYTES_MAX];
    for (format, bytes) in [
        (Format::Binary(&[SHORT]), SHORT.sample_bytes()),
        (Format::Binary(&[SCHEMA]), SCHEMA.sample_bytes()),
        (Format::Binary(&[MAGOD2]), MAGOD2.sample_bytes()),
        (Format::Binary(&[LONG]), BYTES_MAX),
    ] {
        let push = push_instructions(format, &sample[..bytes]);
        check_cost(
            "sample",
            bytes,
            push,
            instructions_of(copy, &sample[..bytes]),
        );
    }
    sample[BYTES_MAX - 1] = b'\n';
    for bytes in [1, 10, 100, BYTES_MAX] {
        let line = &sample[BYTES_MAX - bytes..];
        let push = push_instructions(LINES, line);
        check_cost("line", bytes, push, instructions_of(copy_line, line));
    }
    hprintln!("ok: a push is cheap");
}

fn check_cost(kind: &str, bytes: usize, push: u32, copy: u32) {
    hprintln!(
        "push of a {} of {} B: at most {} instructions, {} of them to copy",
        kind,
        bytes,
        push,
        copy
    );
    assert!(
        push <= copy + PUSH_INSTRUCTIONS_MAX,
        "a push takes too many instructions"
    );
}

/// Returns the number of instructions of the most expensive push.
fn push_instructions(format: Format, sample: &[u8]) -> u32 {
    let mut ring = Ring::<[AtomicU8; TEST_RING_BYTES]>::new();
    let (mut producer, _consumer) = ring.split(format);
    // Some samples are invalid, so that gaps begin and end; half of the pushes find no room.
    let pushes = 0..2 * TEST_RING_BYTES / sample.len();
    let each = pushes.map(|at| {
        let bytes = if at % 4 == 1 { 0 } else { sample.len() };
        instructions(|| push(&mut producer, &sample[..bytes]))
    });
    each.max().unwrap_or_default()
}

fn instructions_of(copy: fn(&[AtomicU8], &[u8]), sample: &[u8]) -> u32 {
    let cells = [const { AtomicU8::new(0) }; BYTES_MAX];
    instructions(|| copy(&cells, sample))
}

#[inline(never)]
fn push(producer: &mut Producer<'_>, sample: &[u8]) {
    let _ = black_box(producer.push(sample, 0));
}

#[inline(never)]
fn copy(cells: &[AtomicU8], bytes: &[u8]) {
    for (cell, byte) in cells.iter().zip(bytes) {
        cell.store(*byte, Ordering::Relaxed);
    }
}

/// Copies up to the end of a line.
#[inline(never)]
fn copy_line(cells: &[AtomicU8], bytes: &[u8]) {
    for (cell, byte) in cells.iter().zip(bytes) {
        cell.store(*byte, Ordering::Relaxed);
        if *byte == b'\n' {
            break;
        }
    }
}
