//! Starts and ends of a recorder, and its limits.

use super::*;
use crate::ring::{Producer, Ring};
use crate::volume::tests::Plain;
use crate::{FileId, MAGOD2, ReadClass, ReadError, Window};
use cardiograph_card::{Block, WriteError};
use core::cell::{Cell, RefCell};
use core::sync::atomic::AtomicU8;
use core::task::{Context, Waker};
use std::boxed::Box;
use std::string::String;
use std::vec;
use std::vec::Vec;

#[test]
fn only_binary_streams_with_the_same_prefix_share_a_track() {
    const BINARY: Format = Format::Binary(&[MAGOD2]);
    const CSV: Format = Format::Csv(&[MAGOD2]);
    let tracks = |streams: [(&[u8; 3], Format); 3]| {
        tracks_of(streams.map(|(prefix, format)| StreamConfig {
            prefix: *prefix,
            format,
            window: Window::Sample,
        }))
    };
    let of = |formats: [Format; 3]| {
        let [a, b, c] = formats;
        [
            tracks([(b"LOG", a), (b"LOG", b), (b"LOG", c)]),
            tracks([(b"LOG", a), (b"IMU", b), (b"LOG", c)]),
            tracks([(b"LOG", a), (b"IMU", b), (b"IMU", c)]),
            tracks([(b"LOG", a), (b"IMU", b), (b"GPS", c)]),
        ]
    };
    let apart = [0, 1, 2];
    assert_eq!(of([BINARY; 3]), [[0, 0, 0], [0, 1, 0], [0, 1, 1], apart]);
    assert_eq!(
        of([BINARY, CSV, BINARY]),
        [[0, 1, 0], [0, 1, 0], apart, apart]
    );
    assert_eq!(of([CSV; 3]), [apart; 4]);
    assert_eq!(of([CSV, BINARY, CSV]), [apart; 4]);
}

/// A card that may be missing, and takes all blocks.
struct Sink {
    is_there: bool,
}

impl BlockDevice for Sink {
    type Error = ();

    async fn acquire(&mut self) -> Result<(), ()> {
        self.is_there.then_some(()).ok_or(())
    }

    fn blocks(&self) -> u32 {
        0
    }

    async fn read(&mut self, _: u32, _: &mut [Block]) -> Result<(), ()> {
        Err(())
    }

    async fn write(&mut self, _: u32, _: &[Block]) -> Result<(), WriteError<()>> {
        unreachable!("a recorder pushes blocks")
    }

    async fn begin(&mut self, _: u32, _: u32) -> Result<(), WriteError<()>> {
        Ok(())
    }

    async fn push(&mut self, _: &Block) -> Result<(), WriteError<()>> {
        Ok(())
    }

    async fn end(&mut self) -> Result<(), WriteError<()>> {
        Ok(())
    }
}

/// A delay in which others run once.
struct Pause;

impl DelayNs for Pause {
    async fn delay_ns(&mut self, _: u32) {
        let mut is_over = false;
        poll_fn(|_| match core::mem::replace(&mut is_over, true) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
    }
}

type Tested<'a, const N: usize> =
    Recorder<'a, Sink, Plain, ErrorKind, &'a dyn Fn() -> u64, Pause, Box<dyn FnMut(Event) + 'a>, N>;

struct Outside<'a> {
    control: &'a Control,
    desk: &'a ReadDesk<'a>,
    producers: Vec<Producer<'a>>,
    events: &'a RefCell<Vec<Event>>,
}

/// Calls `test` with a recorder of these streams and the default window.
fn with<const N: usize>(
    ring_bytes: usize,
    config: Config,
    card: (bool, Plain),
    streams: [(&[u8; 3], Format); N],
    test: impl FnOnce(&mut Tested<N>, &mut Outside),
) {
    with_window(Window::default(), ring_bytes, config, card, streams, test);
}

