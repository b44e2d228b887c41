//! Conditions of shells with given rings, rates, costs and files, compared with formulas over plain numbers.

use super::*;
use crate::reads::ReadClass;
use crate::recorder::Config;
use crate::shell::test_rig::*;
use core::pin::pin;
use std::println;
use std::vec;
use std::vec::Vec;

/// The specification's limit of a stall.
const BUSY_US: u64 = 250_000;
/// Blocks of a flash page.
const PAGE: u32 = 64;

impl Of {
    fn pushed_bytes(&self) -> usize {
        self.level / SAMPLE_BYTES * SAMPLE_BYTES
    }
}

impl Case {
    fn of_track(&self, at: u8) -> &[Of] {
        match (self.is_shared, at) {
            (true, 0) => &self.streams,
            (true, _) => &[],
            (false, at) => &self.streams[usize::from(at)..][..1],
        }
    }

    /// Bytes that arrive in a track per second.
    fn rate(&self, at: u8) -> u64 {
        self.of_track(at).iter().map(|of| of.rate).sum()
    }

    fn level(&self, at: u8) -> usize {
        self.of_track(at).iter().map(|of| of.level).sum()
    }

    /// A checkpoint waits for the end of a page for a quarter of the shortest window.
    fn wait_us(&self, at: u8) -> u64 {
        let windows = self.of_track(at).iter().map(|of| of.window_us / 4);
        windows.min().unwrap()
    }

    /// The greatest power of two of blocks, up to a page, that fills while a checkpoint waits.
    fn step_blocks(&self, at: u8) -> u32 {
        let of = |of: &Of| (of.rate * self.wait_us(at)).div_ceil(SECOND_US);
        let bytes: u64 = self.of_track(at).iter().map(of).sum();
        let fills = |blocks: &u32| u64::from(*blocks) * 512 <= bytes || *blocks == 1;
        [64, 32, 16, 8, 4, 2, 1].into_iter().find(fills).unwrap()
    }

    fn lead_us(&self, of: &Of) -> u64 {
        let wait_us = match (self.is_reading, self.step_blocks(0)) {
            (true, _) => self.wait_us(0),
            (false, 1) => 0,
            (false, blocks) => {
                let fill_us = |of: &Of| u64::from(blocks) * 512 * SECOND_US / of.rate;
                self.of_track(0).iter().map(fill_us).min().unwrap()
            }
        };
        let blocks_us = |bytes: u64| bytes.div_ceil(512) * self.measured.block;
        let write_us = blocks_us(of.level as u64);
        let allowed_us = match self.is_shared {
            true => (of.window_us / 4).min(BUSY_US),
            false => 0,
        };
        let stall_us = self.measured.longest.max(allowed_us);
        let stalled_us = blocks_us((of.rate * stall_us).div_ceil(SECOND_US));
        let read_us = if self.is_reading {
            self.measured.read
        } else {
            0
        };
        2 * (self.measured.commit + write_us) + wait_us + stall_us + stalled_us + read_us
    }

    /// Every ring has room for what arrives in `us`, and during the longest stall; or a sixteenth of it for the former.
    fn absorbs(&self, us: u64) -> bool {
        self.streams.iter().all(|of| {
            let level = of.level as u64 + (of.rate * us).div_ceil(SECOND_US);
            let stalled = (of.rate * self.measured.longest).div_ceil(SECOND_US);
            level + stalled <= of.capacity as u64 || level <= of.capacity as u64 / 16
        })
    }

    /// A ring that waits has been at risk for longer than this multiple of its window.
    fn is_older(&self, windows: f64) -> bool {
        let age_us = |of: &Of| (of.window_us as f64 * windows) as u64;
        let is_older = |of: &Of| of.level > 0 && NOW_US > of.durable_us + age_us(of);
        self.streams.iter().any(is_older)
    }

    /// A quarter of every ring has room for what arrives in `us`.
    fn absorbs_late(&self, us: u64) -> bool {
        self.streams.iter().all(|of| {
            let level = of.level as u64 + (of.rate * us).div_ceil(SECOND_US);
            level <= of.capacity as u64 / 4
        })
    }

