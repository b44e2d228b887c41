//! Several binary streams in one file: random schedules, card failures, rotations, sessions, and small files
//! that are filled to their ends, compared with an independent decoder.

use super::encoder::Filled;
use super::test_decoder::{Part, assert_closed, check_order, decode};
use super::{Column, Encoder, FilePosition, Format, Kind, MAGOD2, Schema};
use crate::gap::Cause;
use crate::limits::HEADER_BLOCKS;
use crate::ring::{Consumer, Next, Producer, Ring};
use crate::session::Session;
use crate::volume::{Blocks, Extent, Reserved};
use crate::{Recovered, find_end};
use cardiograph_card::Block;
use core::pin::pin;
use core::sync::atomic::AtomicU8;
use core::task::{Context, Poll, Waker};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::collections::BTreeMap;
use std::vec::Vec;
use std::{format, vec};

pub(super) const fn column(name: &'static str, kind: Kind) -> Column {
    Column { name, kind }
}

pub(super) const SMALL: Schema = Schema::new(&[
    column("time_us", Kind::U32),
    column("level", Kind::I16),
    column("state", Kind::U8),
]);
/// A schema with names so long that its header needs two blocks.
pub(super) const WIDE: Schema = Schema::new(&[
    column("the_first_of_many_columns_with_a_long_name_v", Kind::U64),
    column("the_second_of_many_columns_with_a_long_name_v", Kind::U64),
    column("the_third_of_many_columns_with_a_long_name_v", Kind::U64),
    column("the_fourth_of_many_columns_with_a_long_name_v", Kind::U64),
    column("the_fifth_of_many_columns_with_a_long_name_v", Kind::U64),
    column("the_sixth_of_many_columns_with_a_long_name_v", Kind::U64),
    column("the_seventh_of_columns_with_a_long_name_v", Kind::U64),
]);
static SCHEMAS: [Schema; 3] = [SMALL, MAGOD2, WIDE];
const FORMAT: Format = Format::Binary(&SCHEMAS);
const NUMBER: u32 = 40;

/// Returns the bytes of a sample, derived from its stream and index.
fn sample(stream: u8, index: u64, bytes: usize) -> Vec<u8> {
    let mut state = index * 131 + u64::from(stream) + 1;
    let next = |_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 56) as u8
    };
    (0..bytes).map(next).collect()
}

struct Stream<'a> {
    encoder: Encoder,
    producer: Producer<'a>,
    consumer: Consumer<'a>,
    /// Schema of the samples being pushed.
    schema: u8,
    /// True while a session is in the ring.
    is_changing: bool,
    sessions: u32,
}

struct File {
    epoch: u32,
    number: u32,
    blocks: Vec<Block>,
    durable: usize,
}

/// A simplified planner, without a card.
struct Track<'a> {
    streams: Vec<Stream<'a>>,
    position: FilePosition,
    file_blocks: u32,
    files: Vec<File>,
    now_us: u64,
    settings_bytes: usize,
}

impl<'a> Track<'a> {
    fn new(rings: &'a mut [Ring<Vec<AtomicU8>>], file_blocks: u32) -> Self {
        let streams: Vec<Stream> = (0..)
            .zip(rings)
            .map(|(at, ring)| {
                let (producer, consumer) = ring.split(FORMAT);
                Stream {
                    encoder: Encoder::new(FORMAT, *b"LOG", at),
                    producer,
                    consumer,
                    schema: 0,
                    is_changing: false,
                    sessions: 0,
                }
            })
            .collect();
        let mut track = Track {
            streams,
            position: FilePosition::new(0, 0, 0, 1, 0),
            file_blocks,
            files: vec![],
            now_us: 1_000_000,
            settings_bytes: 96,
        };
        track.begin(None);
        track
    }