/// Calls `test` with a recorder of these streams. Each reading of its clock takes 1 ms.
fn with_window<const N: usize>(
    window: Window,
    ring_bytes: usize,
    config: Config,
    (is_there, volume): (bool, Plain),
    streams: [(&[u8; 3], Format); N],
    test: impl FnOnce(&mut Tested<N>, &mut Outside),
) {
    let (control, now_us, events) = (Control::new(), Cell::new(0_u64), RefCell::new(vec![]));
    let mut blocks = [[0; BLOCK_BYTES]; 2];
    let desk = ReadDesk::new(&mut blocks);
    let mut rings: [_; N] = core::array::from_fn(|_| {
        let cells: Vec<AtomicU8> = (0..ring_bytes).map(|_| AtomicU8::new(0)).collect();
        Ring::over(cells)
    });
    let mut producers = vec![];
    let streams = rings.each_mut().map(|ring| {
        let (prefix, format) = streams[producers.len()];
        let (producer, consumer) = ring.split(format);
        producers.push(producer);
        let config = StreamConfig {
            prefix: *prefix,
            format,
            window,
        };
        (config, consumer)
    });
    let clock = || {
        now_us.set(now_us.get() + 1_000);
        now_us.get()
    };
    let parts = Parts {
        medium: Sink { is_there },
        volume,
        clock: &clock as &dyn Fn() -> u64,
        delay: Pause,
        events: Box::new(|event| events.borrow_mut().push(event)) as Box<dyn FnMut(Event)>,
        control: &control,
        reads: Some(&desk),
    };
    let mut outside = Outside {
        control: &control,
        desk: &desk,
        producers,
        events: &events,
    };
    test(&mut Recorder::new(parts, config, streams), &mut outside);
}

const LINES: Format = Format::Lines {
    header: "",
    line_bytes_max: 80,
};
const STREAM: [(&[u8; 3], Format); 1] = [(b"LOG", LINES)];

/// Returns the result of the check of a recorder, as text.
fn checked<const N: usize>(
    ring_bytes: usize,
    file_bytes: u32,
    streams: [(&[u8; 3], Format); N],
) -> String {
    let config = Config {
        file_bytes,
        ..Config::default()
    };
    let (mut result, card) = (String::new(), (false, Plain::default()));
    with(ring_bytes, config, card, streams, |recorder, _| {
        result = std::format!("{:?}", recorder.check());
    });
    result
}

#[test]
fn a_recorder_within_its_limits_may_begin() {
    assert_eq!(checked(1_024, 65_536, STREAM), "Ok(())");
    assert_eq!(checked(1_023, 65_536, STREAM), "Err(RingTooSmall)");
    assert_eq!(checked(1_024, 65_535, STREAM), "Err(FileTooSmall)");
    assert_eq!(checked(1_024, 511, STREAM), "Err(FileTooSmall)");
    let long = Format::Lines {
        header: "",
        line_bytes_max: 406,
    };
    assert_eq!(checked(1_024, 65_536, [(b"LOG", long)]), "Err(LineTooLong)");
    assert_eq!(checked(1_024, 65_536, []), "Err(Streams)");
    let four = [b"AAA", b"BBB", b"CCC", b"DDD"].map(|prefix| (prefix, LINES));
    assert_eq!(checked(1_024, 65_536, four), "Ok(())");
    let five = [b"AAA", b"BBB", b"CCC", b"DDD", b"EEE"].map(|prefix| (prefix, LINES));
    assert_eq!(checked(1_024, 65_536, five), "Err(Streams)");
    let same = [b"AAA", b"BBB", b"AAA"].map(|prefix| (prefix, LINES));
    assert_eq!(checked(1_024, 65_536, same), "Err(SamePrefix)");
    let shared = [b"AAA"; 2].map(|prefix| (prefix, Format::Binary(&[MAGOD2])));
    assert_eq!(checked(1_024, 65_536, shared), "Ok(())");
}

const POLLS_MAX: u32 = 2_000;
/// Poll after which a test stops a recording.
const STOP: u32 = 1_800;