    fn has_page(&self, at: u8) -> bool {
        let is_half_full = |of: &Of| of.level >= of.capacity / 2;
        self.level(at) >= 32_768 || self.of_track(at).iter().any(is_half_full)
    }
}

/// Cases that differ from [`CASE`] in one respect, around each limit.
fn cases() -> Vec<Case> {
    let mut cases = vec![CASE];
    let mut add = |change: &dyn Fn(&mut Case)| {
        for is_shared in [true, false] {
            let mut case = CASE;
            case.is_shared = is_shared;
            change(&mut case);
            cases.push(case);
        }
    };
    for level in (0..=32_768).step_by(512) {
        add(&|case| case.streams[0].level = level);
        add(&|case| {
            case.streams[0].level = level;
            case.is_reading = true;
        });
        add(&|case| case.streams[1].level = level / 2);
        // Together exactly one page and a little less.
        add(&|case| {
            case.streams = case.streams.map(|of| Of {
                level: level / 2,
                capacity: 65_536,
                ..of
            })
        });
    }
    for rate in (0..20).map(|at| 200 << at) {
        add(&|case| case.streams[0].rate = rate);
        add(&|case| case.streams[1].rate = rate);
        add(&|case| case.streams = case.streams.map(|of| Of { rate, ..of }));
    }
    for at in 0..12 {
        add(&|case| case.streams[0].window_us = 16_000 << at);
        add(&|case| case.measured.longest = 2_000 << at);
        add(&|case| case.measured.commit = 700 << at);
        add(&|case| case.measured.read = 700 << at);
        add(&|case| case.measured.block = 10 << at);
    }
    for index in (0..=4096).step_by(32).chain([1, 63, 65, 4033, 4095]) {
        add(&|case| case.file.2 = index);
        add(&|case| case.file = (6432, 4112, index));
    }
    for index in (0..256).step_by(16) {
        add(&|case| case.file = (6416, 4112, index));
    }
    // Within a page.
    for rate in (100..70_000)
        .step_by(2_731)
        .chain([16_383, 16_384, 32_767, 32_768])
    {
        add(&|case| {
            case.file.2 = 650;
            case.streams = case.streams.map(|of| Of { rate, ..of });
        });
    }
    // 1,000 blocks are left, which are 5 s of samples.
    for rate in [102_399, 102_400, 102_401] {
        add(&|case| {
            (case.file.2, case.ahead) = (3596, 500);
            case.streams[0].rate = rate;
        });
    }
    for ahead in [45_055, 45_056] {
        add(&|case| {
            case.ahead = ahead;
            case.streams[0].rate = 8_000_000;
        });
    }
    for level in (0..=16_384).step_by(512) {
        for age_us in [900_000, 937_500, 937_501, 3_000_000, 4_000_000, 4_000_001] {
            add(&|case| {
                case.measured.longest = 4_000_000;
                case.measured.commit = 1_000;
                case.streams[0].level = level;
                case.streams[0].durable_us = NOW_US - age_us;
            });
        }
    }
    for durable_us in (0..=30).map(|at| NOW_US - at * 100_000) {
        add(&|case| case.streams[0].durable_us = durable_us);
        add(&|case| case.streams[1].durable_us = durable_us);
    }
    cases
}

fn with_each(test: impl Fn(&mut Tested, &Case)) {
    for (at, case) in cases().iter().enumerate() {
        println!("case {at}");
        with(case, Config::default(), |shell, _, case| test(shell, case));
    }
}