    fn begin(&mut self, session: Option<(usize, Session)>) {
        assert!(self.files.len() < 5000, "too many files: no progress");
        let number = self.files.len() as u32;
        let streams = self.streams.len() as u8;
        let (epoch, own_number) = (0xE000 + number, NUMBER + number);
        self.position =
            FilePosition::new(epoch, own_number, self.file_blocks, streams, self.now_us);
        self.files.push(File {
            epoch: self.position.epoch,
            number: self.position.number,
            blocks: vec![],
            durable: 0,
        });
        for (at, stream) in self.streams.iter_mut().enumerate() {
            let own = session.filter(|(of, _)| *of == at).map(|(_, it)| it);
            stream.encoder.start(own);
        }
    }

    fn push(&mut self, at: usize) {
        let stream = &mut self.streams[at];
        let bytes = SCHEMAS[usize::from(stream.schema)].sample_bytes();
        let sample = sample(at as u8, stream.producer.pushed(), bytes);
        let _ = stream.producer.push(&sample, self.now_us);
        self.now_us += 700;
    }

    fn write(&mut self, at: usize) {
        let stream = &mut self.streams[at];
        assert!(
            !self.position.is_full(),
            "the file has no room for a partial block"
        );
        self.position.set_age(self.now_us);
        let file = self.files.last_mut().unwrap();
        file.blocks.push(*stream.encoder.block(&self.position));
        stream.encoder.advance(&self.position);
        self.position.index += 1;
    }

    /// Fills one block of a stream; returns true if it made progress.
    fn fill(&mut self, at: usize) -> bool {
        let stream = &mut self.streams[at];
        let consumer = &mut stream.consumer;
        let (filled, _) = stream.encoder.fill(&self.position, consumer, usize::MAX);
        match filled {
            Filled::Full => self.write(at),
            Filled::Dry => return false,
            Filled::Boundary => self.roll(),
        }
        true
    }

    /// Makes everything in blocks durable.
    fn checkpoint(&mut self) {
        for at in 0..self.streams.len() {
            loop {
                let stream = &mut self.streams[at];
                match stream.encoder.mark(&self.position, &mut stream.consumer) {
                    Filled::Full => self.write(at),
                    Filled::Dry => break,
                    Filled::Boundary => panic!("the file has no room to complete partial blocks"),
                }
            }
        }
        self.position.durable = self.position.index;
        let file = self.files.last_mut().unwrap();
        file.durable = file.blocks.len();
        for stream in &mut self.streams {
            stream.encoder.commit();
            assert!(stream.encoder.is_marked());
        }
    }

    fn roll(&mut self) {
        self.checkpoint();
        let mut session = None;
        for (at, stream) in self.streams.iter_mut().enumerate() {
            if session.is_none()
                && stream.consumer.next() == Next::Session
                && let Some(taken) = stream.consumer.take_session()
            {
                stream.is_changing = false;
                session = Some((at, taken));
            }
        }
        self.begin(session);
    }

    /// The card fails and comes back: only durable data is left.
    fn fail(&mut self) {
        let file = self.files.last_mut().unwrap();
        file.blocks.truncate(file.durable);
        self.now_us += 50_000;
        for stream in &mut self.streams {
            stream.encoder.lose_blocks(self.now_us, Cause::NoCard);
        }
        self.begin(None);
    }

    fn session(&mut self, at: usize, schema: u8) {
        let stream = &mut self.streams[at];
        if stream.is_changing {
            return;
        }
        stream.sessions += 1;
        let settings = "x".repeat(self.settings_bytes);
        let name = format!("s-{at}-{}", stream.sessions);
        let schema_of = &SCHEMAS[usize::from(schema)];
        let session = Session::new(&name, Some(schema_of), &settings, &FORMAT).unwrap();
        if stream.producer.begin_session(&session).is_err() {
            return;
        }
        (stream.schema, stream.is_changing) = (schema, true);
    }

    fn finish(&mut self) {
        for stream in &mut self.streams {
            stream.producer.close();
        }
        loop {
            let mut wrote = false;
            for at in 0..self.streams.len() {
                wrote |= self.fill(at);
            }
            if !wrote {
                break;
            }
        }
        self.checkpoint();
    }

