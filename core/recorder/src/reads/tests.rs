//! A desk, its readers, and a recorder that carries out what the test says.

use super::*;
use crate::event::Event;
use crate::gap::Cause;
use crate::volume::{Extent, ShortText};
use crate::waker_queue::tests::Wakes;
use core::pin::{Pin, pin};
use core::task::Poll::{Pending, Ready};
use std::sync::Arc;
use std::vec;
use std::vec::Vec;

const BUFFER_BLOCKS: usize = 4;
const SECOND_US: u64 = 1_000_000;

fn poll<T>(future: Pin<&mut impl Future<Output = T>>) -> Poll<T> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// The content of a block of the card.
fn content(block: u32) -> Block {
    let mut content = [7; BLOCK_BYTES];
    content[..4].copy_from_slice(&block.to_le_bytes());
    content
}

/// Carries out the next read, which ends at `now_us` and costs `card_us`; returns its first block and length.
fn serve(desk: &ReadDesk, card_us: u32, now_us: u64) -> Option<(u32, usize)> {
    let mut job = desk.begin()?;
    let (start, count) = (job.start, job.blocks().len());
    for (at, block) in (start..).zip(job.blocks()) {
        *block = content(at);
    }
    desk.end(job, Ok(()), card_us, now_us);
    Some((start, count))
}

fn error_of(result: Poll<Result<Lent, ReadError>>) -> Option<ReadError> {
    match result {
        Ready(Err(error)) => Some(error),
        _ => None,
    }
}

fn with_buffers(count: usize, test: impl FnOnce(&ReadDesk)) {
    let mut blocks = vec![[0; BLOCK_BYTES]; BUFFER_BLOCKS * count];
    test(&ReadDesk::with_buffers(&mut blocks, count));
}

#[test]
fn a_read_gets_the_blocks_that_fit_into_a_buffer() {
    for (wanted, read) in [(0, 1), (1, 1), (3, 3), (4, 4), (5, 4), (u32::MAX, 4)] {
        with_buffers(2, |desk| {
            assert_eq!(desk.buffer_bytes(), 4 * 512);
            assert!(!desk.is_pending() && desk.begin().is_none());
            let mut lend = pin!(desk.lend(100, wanted, ReadClass::Bulk, 0));
            assert!(poll(lend.as_mut()).is_pending() && desk.is_pending());
            assert_eq!(serve(desk, 30, 0), Some((100, read)));
            let Ready(Ok(lent)) = poll(lend.as_mut()) else {
                panic!("the read is done");
            };
            let expected: Vec<Block> = (100..).take(read).map(content).collect();
            assert_eq!(lent.to_vec(), expected);
            assert_eq!(lent.bytes(), expected.as_flattened());
            assert!(!desk.is_pending());
        });
    }
}

#[test]
fn a_long_read_is_made_of_several() {
    with_buffers(1, |desk| {
        let mut out = [[0; BLOCK_BYTES]; 10];
        {
            let mut read = pin!(desk.read(50, &mut out));
            for piece in [(50, 4), (54, 4), (58, 2)] {
                assert!(poll(read.as_mut()).is_pending());
                assert_eq!(serve(desk, 30, 0), Some(piece));
            }
            assert_eq!(poll(read), Ready(Ok(())));
        }
        let expected: Vec<Block> = (50..60).map(content).collect();
        assert_eq!(out.to_vec(), expected);
    });
}