/// Polls a future until it is done, and calls `meanwhile` after each poll.
fn run<T>(future: impl Future<Output = T>, mut meanwhile: impl FnMut()) -> Option<T> {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    for _ in 0..POLLS_MAX {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Some(output);
        }
        meanwhile();
    }
    None
}

/// Returns a card that is missing, and one that cannot be read.
fn failing_cards() -> [(bool, Plain); 2] {
    let unreadable = Plain {
        reads: true,
        ..Plain::default()
    };
    [(false, Plain::default()), (true, unreadable)]
}

/// Returns the result of a run as text, and the events; `None` if the run does not end. Readers see this many mounts and
/// changes.
fn ran(config: Config, card: (bool, Plain), changes: u32) -> (Option<String>, Vec<Event>) {
    let mut output = (None, vec![]);
    with(1_024, config, card, STREAM, |recorder, outside| {
        let control = outside.control;
        let ended = run(recorder.run(), || {
            if control.is_ready() {
                control.stop();
            }
        });
        let text = |summaries: [StreamSummary; 1]| summaries[0].files;
        output.0 = ended.map(|ended| std::format!("{:?}", ended.map(text)));
        output.1 = outside.events.borrow().clone();
        // Without a recorder, no task waits.
        let lend = run(outside.desk.lend(1, 1, ReadClass::Bulk, 0), || ());
        let error = lend.map(|lend| lend.map(|_| ()));
        assert_eq!(error.is_some(), output.0.is_some());
        assert_eq!(outside.desk.generation(), changes);
    });
    output
}

/// Before sampling begins, any failure ends the run. With `waits_for_room`, a full card is none.
#[test]
fn a_run_ends_with_the_failure_of_its_beginning() {
    use ErrorKind::{NoRoom, Volume};
    for card in failing_cards() {
        let no_card = ran(Config::default(), card, 0).0;
        assert_eq!(no_card.as_deref(), Some("Err(Card(()))"));
    }
    for (mount, reserved, waiting, ending) in [
        (
            Some(Volume),
            Ok(128),
            Some("Err(Volume(Volume))"),
            "Err(Volume(Volume))",
        ),
        (
            Some(NoRoom),
            Ok(128),
            Some("Err(Volume(NoRoom))"),
            "Err(Volume(NoRoom))",
        ),
        (
            None,
            Err(Volume),
            Some("Err(Volume(Volume))"),
            "Err(Volume(Volume))",
        ),
        (None, Err(NoRoom), None, "Err(Volume(NoRoom))"),
        (None, Ok(128), Some("Ok(0)"), "Ok(0)"),
    ] {
        for waits_for_room in [true, false] {
            let config = Config {
                waits_for_room,
                ..Config::default()
            };
            let volume = Plain {
                mount,
                reserved: vec![reserved],
                next_number: 9,
                ..Plain::default()
            };
            let changes = u32::from(mount.is_none());
            let (ended, events) = ran(config, (true, volume), changes);
            let expected = if waits_for_room {
                waiting
            } else {
                Some(ending)
            };
            assert_eq!(ended.as_deref(), expected, "{mount:?} {reserved:?}");
            let full = events.iter().filter(|it| matches!(it, Event::Full { .. }));
            let is_waiting = expected.is_none();
            assert_eq!(full.count() == 1, is_waiting, "{events:?}");
            let number = events.iter().find_map(|event| match event {
                Event::Opened { id, .. } => Some(id.number),
                _ => None,
            });
            let is_open = mount.is_none() && reserved.is_ok();
            assert_eq!(number, is_open.then_some(9));
        }
    }
}

