//! Bytes on the bus, counted one by one: formulas derived from the specification hold exactly.

use crate::reference;
use cardiograph_sim_card::wire::{Count, Options, SpiCard, Wire};
use cardiograph_sim_card::{Card, Clock, Profile, Seed};
use embedded_sdmmc::{Block, BlockDevice, BlockIdx, SdCard};

const CLOCK_HZ: u32 = 25_000_000;
const NCR: [u8; 3] = [1, 2, 8];

fn wire(ncr_bytes: u8) -> Wire {
    let mut profile = Profile::named("class10-16g").unwrap();
    profile.capacity_bytes = 64 << 20;
    let options = Options {
        ncr_bytes,
        ..Options::default()
    };
    let card = Card::new(&profile, Seed::new(1));
    let wire = Wire::new(SpiCard::new(card, options, Clock::default(), CLOCK_HZ).unwrap());
    wire.power_up();
    wire
}

/// Returns the number of bytes that `act` exchanges: without busy bytes, and busy bytes only.
fn counted(wire: &Wire, act: impl FnOnce()) -> (u64, u64) {
    let Count { bytes, busy, .. } = wire.card().count();
    act();
    let after = wire.card().count();
    let busy = after.busy - busy;
    (after.bytes - bytes - busy, busy)
}

#[test]
fn a_block_by_embedded_sdmmc_takes_534_bytes_and_two_ncr() {
    for ncr in NCR {
        let wire = wire(ncr);
        let card = SdCard::new(wire.device(), wire.delay());
        card.num_blocks().unwrap();
        for block in 0..20 {
            let data = [Block {
                contents: [block as u8; 512],
            }];
            let (bytes, busy) = counted(&wire, || card.write(&data, BlockIdx(block)).unwrap());
            assert_eq!(bytes, 534 + 2 * u64::from(ncr));
            assert!(busy > 0, "the card has to program a page");
        }
    }
}

#[test]
fn a_burst_by_embedded_sdmmc_takes_517_bytes_a_block_and_27_and_three_ncr() {
    for ncr in NCR {
        for blocks in [2, 8, 64] {
            let wire = wire(ncr);
            let card = SdCard::new(wire.device(), wire.delay());
            card.num_blocks().unwrap();
            let data: Vec<_> = (0..blocks)
                .map(|i| Block {
                    contents: [i as u8; 512],
                })
                .collect();
            let (bytes, busy) = counted(&wire, || card.write(&data, BlockIdx(3)).unwrap());
            assert_eq!(bytes, 517 * blocks + 27 + 3 * u64::from(ncr));
            assert!(busy > 0 || blocks < 8);
        }
    }
}

#[test]
fn embedded_sdmmc_writes_a_burst_of_one_as_a_single_block() {
    for ncr in NCR {
        let wire = wire(ncr);
        let card = SdCard::new(wire.device(), wire.delay());
        card.num_blocks().unwrap();
        let data = [Block { contents: [1; 512] }];
        let (bytes, _) = counted(&wire, || card.write(&data, BlockIdx(3)).unwrap());
        // A single block takes CMD24 and CMD13.
        assert_eq!(bytes, 534 + 2 * u64::from(ncr));
    }
}

#[test]
fn the_same_burst_by_the_reference_driver_matches_from_one_block_on() {
    for ncr in NCR {
        for blocks in [1, 2, 8, 64] {
            let wire = wire(ncr);
            let mut driver = reference::Driver::new(wire.bus(), wire.chip_select(), true);
            driver.init().unwrap();
            let data = vec![[1; 512]; blocks];
            let (bytes, _) = counted(&wire, || driver.burst(3, &data).unwrap());
            assert_eq!(bytes, 517 * blocks as u64 + 27 + 3 * u64::from(ncr));
        }
    }
}

#[test]
fn cmd24_alone_takes_523_bytes_ncr_and_nwr() {
    for ncr in NCR {
        for nwr in [1, 2] {
            let wire = wire(ncr);
            let mut driver = reference::Driver::new(wire.bus(), wire.chip_select(), true);
            driver.nwr = nwr;
            driver.init().unwrap();
            let (bytes, _) = counted(&wire, || driver.begin_write(7, &[1; 512]).unwrap());
            assert_eq!(bytes, 523 + u64::from(ncr) + nwr as u64);
            // The driver reads one more byte, which shows the end of busy.
            let (after, busy) = counted(&wire, || driver.wait());
            assert_eq!(after, 1);
            assert!(busy > 0);
        }
    }
}

#[test]
fn a_block_of_cmd25_takes_516_bytes_and_nwr() {
    for ncr in NCR {
        for nwr in [1, 2] {
            // The difference between two bursts cancels all bytes that do not depend on the number of blocks.
            let burst = |blocks: usize| {
                let wire = wire(ncr);
                let mut driver = reference::Driver::new(wire.bus(), wire.chip_select(), true);
                driver.nwr = nwr;
                driver.init().unwrap();
                let data = vec![[1; 512]; blocks];
                counted(&wire, || driver.write(7, &data).unwrap()).0
            };
            for blocks in [8, 64] {
                // The reference driver polls once more after each block.
                let per_block = 516 + nwr as u64 + 1;
                assert_eq!(burst(blocks) - burst(2), (blocks as u64 - 2) * per_block);
            }
        }
    }
}

#[test]
fn time_is_the_sum_of_bytes_and_delays() {
    let wire = wire(1);
    let clock = wire.card().clock().clone();
    let mut driver = reference::Driver::new(wire.bus(), wire.chip_select(), false);
    driver.init().unwrap();
    let (start_ns, start) = (clock.now_ns(), wire.card().count().bytes);
    driver.write(0, &[[1; 512]; 100]).unwrap();
    let bytes = wire.card().count().bytes - start;
    assert_eq!(clock.now_ns() - start_ns, bytes * 320);
}

#[test]
fn without_busy_the_bus_carries_3_mb_per_second_at_25_mhz() {
    // In a burst, 512 of 517 bytes are data, at 3.125 MB/s.
    let wire = wire(1);
    let mut driver = reference::Driver::new(wire.bus(), wire.chip_select(), true);
    driver.init().unwrap();
    let (bytes, busy) = counted(&wire, || driver.write(0, &[[1; 512]; 512]).unwrap());
    assert!(busy > 0);
    let rate = 512.0 * 512.0 / (bytes as f64 * 320e-9);
    assert!((3.08e6..3.10e6).contains(&rate), "{rate} B/s");
}

/// A query of CMD6 takes its command, NCR, R1, NAC, the token, 64 bytes and a CRC; the driver adds a byte for the change
/// and one after chip select.
#[test]
fn a_driver_selects_high_speed_with_two_times_76_bytes_ncr_and_nac() {
    for ncr in NCR {
        let wire = wire(ncr);
        let mut driver = reference::Driver::new(wire.bus(), wire.chip_select(), true);
        driver.init().unwrap();
        let nac = u64::from(Options::default().nac_bytes);
        let (bytes, busy) = counted(&wire, || {
            assert_eq!(driver.select_high_speed(), Ok(true));
        });
        assert_eq!((bytes, busy), (2 * (76 + u64::from(ncr) + nac), 0));
        let csd: [u8; 16] = driver.register(9).unwrap();
        assert_eq!(csd[3], 0x5A);
        wire.card().set_clock_hz(50_000_000).unwrap();
        let mut data = [[0; 512]; 2];
        driver.write(3, &[[7; 512], [8; 512]]).unwrap();
        driver.read(3, &mut data).unwrap();
        assert_eq!(data, [[7; 512], [8; 512]]);
    }
}
