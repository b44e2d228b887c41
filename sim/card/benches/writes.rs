//! Speed of the card simulation on one core: simulated 512-byte writes per second of real time.
//!
//! `cargo xtask bench card` records a dated run.

use cardiograph_sim_card::wire::{Options, SpiCard, Wire, crc};
use cardiograph_sim_card::{Block, Card, Clock, Controller, Profile, Seed};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use embedded_sdmmc::sdcard::spi::AcquireOpts;
use embedded_sdmmc::{BlockDevice, BlockIdx, SdCard};

/// Number of writes per iteration of the benchmark.
const WRITES: u64 = 10_000;

fn profile() -> Profile {
    Profile::named("class10-16g").expect("class10-16g is a bundled card")
}

/// Measures timing only; no data is stored.
fn timing_only(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("timing only");
    group.throughput(Throughput::Elements(WRITES));
    let blocks = profile().capacity_bytes / 512;
    let mut random = Seed::new(1).stream("places");
    let (mut next, mut now_ns) = (0, 0);
    let mut write = |controller: &mut Controller, block: u64| {
        now_ns += controller.write_by_command(now_ns, block, 1).total_ns;
    };
    let mut controller = Controller::new(&profile(), Seed::new(1));
    group.bench_function("sequential", |bencher| {
        bencher.iter(|| {
            for _ in 0..WRITES {
                write(&mut controller, next);
                next = (next + 1) % blocks;
            }
        });
    });
    let mut controller = Controller::new(&profile(), Seed::new(1));
    group.bench_function("random", |bencher| {
        bencher.iter(|| {
            for _ in 0..WRITES {
                write(&mut controller, random.below(blocks));
            }
        });
    });
    group.finish();
}

/// Measures timing and storing the data.
fn stored(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("data stored");
    group.throughput(Throughput::Elements(WRITES));
    let (mut next, mut now_ns) = (0, 0);
    let mut card = Card::new(&profile(), Seed::new(1));
    group.bench_function("sequential", |bencher| {
        bencher.iter(|| {
            for _ in 0..WRITES {
                let data = [next as u8; 512];
                now_ns += card
                    .write(now_ns, next, &data)
                    .expect("the block is on the card");
                next = (next + 1) % WIRE_BLOCKS;
            }
        });
    });
    group.finish();
}

/// Range of blocks that benchmarks with data write in turn, so that the data fits in memory.
const WIRE_BLOCKS: u64 = 500_000;

fn wire() -> Wire {
    let card = Card::new(&profile(), Seed::new(1));
    let card = SpiCard::new(card, Options::default(), Clock::default(), 25_000_000);
    let wire = Wire::new(card.expect("the options are in range"));
    wire.power_up();
    wire
}

/// Measures timing, storing the data, every byte on the bus, and a driver.
fn over_the_wire(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("data and wire bytes");
    group.throughput(Throughput::Elements(WRITES));
    for use_crc in [false, true] {
        let wire = wire();
        let options = AcquireOpts {
            use_crc,
            ..AcquireOpts::default()
        };
        let card = SdCard::new_with_options(wire.device(), wire.delay(), options);
        card.num_bytes().expect("the card responds");
        let checksums = if use_crc { "checksums" } else { "no checksums" };
        let mut next = 0;
        let driver = BenchmarkId::new("embedded-sdmmc", checksums);
        group.bench_function(driver, |bencher| {
            bencher.iter(|| {
                for _ in 0..WRITES {
                    let contents = [next as u8; 512];
                    let data = [embedded_sdmmc::Block { contents }];
                    card.write(&data, BlockIdx(next))
                        .expect("the card accepts the block");
                    next = (next + 1) % WIRE_BLOCKS as u32;
                }
            });
        });
        if !use_crc {
            let mut next = 0;
            group.bench_function("CMD24 by hand, not polling", |bencher| {
                bencher.iter(|| by_hand(&wire, &mut next));
            });
        }
    }
    group.finish();
}

/// Writes like a host without overhead, which reads the end of busy from the simulation instead of polling.
fn by_hand(wire: &Wire, next: &mut u64) {
    let mut card = wire.card();
    card.select(true);
    let clock = card.clock().clone();
    for _ in 0..WRITES {
        let data: Block = [*next as u8; 512];
        let mut frame = [0x40 | 24, 0, 0, 0, 0, 0];
        frame[1..5].copy_from_slice(&(*next as u32).to_be_bytes());
        frame[5] = crc::crc7(&frame[..5]) << 1 | 1;
        card.write(&frame);
        card.write(&[0xFF; 2]);
        card.write(&[0xFE]);
        card.write(&data);
        card.write(&[0xFF; 3]);
        let left_ns = card.busy_until_ns().saturating_sub(clock.now_ns());
        clock.advance_ns(left_ns);
        *next = (*next + 1) % WIRE_BLOCKS;
    }
}

criterion_group!(benches, timing_only, stored, over_the_wire);
criterion_main!(benches);