#[test]
fn times_are_those_of_the_formulas() {
    with_each(|shell, case| {
        assert_eq!(shell.step_us_max(0), case.wait_us(0));
        assert_eq!(shell.step_blocks(0), case.step_blocks(0));
        for (stream, of) in shell.streams.iter().zip(case.of_track(0)) {
            assert_eq!(shell.lead_us(stream), case.lead_us(of));
        }
        let is_due = case.of_track(0).iter().any(|of| {
            let wait_us = of.window_us - case.lead_us(of).min(of.window_us / 2);
            of.level >= SAMPLE_BYTES && NOW_US >= of.durable_us + wait_us
        });
        assert_eq!(shell.track_conditions(0, NOW_US).is_checkpoint_due, is_due);
        let stall_us = case.measured.longest.max(BUSY_US);
        let pending = case
            .streams
            .iter()
            .map(|of| of.pushed_bytes() as u64 + 1024 + (of.rate * stall_us).div_ceil(SECOND_US));
        let write_us = pending.sum::<u64>().div_ceil(512) * case.measured.block;
        let tracks = if case.is_shared { 1 } else { 2 };
        let flush_us = write_us + tracks * case.measured.commit + stall_us;
        assert_eq!(u64::from(shell.flush_us_max()), flush_us);
        let left = u64::from(case.file.1 - case.file.2 + case.ahead) * 512;
        let left_us = (case.rate(0) > 0).then(|| left * SECOND_US / case.rate(0));
        assert_eq!(shell.us_left(0), left_us);
        // Files have 44 MiB: prepared ones of at least half of that suffice.
        let is_short = left_us.is_some_and(|us| us < 5 * SECOND_US) && case.ahead < 45_056;
        assert_eq!(shell.track_conditions(0, NOW_US).is_short, is_short);
    });
}

#[test]
fn other_work_is_absorbed_as_the_formulas_say() {
    with_each(|shell, case| {
        for us in [0, 1_000, 50_000, 300_000] {
            assert_eq!(
                shell.absorbs(us, ROOM_PART),
                case.absorbs(us.into()),
                "{us} us"
            );
        }
        let absorbs_commit = case.absorbs(case.measured.commit)
            || case.is_older(0.9375) && case.absorbs_late(case.measured.commit)
            || case.is_older(4.0);
        assert_eq!(shell.absorbs_commit(NOW_US), absorbs_commit);
        let worst_us = case.measured.read + case.measured.longest.max(BUSY_US);
        let absorbs_readers = (0..).zip(&case.streams).all(|(at, of)| {
            let track = if case.is_shared { 0 } else { at };
            let one = Case {
                streams: [*of; 2],
                ..*case
            };
            of.level as u64 + (of.rate * worst_us).div_ceil(SECOND_US) <= of.capacity as u64
                || !case.has_page(track) && one.absorbs(case.measured.read)
        });
        assert_eq!(shell.absorbs_readers(), absorbs_readers);
        let (start, blocks, index) = case.file;
        let is_at_page = index == blocks || (start + index) % PAGE == 0;
        shell.state.card = Card::Writing(0);
        let is_ready = is_at_page && !case.has_page(0);
        assert_eq!(shell.absorbs_read(), is_ready && absorbs_readers);
        // Other tracks have no file.
        shell.state.card = Card::Idle;
        assert_eq!(shell.absorbs_read(), absorbs_readers);
        let absorbs_step = case.streams.iter().all(|of| {
            let (level, capacity) = (of.level as u64, of.capacity as u64);
            let in_us = |us: u64| (of.rate * us).div_ceil(SECOND_US);
            let garbage_us = BUSY_US.max(2 * case.measured.longest);
            let step_us = case.measured.step + case.measured.longest.max(40_000);
            level + in_us(garbage_us) <= capacity
                || level <= capacity / 16 && level + in_us(step_us) <= capacity / 2
        });
        assert_eq!(shell.absorbs_step(), absorbs_step);
        shell.state.card = Card::Writing(0);
        let is_page_near = case.rate(0) >= 32_768;
        let is_between = is_at_page || !is_page_near;
        assert_eq!(shell.absorbs_step(), is_between && absorbs_step);
    });
}

