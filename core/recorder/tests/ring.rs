//! The ring against a queue of the standard library, and across threads.

use cardiograph_recorder::{Cause, Ring, Sampler, Source};
use cardiograph_sim_world::{Random, Seed};
use std::collections::VecDeque;
use std::sync::atomic::AtomicU8;

/// What the ring should hold.
#[derive(Default)]
struct Model {
    bytes: VecDeque<u8>,
    capacity: usize,
    pushed: u64,
    lost: u64,
    /// Whether the last sample was lost.
    is_losing: bool,
    /// Gaps that nobody has seen: first, count, and bytes before each.
    gaps: VecDeque<(u64, u64, u64)>,
    taken: u64,
    put: u64,
}

const GAPS_WAITING_MAX: usize = 7;

impl Model {
    fn push(&mut self, sample: &[u8]) -> bool {
        let waiting = self.gaps.len() - usize::from(self.is_losing);
        let has_room = sample.len() <= self.capacity - self.bytes.len();
        let has_slot = !self.is_losing || waiting < GAPS_WAITING_MAX;
        self.pushed += 1;
        if has_room && has_slot {
            self.bytes.extend(sample);
            self.put += sample.len() as u64;
            self.is_losing = false;
            return true;
        }
        self.lost += 1;
        match self.gaps.back_mut() {
            Some(gap) if self.is_losing => gap.1 += 1,
            _ => self.gaps.push_back((self.pushed - 1, 1, self.put)),
        }
        self.is_losing = true;
        false
    }

    /// Bytes before the next gap that is handed over, and that gap if none are.
    fn next(&self) -> (usize, Option<(u64, u64)>) {
        let handed_over = self.gaps.len() - usize::from(self.is_losing);
        match self.gaps.front().filter(|_| handed_over > 0) {
            Some(&(first, count, place)) if place == self.taken => (0, Some((first, count))),
            Some(&(.., place)) => ((place - self.taken) as usize, None),
            None => (self.bytes.len(), None),
        }
    }
}

fn step(random: &mut Random, model: &mut Model, sampler: &mut Sampler, source: &mut Source) {
    if random.chance_ppm(500_000) {
        let sample: Vec<u8> = (0..1 + random.below(60))
            .map(|_| random.next_u64() as u8)
            .collect();
        assert_eq!(sampler.push(&sample, 7).is_ok(), model.push(&sample));
        return;
    }
    let (waiting, gap) = source.waiting();
    let expected = model.next();
    assert_eq!((waiting, gap.map(|gap| (gap.first, gap.count))), expected);
    if let Some(gap) = gap {
        assert_eq!((gap.cause, gap.at_us), (Cause::Busy, 7));
        source.take_gap();
        model.gaps.pop_front();
        return;
    }
    let count = random.below(waiting as u64 + 1) as usize;
    let skip = random.below((waiting - count) as u64 + 1) as usize;
    let mut peeked = vec![0; count];
    source.peek(skip, &mut peeked);
    assert!(peeked.iter().eq(model.bytes.iter().skip(skip).take(count)));
    source.release(count);
    model.bytes.drain(..count);
    model.taken += count as u64;
    assert_eq!(source.level_bytes(), model.bytes.len());
    assert_eq!(u64::from(source.lost()), model.lost);
}

#[test]
fn it_does_what_a_queue_does_and_counts_what_is_lost() {
    for seed in 0..200 {
        println!("seed {seed}");
        let mut random = Seed::new(seed).stream("ring");
        let capacity = 1 + random.below(200) as usize;
        let bytes: Vec<AtomicU8> = (0..capacity).map(|_| AtomicU8::new(0)).collect();
        let mut ring = Ring::over(bytes);
        let (mut sampler, mut source) = ring.split();
        let mut model = Model {
            capacity,
            ..Model::default()
        };
        for _ in 0..3_000 {
            step(&mut random, &mut model, &mut sampler, &mut source);
        }
        assert_eq!(sampler.pushed(), model.pushed);
        // The gap at the very end is handed over by closing, even if all slots are taken.
        sampler.close();
        model.is_losing = false;
        while let (_, Some(_)) | (1.., None) = source.waiting() {
            let (waiting, gap) = source.waiting();
            assert_eq!(
                (waiting, gap.map(|gap| (gap.first, gap.count))),
                model.next()
            );
            source.release(waiting);
            model.bytes.drain(..waiting);
            model.taken += waiting as u64;
            if gap.is_some() {
                source.take_gap();
                model.gaps.pop_front();
            }
        }
        assert!(model.gaps.is_empty() && source.is_closed());
    }
}

/// One thread pushes numbers as fast as it can, another takes them: what comes out is each number once, in
/// order, but for those that gaps name.
#[test]
fn it_holds_across_threads() {
    const SAMPLES: u64 = 200_000;
    static RING: std::sync::Mutex<Ring<[AtomicU8; 1000]>> = std::sync::Mutex::new(Ring::new());
    let mut ring = RING.lock().unwrap();
    let (mut sampler, mut source) = ring.split();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for index in 0..SAMPLES {
                let bytes = index.to_le_bytes();
                let len = 1 + index as usize % 13;
                let sample: Vec<u8> = bytes.iter().cycle().take(8 + len).copied().collect();
                let _ = sampler.push(&sample, 0);
                if index % 1000 == 0 {
                    std::thread::yield_now();
                }
            }
            sampler.close();
        });
        let mut index = 0;
        loop {
            let is_closed = source.is_closed();
            match source.waiting() {
                (0, Some(gap)) => {
                    assert_eq!(gap.first, index);
                    index += gap.count;
                    source.take_gap();
                }
                (0, None) if is_closed => break,
                (0, None) => std::thread::yield_now(),
                (waiting, _) => {
                    let len = 8 + 1 + index as usize % 13;
                    assert!(waiting >= len, "a sample is there in part");
                    let mut sample = vec![0; len];
                    source.peek(0, &mut sample);
                    source.release(len);
                    assert!(index.to_le_bytes().iter().cycle().take(len).eq(&sample));
                    index += 1;
                }
            }
        }
        assert_eq!(index, SAMPLES);
    });
}

#[test]
fn a_sample_that_is_none_or_too_long_is_lost_and_said_so() {
    let mut ring: Ring<[AtomicU8; 2000]> = Ring::new();
    let (mut sampler, mut source) = ring.split();
    let long = [b'x'; cardiograph_recorder::LINE_BYTES_MAX + 1];
    assert!(sampler.push(&long, 5).is_err());
    assert!(sampler.push(b"", 6).is_err());
    assert!(sampler.push(b"a\n", 6).is_ok());
    let gap = source.waiting().1.unwrap();
    assert_eq!((gap.first, gap.count, gap.at_us), (0, 2, 5));
    assert_eq!(gap.cause, Cause::BadSample);
    source.take_gap();
    assert_eq!(source.waiting(), (2, None));
}