#[test]
fn the_tally_counts_reads_blocks_and_card_time() {
    with_buffers(1, |desk| {
        for (count, card_us, times) in [(3, 500, 1), (4, 900, 2), (1, 200, 3), (1, 200, 0)] {
            let mut lend = pin!(desk.lend(9, count, ReadClass::Bulk, 0));
            assert!(poll(lend.as_mut()).is_pending());
            // However often it is put off, it is one read.
            (0..times).for_each(|_| desk.postpone());
            assert!(serve(desk, card_us, 0).is_some());
            assert!(poll(lend).is_ready());
        }
        let mut failed = pin!(desk.lend(9, 2, ReadClass::Bulk, 0));
        assert!(poll(failed.as_mut()).is_pending());
        let job = desk.begin().unwrap();
        desk.end(job, Err(ReadError::CardFailed), 100, 0);
        assert_eq!(error_of(poll(failed)), Some(ReadError::CardFailed));
        let expected = ReadTally {
            reads: 5,
            blocks: 9,
            card_us: 1_900,
            card_us_max: 900,
            put_off: 3,
        };
        assert_eq!(desk.tally(), expected);
    });
}

#[test]
fn short_reads_come_first_and_have_a_buffer_of_their_own() {
    with_buffers(2, |desk| {
        let lend = |start, class| desk.lend(start, 1, class, 0);
        let mut bulk = [10, 20].map(|start| std::boxed::Box::pin(lend(start, ReadClass::Bulk)));
        for bulk in &mut bulk {
            assert!(poll(bulk.as_mut()).is_pending());
        }
        let mut short = pin!(lend(30, ReadClass::Short));
        assert!(poll(short.as_mut()).is_pending());
        assert_eq!(serve(desk, 1, 0), Some((30, 1)));
        let short = poll(short);
        assert!(matches!(short, Ready(Ok(_))));
        // The only free buffer is reserved.
        assert_eq!(serve(desk, 1, 0), None);
        drop(short);
        assert_eq!(serve(desk, 1, 0), Some((10, 1)));
        let [first, second] = &mut bulk;
        let first = poll(first.as_mut());
        assert!(matches!(first, Ready(Ok(_))));
        assert!(!desk.is_pending());
        drop(first);
        assert!(desk.is_pending());
        assert_eq!(serve(desk, 1, 0), Some((20, 1)));
        assert!(poll(second.as_mut()).is_ready());
    });
}

#[test]
fn blocks_of_a_short_read_are_lent_again_until_they_may_have_changed() {
    /// Returns the blocks that are lent at once.
    fn at_once(desk: &ReadDesk, start: u32, count: u32, generation: u32) -> Option<Vec<u32>> {
        let lent = pin!(desk.lend(start, count, ReadClass::Short, generation));
        match poll(lent) {
            Ready(Ok(lent)) => {
                let number = |block: &Block| u32::from_le_bytes([block[0], block[1], 0, 0]);
                Some(lent.iter().map(number).collect())
            }
            _ => None,
        }
    }
    for (class, is_held) in [(ReadClass::Short, true), (ReadClass::Bulk, false)] {
        with_buffers(2, |desk| {
            let mut lend = pin!(desk.lend(100, 4, class, 0));
            assert!(poll(lend.as_mut()).is_pending());
            assert!(serve(desk, 1, 0).is_some());
            assert!(poll(lend).is_ready());
            assert_eq!(at_once(desk, 101, 2, 0).is_some(), is_held);
        });
    }
    type Change = fn(&ReadDesk);
    let changes: [(Change, bool); 6] = [
        (|_| (), true),
        (|desk| desk.note_write(103, 1), false),
        (|desk| desk.note_write(104, 1), true),
        (|desk| desk.note_change(), false),
        (|desk| desk.refuse(), false),
        (|desk| desk.close(), false),
    ];
    for (change, is_held) in changes {
        with_buffers(2, |desk| {
            let mut lend = pin!(desk.lend(100, 4, ReadClass::Short, 0));
            assert!(poll(lend.as_mut()).is_pending());
            assert!(serve(desk, 1, 0).is_some());
            assert!(poll(lend).is_ready());
            assert_eq!(at_once(desk, 102, 9, 0), Some(vec![102, 103]));
            assert_eq!(at_once(desk, 101, 2, 0), Some(vec![101, 102]));
            assert_eq!(at_once(desk, 101, 0, 0), Some(vec![101]));
            assert_eq!(at_once(desk, 101, 1, 999), None, "another generation");
            change(desk);
            let blocks = is_held.then(|| vec![100]);
            assert_eq!(at_once(desk, 100, 1, 0), blocks);
        });
    }
}