#[test]
fn checkpoints_wait_for_the_ends_of_pages_as_long_as_the_window_allows() {
    with_each(|shell, case| {
        let (_, blocks, index) = case.file;
        let step = case.step_blocks(0);
        let level: usize = case.of_track(0).iter().map(Of::pushed_bytes).sum();
        // Before the request nothing is covered, afterwards everything.
        for covered in [0, level as u32] {
            for age_us in [0, case.wait_us(0) - 1, case.wait_us(0), 2 * case.wait_us(0)] {
                shell.tracks[0].requested_us = NOW_US - age_us;
                let is_over = age_us >= case.wait_us(0);
                let is_end = step == 1 || index % step == 0 || is_over;
                assert_eq!(shell.is_page_end(0, NOW_US), is_end, "{age_us} us");
                shell.state.tracks[0].checkpoint = Checkpoint::None;
                assert_eq!(shell.checkpoint_step(0, NOW_US), 0);
                shell.state.tracks[0].checkpoint = Checkpoint::Wanted;
                let marks = if is_over { 0 } else { step };
                assert_eq!(shell.checkpoint_step(0, NOW_US), marks, "{age_us} us");
                // 472 bytes of samples in a block, and one block for the rest.
                let end = (index + covered / 472 + 1).div_ceil(step) * step;
                let needed = end.min(blocks).saturating_sub(index) as usize * 512;
                let is_ready = step == 1 || is_over || level >= needed;
                let conditions = shell.track_conditions(0, NOW_US);
                assert_eq!(conditions.is_checkpoint_ready, is_ready, "{age_us} us");
            }
            shell
                .streams
                .iter_mut()
                .for_each(Stream::request_checkpoint);
        }
    });
}

/// 4,000 B at 60 kB/s: in a quarter of the window, 29 blocks arrive, so the step is 16 blocks. The samples and one block
/// more are in 9 blocks, and the step ends after 16.
#[test]
fn a_checkpoint_is_ready_when_the_ring_reaches_the_end_of_its_step() {
    let case = Case {
        is_shared: false,
        ..CASE
    };
    with(&case, Config::default(), |shell, outside, _| {
        shell.tracks[0].requested_us = NOW_US;
        shell.state.tracks[0].checkpoint = Checkpoint::Wanted;
        shell.streams[0].request_checkpoint();
        let level = case.streams[0].level;
        for (bytes, is_ready) in [(level, false), (16 * 512 - 8, false), (16 * 512, true)] {
            let pushed = shell.streams[0].consumer.level_bytes();
            outside.push(0, (bytes - pushed) / SAMPLE_BYTES);
            let conditions = shell.track_conditions(0, NOW_US);
            assert_eq!(conditions.is_checkpoint_ready, is_ready, "{bytes} B");
        }
    });
}

/// A stream may take the card if it has a turn's worth of samples, and no turn of another one is in progress.
#[test]
fn streams_have_a_turn_between_turns() {
    // Half of the rings are 16 KiB and 8 KiB: 16,384 B and 8,192 B are a turn, 16 blocks of the shared file.
    for (levels, index, has_turn) in [
        ([20_000, 800], 640, [true, false]),
        ([20_000, 800], 641, [false, false]),
        ([4_000, 9_000], 640, [false, true]),
        ([4_000, 9_000], 655, [false, false]),
        ([20_000, 9_000], 656, [true, true]),
    ] {
        let mut case = CASE;
        case.file.2 = index;
        for (of, level) in case.streams.iter_mut().zip(levels) {
            of.level = level;
        }
        with(&case, Config::default(), |shell, _, _| {
            shell.state.card = Card::Writing(0);
            shell.fill(NOW_US);
            let conditions = shell.conditions(NOW_US);
            let turns = conditions.streams.map(|stream| stream.has_turn);
            assert_eq!(turns, has_turn, "block {index}");
        });
    }
}