    /// Checks that everything pushed is in exactly one place, in order and unchanged.
    fn check(&self) {
        let mut files = vec![];
        for file in &self.files {
            assert!(file.blocks.len() <= self.file_blocks as usize);
            let parts = decode(&file.blocks, file.epoch, file.number);
            assert_closed(&parts);
            files.push(parts);
        }
        for (at, stream) in (0_u8..).zip(&self.streams) {
            check_order(&files, at, stream.producer.pushed()).unwrap();
            let mut lost = 0;
            for part in files.iter().filter_map(|file| file.get(&at)) {
                lost += part.lost();
                for (index, bytes) in &part.samples {
                    assert_eq!(*bytes, sample(at, *index, bytes.len()), "sample {index}");
                }
                for gap in &part.gaps {
                    assert!(gap[2] <= gap[3] && gap[3] <= self.now_us);
                }
            }
            let durable = stream.encoder.account().durable();
            assert_eq!(
                (durable.next, durable.lost),
                (stream.producer.pushed(), lost)
            );
        }
    }

    /// Recovers each file, both complete and truncated at some block.
    fn check_recovery(&self, cut: usize) {
        for file in &self.files {
            let cut = cut % (file.blocks.len() + 1);
            for blocks in [&file.blocks[..], &file.blocks[..cut]] {
                let parts = decode(blocks, file.epoch, file.number);
                let recovered = recover(blocks, file.epoch, self.file_blocks);
                assert_eq!(recovered, expected(&parts, blocks.len(), file.number));
            }
        }
    }
}

fn expected(parts: &BTreeMap<u8, Part>, blocks: usize, number: u32) -> Recovered {
    if blocks == 0 {
        return Recovered::default();
    }
    let mut sum = Recovered {
        bytes: blocks as u64 * 512,
        number: Some(number),
        first_us: u64::MAX,
        ..Recovered::default()
    };
    for part in parts.values() {
        sum.samples += part.samples.len() as u64;
        sum.gaps += part.gaps.len() as u32;
        sum.lost += part.lost();
        let Some(at_us) = part.keys.get("at_us") else {
            continue;
        };
        let at_us = at_us.parse().unwrap();
        sum.first_us = sum.first_us.min(at_us);
        sum.last_us = sum.last_us.max(at_us + u64::from(part.age_ms) * 1000);
    }
    sum
}

struct Card<'a>(&'a [Block]);

impl Blocks for Card<'_> {
    type Error = ();

    fn blocks(&self) -> u32 {
        u32::MAX
    }

    async fn read(&mut self, start: u32, blocks: &mut [Block]) -> Result<(), ()> {
        for (at, block) in (start as usize..).zip(blocks) {
            *block = *self.0.get(at).unwrap_or(&[0xA5; 512]);
        }
        Ok(())
    }

    async fn write(
        &mut self,
        _: u32,
        _: u32,
        _: &mut dyn FnMut(u32, &mut Block),
    ) -> Result<(), ()> {
        Err(())
    }
}

fn recover_as(blocks: &[Block], epoch: u32, file_blocks: u32, note: u32) -> Recovered {
    let file = Reserved {
        slot: 0,
        prefix: *b"LOG",
        extension: *b"BIN",
        id: None,
        is_version_0_1: false,
        extent: Extent {
            start: 0,
            blocks: file_blocks,
        },
        epoch,
        note,
    };
    let mut card = Card(blocks);
    let future = pin!(find_end(&mut card, &file));
    match future.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(recovered) => recovered.unwrap(),
        Poll::Pending => unreachable!("a card in memory never waits"),
    }
}

fn recover(blocks: &[Block], epoch: u32, file_blocks: u32) -> Recovered {
    let recovered = recover_as(blocks, epoch, file_blocks, 1);
    // The session is compared elsewhere.
    Recovered {
        session: None,
        ..recovered
    }
}

fn rings(count: usize, bytes: usize) -> Vec<Ring<Vec<AtomicU8>>> {
    let cells = || (0..bytes).map(|_| AtomicU8::new(0)).collect();
    (0..count).map(|_| Ring::over(cells())).collect()
}

