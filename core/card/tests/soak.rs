//! Random faults of all kinds, generated from seeds, over a long run: durable data is never lost.

use crate::rig::{self, Rig, data};
use cardiograph_card::{Block, Error};
use cardiograph_sim_card::Seed;
use cardiograph_sim_card::wire::{FaultMix, FaultSchedule};

const BLOCKS: u32 = 64;

const MIX: FaultMix = FaultMix {
    power_cuts: 2,
    pulls: 4,
    out_ns_max: 2_000_000,
    lost_commands: 12,
    flips_to_card: 20,
    flips_to_host: 20,
    long_busies: 10,
    extra_ns_max: 2_000_000_000,
};

/// The possible contents of each block: the durable version first, then the writes attempted since.
struct Model(Vec<Vec<Block>>);

impl Model {
    fn tried(&mut self, block: u32, data: Block) {
        self.0[block as usize].push(data);
    }

    fn durable(&mut self, blocks: std::ops::Range<u32>) {
        for block in blocks {
            let known = &mut self.0[block as usize];
            known.drain(..known.len() - 1);
        }
    }

    /// Asserts that each block read has one of its possible contents; the content read becomes the only
    /// possible one.
    fn check(&mut self, read: &[Block], seed: u64) {
        for (block, (known, read)) in self.0.iter_mut().zip(read).enumerate() {
            assert!(known.contains(read), "seed {seed}: block {block}");
            *known = vec![*read];
        }
    }
}

/// Writes a single block or a stream with a checkpoint.
fn act(rig: &mut Rig, model: &mut Model, version: u8, start: u32) -> Result<(), rig::Error> {
    if version.is_multiple_of(3) {
        model.tried(start, data(version, start));
        rig.write(start, &[data(version, start)])?;
        model.durable(start..start + 1);
        return Ok(());
    }
    rig.begin(start, 12)?;
    for block in start..start + 12 {
        model.tried(block, data(version, block));
        rig.push(&data(version, block))?;
    }
    rig.end()?;
    model.durable(start..start + 12);
    Ok(())
}

#[test]
fn durable_data_survives_any_fault() {
    let (mut errors, mut writes) = (0, 0);
    for seed in 0..150 {
        let mut rig = Rig::ready();
        let mut model = Model(vec![vec![[0; 512]]; BLOCKS as usize]);
        let bytes = rig.bytes();
        let faults = FaultSchedule::random(Seed::new(seed), &MIX, bytes..bytes + 200_000);
        rig.wire.card().schedule(&faults);
        for version in 1..60 {
            let start = (u32::from(version) * 17 + seed as u32) % (BLOCKS - 12);
            let done = act(&mut rig, &mut model, version, start);
            writes += 1;
            if let Err(error) = done {
                errors += 1;
                assert_ne!(error, Error::OutOfRange);
                // Reinitialise the card after any error, as an application would.
                while rig.acquire().is_err() {
                    rig.wire.card().power_on();
                }
            }
            if let Ok(read) = rig.read(0, BLOCKS as usize) {
                model.check(&read, seed);
            }
        }
    }
    println!("{errors} errors in {writes} writes");
}