/// A read that the rings cannot absorb is counted once, and is served later.
#[test]
fn a_pending_read_is_served_or_postponed() {
    for (index, level, absorbs) in [(640, 800, true), (650, 800, false), (640, 30_000, false)] {
        let mut case = CASE;
        case.file.2 = index;
        case.streams[0].level = level;
        with(&case, Config::default(), |shell, outside, _| {
            let observed = |shell: &mut Tested| {
                let now = shell.conditions(NOW_US);
                let put_off = outside.desk.tally().put_off;
                (
                    now.is_read_pending,
                    now.absorbs_read,
                    now.is_reading,
                    put_off,
                )
            };
            shell.state.card = Card::Writing(0);
            assert_eq!(observed(shell), (false, false, false, 0));
            let mut lend = pin!(outside.desk.lend(100, 1, ReadClass::Bulk, 0));
            assert!(poll(lend.as_mut()).is_pending());
            let is_reading = level < 1_000;
            let put_off = u32::from(!absorbs);
            for _ in 0..2 {
                assert_eq!(observed(shell), (true, absorbs, is_reading, put_off));
            }
        });
    }
}

#[test]
fn recordings_are_removed_only_on_request() {
    for (when_full, may_remove) in [(WhenFull::Wait, false), (WhenFull::RemoveOldest, true)] {
        let config = Config {
            when_full,
            ..Config::default()
        };
        with(&CASE, config, |shell, _, _| {
            assert_eq!(shell.conditions(NOW_US).may_remove, may_remove);
        });
    }
}

#[test]
fn a_turn_is_over_at_its_end_or_without_a_full_block() {
    // Half of the rings are 16 KiB and 8 KiB: 32 and 16 blocks.
    for (is_shared, blocks) in [(true, 16), (false, 32)] {
        for index in 0..100 {
            let case = Case {
                file: (6400, 4096, index),
                is_shared,
                ..CASE
            };
            with(&case, Config::default(), |shell, _, _| {
                assert!(shell.is_turn_over(), "no write is open");
                shell.state.card = Card::Writing(0);
                assert!(shell.is_turn_over(), "no block is full");
                shell.fill(NOW_US);
                assert_eq!(shell.is_turn_over(), index % blocks == 0, "block {index}");
            });
        }
    }
}

/// Rings that never absorb a step leave more time for a removal.
#[test]
fn removals_are_urgent_earlier_if_the_rings_are_small() {
    for rate in (0..24).map(|at| 100 << at) {
        let mut case = CASE;
        case.streams[1].rate = rate;
        let config = Config {
            when_full: WhenFull::RemoveOldest,
            ..Config::default()
        };
        with(&case, config, |shell, _, case| {
            let of = case.streams[1];
            // The specification's limit of a stall, or twice the longest one.
            let worst_us = BUSY_US.max(2 * case.measured.longest);
            // Half of the ring is left for the longest step and a stall of at least 40 ms.
            let stall_us = case.measured.step + case.measured.longest.max(40_000);
            let bytes_in = |us: u64| (rate * us).div_ceil(SECOND_US);
            let may_absorb = bytes_in(worst_us) <= of.capacity as u64
                || bytes_in(stall_us) <= of.capacity as u64 / 2;
            let urgent_s = if may_absorb { 10 } else { 30 };
            assert_eq!(shell.urgent_us(), urgent_s * SECOND_US, "{rate} B/s");
        });
    }
}

#[test]
fn files_are_old_and_their_names_due_at_the_given_ages() {
    for (age_us, rotate_us, is_old) in [
        (0, None, false),
        (9_999_999, Some(10 * SECOND_US), false),
        (10_000_000, Some(10 * SECOND_US), true),
        (59_000_000, None, false),
    ] {
        let config = Config {
            rotate_us,
            when_full: WhenFull::RemoveOldest,
            ..Config::default()
        };
        with(&CASE, config, |shell, _, _| {
            assert_eq!(shell.urgent_us(), 10 * SECOND_US);
            shell.tracks[0].file.as_mut().unwrap().opened_us = NOW_US - age_us;
            let conditions = shell.track_conditions(0, NOW_US);
            assert_eq!(conditions.is_rotation_due, is_old);
            assert!(!conditions.needs_name && !conditions.is_name_due);
            shell.tracks[0].set_durable();
            let conditions = shell.track_conditions(0, NOW_US);
            assert!(conditions.needs_name);
            assert_eq!(conditions.is_name_due, age_us >= 5 * SECOND_US);
            assert_eq!(conditions.next_blocks, 2048);
            assert_eq!(shell.track_conditions(1, NOW_US).next_blocks, 0);
        });
    }
}