#[test]
fn the_oldest_recording_is_removed_to_make_room_for_the_first_file() {
    let id = |number| FileId {
        prefix: *b"LOG",
        extension: *b"CSV",
        number,
    };
    for (old, expected) in [
        (vec![id(3)], Some("Ok(0)")),
        (vec![], Some("Err(Volume(NoRoom))")),
    ] {
        let config = Config {
            when_full: WhenFull::RemoveOldest,
            ..Config::default()
        };
        let volume = Plain {
            reserved: vec![Ok(128), Err(ErrorKind::NoRoom)],
            old: old.clone(),
            ..Plain::default()
        };
        // The mount, and the beginning and the end of a removal.
        let changes = 2 + old.len() as u32;
        let (ended, events) = ran(config, (true, volume), changes);
        assert_eq!(ended.as_deref(), expected);
        let removed = events.iter().filter_map(|event| match event {
            Event::Removed { id } => Some(*id),
            _ => None,
        });
        assert!(removed.eq(old));
    }
}

#[test]
fn a_durability_window_of_less_than_a_millisecond_is_refused() {
    for (window, expected) in [
        (Window::Us(0), "Err(WindowTooShort)"),
        (Window::Us(1), "Err(WindowTooShort)"),
        (Window::Us(999), "Err(WindowTooShort)"),
        (Window::Us(1_000), "Ok(())"),
        (Window::Sample, "Ok(())"),
    ] {
        let card = (false, Plain::default());
        with_window(
            window,
            1_024,
            Config::default(),
            card,
            STREAM,
            |recorder, _| {
                assert_eq!(
                    std::format!("{:?}", recorder.check()),
                    expected,
                    "{window:?}"
                );
            },
        );
    }
}

#[test]
fn a_run_whose_rings_are_too_small_does_not_begin() {
    let card = (true, Plain::default());
    with(
        1_023,
        Config::default(),
        card,
        STREAM,
        |recorder, outside| {
            let ended = run(recorder.run(), || ());
            assert!(matches!(ended, Some(Err(StartError::RingTooSmall))));
            assert!(outside.events.borrow().is_empty());
        },
    );
}

/// Setup: after the first file, there is no room for another one.
#[test]
fn a_card_that_becomes_full_does_not_end_the_recording() {
    let volume = Plain {
        reserved: vec![Ok(128)],
        ..Plain::default()
    };
    let config = Config::default();
    with(
        1_024,
        config,
        (true, volume),
        STREAM,
        |recorder, outside| {
            let (control, events) = (outside.control, outside.events);
            let producer = &mut outside.producers[0];
            let (mut polls, line) = (0, std::format!("{:79}\n", "sample"));
            let ended = run(recorder.run(), || {
                if control.is_ready() {
                    // Some samples find no room.
                    for _ in 0..4 {
                        let _ = producer.push(line.as_bytes(), 0);
                    }
                }
                polls += 1;
                if polls == STOP {
                    control.stop();
                }
            });
            assert_eq!(polls, STOP, "only the stop ends it");
            let [summary] = ended.unwrap().unwrap();
            assert!(summary.lost > 0 && summary.files == 1);
            let events = events.borrow();
            assert!(events.iter().any(|it| matches!(it, Event::Full { .. })));
        },
    );
}

/// The card may come back, so that only the caller ends the serving of other tasks.
#[test]
fn other_tasks_are_served_until_the_caller_ends_it() {
    let unusable = Plain {
        mount: Some(ErrorKind::Volume),
        ..Plain::default()
    };
    for card in failing_cards().into_iter().chain([(true, unusable)]) {
        with(
            1_024,
            Config::default(),
            card,
            STREAM,
            |recorder, outside| {
                let asked = Cell::new(0);
                let is_over = || {
                    asked.set(asked.get() + 1);
                    asked.get() >= 500
                };
                assert!(matches!(run(recorder.serve(is_over), || ()), Some(Ok(()))));
                assert_eq!(asked.get(), 500);
                let lend = run(outside.desk.lend(1, 1, ReadClass::Bulk, 0), || ());
                let error = lend.map(|lend| lend.map(|_| ()));
                assert_eq!(error, Some(Err(ReadError::Closed)));
            },
        );
    }
}