#[test]
fn blocks_that_were_located_before_a_change_are_not_read() {
    with_buffers(1, |desk| {
        let error = |generation| {
            let lend = pin!(desk.lend(1, 1, ReadClass::Bulk, generation));
            error_of(poll(lend))
        };
        desk.set_mounted(None);
        let first = desk.generation();
        assert_eq!((first, error(first), error(0)), (1, None, None));
        desk.note_change();
        let second = desk.generation();
        assert_eq!(error(first), Some(ReadError::Changed));
        assert_eq!((error(second), error(0)), (None, None));
        assert!(!desk.is_other_card(first) && !desk.is_other_card(second));
        // Requests that wait fail, too.
        let mut waiting = pin!(desk.lend(1, 1, ReadClass::Bulk, second));
        assert!(poll(waiting.as_mut()).is_pending());
        desk.set_mounted(None);
        assert_eq!(error_of(poll(waiting)), Some(ReadError::OtherCard));
        for old in [first, second] {
            assert_eq!(error(old), Some(ReadError::OtherCard));
            assert!(desk.is_other_card(old));
        }
        desk.note_change();
        assert_eq!(error(second), Some(ReadError::OtherCard));
        assert_eq!(error(desk.generation() - 1), Some(ReadError::Changed));
        assert_eq!(error(0), None);
    });
}

#[test]
fn reads_fail_after_10_s_without_any() {
    with_buffers(1, |desk| {
        let start_us = 7 * SECOND_US;
        assert!(!desk.poll_pending(0));
        let mut first = pin!(desk.lend(1, 1, ReadClass::Bulk, 0));
        let mut second = pin!(desk.lend(2, 1, ReadClass::Bulk, 0));
        assert!(poll(first.as_mut()).is_pending() && poll(second.as_mut()).is_pending());
        assert!(desk.poll_pending(start_us));
        assert!(desk.poll_pending(start_us + 9_999_999));
        // Each read restarts the 10 s.
        assert!(serve(desk, 1, start_us + 9_999_999).is_some());
        assert!(matches!(poll(first), Ready(Ok(_))));
        let start_us = 100 * SECOND_US;
        assert!(desk.poll_pending(start_us));
        assert!(desk.poll_pending(start_us + 9_999_999));
        assert!(!desk.poll_pending(start_us + 10_000_000));
        assert_eq!(error_of(poll(second)), Some(ReadError::Busy));
        assert!(!desk.is_pending());
    });
}

#[test]
fn a_reader_is_active_for_a_second_after_a_read() {
    with_buffers(1, |desk| {
        assert!(!desk.is_active(0));
        let mut lend = pin!(desk.lend(1, 1, ReadClass::Bulk, 0));
        assert!(poll(lend.as_mut()).is_pending());
        assert!(desk.is_active(0));
        assert!(serve(desk, 1, 5 * SECOND_US).is_some());
        assert!(desk.is_active(5_999_999) && !desk.is_active(6_000_000));
        assert!(poll(lend).is_ready());
    });
}

#[test]
fn without_a_card_reads_fail_and_after_the_end_none_is_accepted() {
    with_buffers(2, |desk| {
        let lend = || std::boxed::Box::pin(desk.lend(1, 1, ReadClass::Bulk, 0));
        let mut waiting = lend();
        assert!(poll(waiting.as_mut()).is_pending());
        desk.refuse();
        assert_eq!(error_of(poll(waiting.as_mut())), Some(ReadError::NoCard));
        let mut waiting = lend();
        assert!(poll(waiting.as_mut()).is_pending(), "a card may come");
        desk.close();
        assert_eq!(error_of(poll(waiting.as_mut())), Some(ReadError::Closed));
        assert_eq!(error_of(poll(lend().as_mut())), Some(ReadError::Closed));
        let buffer = pin!(desk.write_buffer());
        assert!(matches!(poll(buffer), Ready(Err(ReadError::Closed))));
        desk.reopen();
        assert!(poll(lend().as_mut()).is_pending());
    });
}