#[derive(Clone, Debug)]
enum Op {
    Push(usize, u8),
    Fill(usize),
    Checkpoint,
    Roll,
    Fail,
    Session(usize, u8),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        12 => (0..4_usize, 1..40_u8).prop_map(|(at, count)| Op::Push(at, count)),
        12 => (0..4_usize).prop_map(Op::Fill),
        3 => Just(Op::Checkpoint),
        1 => Just(Op::Roll),
        1 => Just(Op::Fail),
        1 => (0..4_usize, 0..3_u8).prop_map(|(at, schema)| Op::Session(at, schema)),
    ]
}

fn run(streams: usize, file_blocks: u32, ring_bytes: usize, ops: &[Op], cut: usize) {
    let mut rings = rings(streams, ring_bytes);
    let mut track = Track::new(&mut rings, file_blocks);
    for op in ops {
        match *op {
            Op::Push(at, count) => (0..count).for_each(|_| track.push(at % streams)),
            Op::Fill(at) => drop(track.fill(at % streams)),
            Op::Checkpoint => track.checkpoint(),
            Op::Roll => track.roll(),
            Op::Fail => track.fail(),
            Op::Session(at, schema) => track.session(at % streams, schema),
        }
    }
    track.finish();
    track.check();
    track.check_recovery(cut);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 600,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(10),
        ..ProptestConfig::default()
    })]

    #[test]
    fn nothing_is_lost_or_torn_whatever_the_schedule(
        streams in 1..=4_usize,
        spare in 0..40_u32,
        ring_bytes in 300..3000_usize,
        ops in prop::collection::vec(op(), 1..200),
        cut in 0..1000_usize,
    ) {
        // Room for the header of each stream, and a block after it.
        let file_blocks = 4 * streams as u32 + spare;
        run(streams, file_blocks, ring_bytes, &ops, cut);
    }

    /// Recovery ends and does not panic, whatever the card contains. Some cases have valid checksums.
    #[test]
    fn garbage_is_recovered_without_a_panic(
        mut bytes in prop::collection::vec(any::<u8>(), 512 * 6),
        damage in prop::collection::vec((0..6 * 512_usize, any::<u8>()), 0..12),
        is_sealed in any::<bool>(),
        is_text in any::<bool>(),
        note in 0..2_u32,
    ) {
        let mut rings = rings(2, 2000);
        let mut track = Track::new(&mut rings, 16);
        (0..60).for_each(|at| track.push(at % 2));
        track.finish();
        let real: Vec<u8> = track.files[0].blocks.iter().flatten().copied().collect();
        if bytes[0] & 3 > 0 {
            let len = real.len().min(bytes.len());
            bytes[..len].copy_from_slice(&real[..len]);
        }
        for (at, value) in damage {
            bytes[at] = value;
        }
        let mut blocks = bytes.as_chunks::<512>().0.to_vec();
        for (index, block) in blocks.iter_mut().enumerate() {
            if is_text {
                let tail = format!("@0000E000 {index:08X} 00000002 00000000 00000000 00000000 00000000 ");
                block[438..502].copy_from_slice(&tail.as_bytes()[..64]);
                block[510..].copy_from_slice(b"\r\n");
                let crc = crate::crc32::crc32(0, &block[..502]);
                block[502..510].copy_from_slice(format!("{crc:08X}").as_bytes());
            } else if is_sealed {
                block[..4].copy_from_slice(&0xE000_u32.to_le_bytes());
                block[4..8].copy_from_slice(&(index as u32).to_le_bytes());
                let crc = crate::crc32::crc32(0, &block[..508]);
                block[508..].copy_from_slice(&crc.to_le_bytes());
            }
        }
        for file_blocks in [0, 1, 5, 6, 200] {
            let recovered = recover_as(&blocks, 0xE000, file_blocks, note);
            prop_assert!(recovered.bytes <= u64::from(file_blocks) * 512);
        }
    }
}