#[test]
fn the_cost_of_a_postponed_checkpoint_is_halved_after_a_sixteenth_of_its_window() {
    for is_shared in [true, false] {
        let case = Case { is_shared, ..CASE };
        with(&case, Config::default(), |shell, _, case| {
            let cost = |shell: &Tested| u64::from(shell.costs.commit.us());
            shell.tracks[0].requested_us = NOW_US;
            let full_us = case.measured.commit;
            shell.fade_postponed_cost(0, NOW_US + 10 * SECOND_US);
            assert_eq!(cost(shell), full_us, "no checkpoint is pending");
            shell.state.tracks[0].checkpoint = Checkpoint::Wanted;
            // A checkpoint may wait a quarter of the window of 1 s for the end of a page; then it is late.
            for (age_us, fraction) in [
                (250_000, 1),
                (312_499, 1),
                (312_500, 2),
                (374_999, 2),
                (375_000, 4),
                (600_000, 8),
                (662_499, 8),
                (662_500, 16),
            ] {
                shell.fade_postponed_cost(0, NOW_US + age_us);
                assert_eq!(cost(shell), full_us / fraction, "after {age_us} us");
            }
        });
    }
}

/// A change of another task and a name that is due end a write within a page.
#[test]
fn some_steps_do_not_wait_for_the_end_of_a_page() {
    let case = Case {
        file: (6400, 4096, 650),
        ..CASE
    };
    with(&case, Config::default(), |shell, _, _| {
        shell.state.card = Card::Writing(0);
        assert!(!shell.absorbs_step(), "a page is nearly complete");
        for job in [Job::Close(0), Job::Reserve(0), Job::Name(0)] {
            shell.state.job = Some(job);
            assert!(!shell.absorbs_step(), "{job:?}");
        }
        shell.state.job = Some(Job::Change);
        assert!(shell.absorbs_step());
        shell.state.job = None;
        shell.tracks[0].set_durable();
        for (age_us, is_due) in [(4_999_999, false), (5_000_000, true)] {
            shell.tracks[0].file.as_mut().unwrap().opened_us = NOW_US - age_us;
            assert_eq!(shell.absorbs_step(), is_due, "{age_us} us");
        }
    });
}

/// The last blocks of a shared file are for unfinished blocks: one for each stream. A stream without a header needs two.
#[test]
fn a_file_is_used_up_when_no_stream_may_begin_a_block() {
    for (is_shared, left, is_used_up) in [
        (true, 4, false),
        (true, 3, false),
        (true, 2, true),
        (true, 1, true),
        (false, 2, false),
        (false, 1, true),
    ] {
        let case = Case {
            file: (6400, 4096, 4096 - left),
            is_shared,
            ..CASE
        };
        with(&case, Config::default(), |shell, _, _| {
            assert_eq!(shell.is_used_up(0, NOW_US), is_used_up, "{left} blocks");
        });
        let mut empty = case;
        empty.streams.iter_mut().for_each(|of| of.level = 0);
        with(&empty, Config::default(), |shell, _, _| {
            assert!(!shell.is_used_up(0, NOW_US), "nothing waits");
            shell.state.tracks[0].file = None;
            assert!(!shell.is_used_up(0, NOW_US));
        });
    }
}

#[test]
fn a_card_is_given_up_after_the_last_attempt() {
    with(&CASE, Config::default(), |shell, _, _| {
        assert!(shell.conditions(NOW_US).may_retry);
        shell.attempts = 1;
        assert!(shell.conditions(NOW_US).may_retry);
        shell.attempts = 0;
        assert!(!shell.conditions(NOW_US).may_retry);
    });
}