#[test]
fn a_write_takes_all_buffers_but_one() {
    with_buffers(1, |desk| {
        let buffer = pin!(desk.write_buffer());
        assert!(matches!(poll(buffer), Ready(Err(ReadError::NoMemory))));
    });
    with_buffers(3, |desk| {
        let wait = || std::boxed::Box::pin(desk.write_buffer());
        let (first, second) = (poll(wait().as_mut()), poll(wait().as_mut()));
        assert!(matches!((&first, second), (Ready(Ok(_)), Ready(Ok(_)))));
    });
    with_buffers(2, |desk| {
        let wait = || std::boxed::Box::pin(desk.write_buffer());
        let Ready(Ok(mut first)) = poll(wait().as_mut()) else {
            panic!("both buffers are free");
        };
        assert_eq!(first.bytes().len(), 4 * 512);
        let mut second = wait();
        assert!(poll(second.as_mut()).is_pending());
        drop(first);
        assert!(matches!(poll(second.as_mut()), Ready(Ok(_))));
    });
}

#[test]
fn a_read_whose_reader_is_gone_gives_its_buffer_back() {
    with_buffers(1, |desk| {
        {
            let mut gone = std::boxed::Box::pin(desk.lend(1, 1, ReadClass::Bulk, 0));
            assert!(poll(gone.as_mut()).is_pending());
            let job = desk.begin().unwrap();
            drop(gone);
            let mut next = std::boxed::Box::pin(desk.lend(2, 1, ReadClass::Bulk, 0));
            assert!(poll(next.as_mut()).is_pending());
            assert!(!desk.is_pending(), "the buffer is still in use");
            desk.end(job, Ok(()), 1, 0);
            assert!(desk.is_pending());
        }
        assert!(!desk.is_pending(), "its reader is gone as well");
        // Every slot is free again.
        let mut reads: Vec<_> = (0..REQUESTS_MAX as u32 + 1)
            .map(|start| std::boxed::Box::pin(desk.lend(start, 1, ReadClass::Bulk, 0)))
            .collect();
        for read in &mut reads {
            assert!(poll(read.as_mut()).is_pending());
        }
        for start in 0..REQUESTS_MAX as u32 {
            assert_eq!(serve(desk, 1, 0), Some((start, 1)));
            assert!(poll(reads[start as usize].as_mut()).is_ready());
        }
        // One more than there are slots waited for a slot.
        assert_eq!(serve(desk, 1, 0), None);
        assert!(poll(reads[REQUESTS_MAX].as_mut()).is_pending());
        assert_eq!(serve(desk, 1, 0), Some((REQUESTS_MAX as u32, 1)));
    });
}

#[test]
fn the_recorder_sleeps_through_requests_that_it_knows() {
    with_buffers(1, |desk| {
        let sleep = |known| desk.poll_request(&Context::from_waker(Waker::noop()), known);
        assert_eq!(sleep((false, false)), Pending);
        let mut lend = pin!(desk.lend(1, 1, ReadClass::Bulk, 0));
        assert!(poll(lend.as_mut()).is_pending());
        assert_eq!(sleep((false, false)), Ready(()));
        assert_eq!(sleep((true, false)), Pending);
        desk.abandon_upload(0);
        assert_eq!(sleep((true, false)), Ready(()));
        assert_eq!(sleep((true, true)), Pending);
        assert!(serve(desk, 1, 0).is_some());
        assert_eq!(sleep((false, true)), Pending);
    });
}

fn id(number: u32) -> FileId {
    FileId {
        prefix: *b"LOG",
        extension: *b"CSV",
        number,
    }
}