/// Fills files to their ends (2 to 5 blocks for one stream, 8 to 14 for two), with samples of both lengths
/// in bursts of 1 to 40.
#[test]
fn small_files_are_filled_to_their_ends() {
    for streams in [1, 2] {
        for blocks in 2..=5 {
            for schema in [0, 1] {
                for burst in 1..=40 {
                    let file_blocks = blocks * streams + (streams - 1) * 4;
                    fill_small(streams as usize, file_blocks, schema, burst);
                }
            }
        }
    }
}

/// A few of these files, for a quick answer.
#[test]
fn some_small_files_are_filled_to_their_ends() {
    for (streams, file_blocks) in [(1, 2), (1, 3), (1, 5), (2, 8), (2, 9)] {
        for (schema, burst) in [(0, 7), (1, 1), (1, 9)] {
            fill_small(streams, file_blocks, schema, burst);
        }
    }
}

fn fill_small(streams: usize, file_blocks: u32, schema: u8, burst: u32) {
    let mut rings = rings(streams, 6000);
    let mut track = Track::new(&mut rings, file_blocks);
    // Without settings the header needs one block.
    track.settings_bytes = 0;
    for at in 0..streams {
        track.session(at, schema);
    }
    for round in 0..60 {
        for at in 0..streams {
            (0..burst).for_each(|_| track.push(at));
            while track.fill(at) {}
        }
        if round % 7 == 0 {
            track.checkpoint();
        }
    }
    track.finish();
    track.check();
    track.check_recovery(file_blocks as usize / 2);
    // The first files end where sessions begin.
    let full = track.files.iter().skip(streams + 1).rev().skip(1);
    for file in full {
        let left = file_blocks as usize - file.blocks.len();
        // A stream without a header yet needs more room than one block.
        let most = if streams == 1 { 0 } else { streams };
        assert!(left <= most, "{left} of {file_blocks} blocks are empty");
    }
}

/// A stream with few samples still has its header and totals near the end of the file.
#[test]
fn totals_of_a_quiet_stream_are_found_near_the_end() {
    let mut rings = rings(3, 4000);
    let file_blocks = 4 * HEADER_BLOCKS;
    let mut track = Track::new(&mut rings, file_blocks);
    (0..3).for_each(|_| track.push(2));
    while track.fill(2) {}
    track.checkpoint();
    while track.position.index < 3 * HEADER_BLOCKS + 100 {
        (0..30).for_each(|_| track.push(0));
        (0..3).for_each(|at| while track.fill(at) {});
    }
    track.finish();
    track.check();
    let file = &track.files[0];
    let parts = decode(&file.blocks, file.epoch, file.number);
    assert_eq!(parts[&2].samples.len(), 3);
    for cut in [HEADER_BLOCKS as usize + 900, file.blocks.len()] {
        let parts = decode(&file.blocks[..cut], file.epoch, file.number);
        let recovered = recover(&file.blocks[..cut], file.epoch, file_blocks);
        assert_eq!(recovered, expected(&parts, cut, file.number));
    }
}

/// The header contains the given fields.
#[test]
fn a_header_contains_its_session() {
    let mut rings = rings(1, 4000);
    let mut track = Track::new(&mut rings, 64);
    (0..5).for_each(|_| track.push(0));
    track.session(0, 2);
    (0..5).for_each(|_| track.push(0));
    track.finish();
    track.check();
    let file = &track.files[1];
    let parts = decode(&file.blocks, file.epoch, file.number);
    let keys = &parts[&0].keys;
    assert_eq!((&keys["prefix"][..], &keys["number"][..]), ("LOG", "41"));
    assert_eq!((&keys["session"][..], &keys["first"][..]), ("s-0-1", "5"));
    assert_eq!(
        (&keys["settings"][..], &keys["columns"][..]),
        (&"x".repeat(96)[..], "7")
    );
    let recovered = recover_as(&file.blocks, file.epoch, 64, 1);
    assert_eq!(recovered.session.unwrap().as_str(), "s-0-1");
}
