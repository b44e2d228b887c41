//! Streams blocks to a simulated card: `cargo run --example stream`. On a board, the bus, the pin and the delay come from
//! its HAL; `firmware/rp2040` in the repository does it with embassy.

use cardiograph_card::{Block, CLOCK_HZ, Card};
use cardiograph_sim_card::wire::{Options, SpiBus, SpiCard, Wire};
use cardiograph_sim_card::{Card as Flash, Clock, Profile, Seed};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// Blocks of the stream: 8 MiB.
const BLOCKS: u32 = 16_384;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let clock = Clock::default();
    let profile = Profile::named("class10-16g").map_err(|error| format!("{error:?}"))?;
    let flash = Flash::new(&profile, Seed::new(1));
    let card = SpiCard::new(flash, Options::default(), clock.clone(), CLOCK_HZ);
    let wire = Wire::new(card.map_err(|error| format!("{error:?}"))?);
    let own = wire.clone();
    let set_clock = move |_: &mut SpiBus, hz| {
        // The simulated card supports every clock of the driver.
        let _ = own.card().set_clock_hz(hz);
    };
    let mut card = Card::new(
        wire.bus(),
        wire.chip_select(),
        wire.delay(),
        set_clock,
        CLOCK_HZ,
    );

    block_on(async {
        card.acquire().await?;
        println!("{} blocks; {}", card.blocks(), card.read_cid().await?);
        let block: Block = [0x55; 512];
        let (start_ns, mut longest_ns) = (clock.now_ns(), 0);
        card.begin(8192, BLOCKS).await?;
        for _ in 0..BLOCKS {
            let block_ns = clock.now_ns();
            card.push(&block).await?;
            longest_ns = longest_ns.max(clock.now_ns() - block_ns);
        }
        card.end().await?;
        let seconds = (clock.now_ns() - start_ns) as f64 / 1e9;
        let megabytes = f64::from(BLOCKS) * 512.0 / 1e6;
        println!(
            "durable after {seconds:.2} s: {:.2} MB/s",
            megabytes / seconds
        );
        println!("longest block: {:.1} ms", longest_ns as f64 / 1e6);
        Ok(())
    })
}

/// Polls a future until it completes: the simulated delays advance the clock at once.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        {
            return output;
        }
    }
}