#[test]
fn readers_see_figures_gaps_and_files() {
    with_buffers(1, |desk| {
        let gap = Gap {
            first: 10,
            count: 3,
            at_us: 4,
            last_us: 5,
            cause: Cause::Busy,
        };
        {
            let mut watched = desk.watched.borrow_mut();
            watched.note_event(&Event::Lost { stream: 1, gap });
            watched.note_file(1, 5, id(7));
            watched.update(Figures {
                samples: 20,
                lost: 3,
                ..Figures::default()
            });
        }
        let figures = desk.figures();
        assert_eq!((figures.samples, figures.lost, figures.gaps), (20, 3, 1));
        assert_eq!((desk.gap(0), desk.gap(1)), (Some((0, 1, gap)), None));
        assert_eq!((desk.gap_of(1, 12), desk.gap_of(1, 13)), (Some(gap), None));
        assert_eq!(desk.file_of(1, 9), Some((id(7), 5)));
        assert_eq!(desk.file_of(0, 9), None);
    });
}

#[test]
fn readers_see_the_space_of_a_mounted_card() {
    with_buffers(1, |desk| {
        assert_eq!(desk.space_bytes(), None);
        let (system, bytes) = crate::replay::mounted();
        desk.set_mounted(Some(system));
        for (blocks, free_bytes) in [(None, None), (Some(7), Some(3_584)), (Some(0), Some(0))] {
            desk.set_free_blocks(blocks);
            assert_eq!(desk.space_bytes(), Some((bytes, free_bytes)));
        }
        desk.refuse();
        assert_eq!(desk.space_bytes(), None);
    });
}

#[test]
fn readers_find_recordings_in_progress() {
    let file = |number| Unfinished {
        id: id(number),
        session: ShortText::EMPTY,
        extent: Extent {
            start: 1,
            blocks: 2,
        },
        epoch: 3,
        is_named: true,
        bytes: 4,
        first_us: 5,
        last_us: 6,
        samples: 7,
        gaps: 8,
        lost: 9,
    };
    with_buffers(1, |desk| {
        let from = |slot| desk.next_unfinished(slot, |_| true);
        assert_eq!(from(0), None);
        desk.publish(2, Some(file(20)));
        desk.publish(5, Some(file(50)));
        desk.publish(200, Some(file(60)));
        assert_eq!(
            (from(0), from(2)),
            (Some((2, file(20))), Some((2, file(20))))
        );
        assert_eq!((from(3), from(6)), (Some((5, file(50))), None));
        let number = |number| desk.unfinished(|file| file.id.number == number);
        assert_eq!((number(50), number(60)), (Some(file(50)), None));
        desk.publish(2, None);
        assert_eq!(from(0), Some((5, file(50))));
        desk.refuse();
        assert_eq!(from(0), None);
    });
}

#[test]
fn requests_and_free_buffers_wake_those_who_wait() {
    with_buffers(2, |desk| {
        let [recorder, writer] = [(); 2].map(|()| Arc::new(Wakes::default()));
        let sleep = || {
            let waker = Waker::from(recorder.clone());
            let polled = desk.poll_request(&Context::from_waker(&waker), (true, true));
            assert_eq!(polled, Pending);
        };
        let wait = || std::boxed::Box::pin(desk.write_buffer());
        let Ready(Ok(buffer)) = poll(wait().as_mut()) else {
            panic!("the buffers are free");
        };
        let mut second = wait();
        let waker = Waker::from(writer.clone());
        assert!(
            second
                .as_mut()
                .poll(&mut Context::from_waker(&waker))
                .is_pending()
        );
        sleep();
        drop(buffer);
        assert_eq!((recorder.count(), writer.count()), (1, 1));
        sleep();
        desk.abandon_upload(0);
        assert_eq!(recorder.count(), 2);
        sleep();
        let mut lend = pin!(desk.lend(1, 1, ReadClass::Bulk, 0));
        assert!(poll(lend.as_mut()).is_pending());
        assert_eq!((recorder.count(), writer.count()), (3, 1));
    });
}
