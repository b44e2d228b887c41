//! Compares the card's timing alone with the driver on the simulated bus.

use cardiograph_plan::{LongStream, stream};
use cardiograph_sim_card::{Board, Profile};

/// The two simulations share only the flash model: in one, a driver polls the card over a bus; in the other,
/// a controller is queried page by page. The driver notices the end of busy late, by at most 2 % of a wait
/// and 1 ms.
#[test]
fn a_long_stream_takes_as_long_as_the_driver_on_the_bus() {
    for (card, board) in [
        ("class10-16g", "esp32"),
        ("sandisk-edge-8g", "esp32-s3-sdfat"),
        ("toshiba-8g", "mega2560"),
        ("panasonic-1g-slc", "mega2560-hw"),
    ] {
        let profile = Profile::named(card).unwrap();
        let board = Board::named(board).unwrap();
        let streamed = stream((&profile, &board), 7, 16 << 20).unwrap();
        let times = |trace: &cardiograph_trace::Trace| -> Vec<u64> {
            let blocks = trace.operations();
            blocks.map(|block| block.end_ns - block.start_ns).collect()
        };
        let on_wire = times(&streamed.trace);
        let mut sorted = on_wire.clone();
        sorted.sort_unstable();
        let long = LongStream {
            profile: &profile,
            seed: 7,
            start: streamed.start,
            blocks: on_wire.len() as u64,
            block_ns: sorted[sorted.len() / 2],
            period_ns: None,
        };
        let alone = times(&long.trace());
        let ratio = on_wire.iter().sum::<u64>() as f64 / alone.iter().sum::<u64>() as f64;
        println!("{card}: {ratio}");
        assert!((0.999..1.01).contains(&ratio), "{card}: {ratio}");
        // On the bus, the command that opens the stream delays the first block; without a bus, there is no
        // such command.
        for (at, (&wire, &alone)) in on_wire.iter().zip(&alone).enumerate().skip(2) {
            let late_ns = wire as f64 - alone as f64;
            // A poll detects the end of busy up to one byte late, and a late preceding poll adds up to
            // another byte.
            let byte_ns = long.block_ns as f64 / 517.0;
            let is_close = late_ns >= -2.0 * byte_ns && late_ns < 0.1 * alone as f64 + 1e6;
            assert!(is_close, "{card}: block {at} takes {wire} and {alone}");
        }
    }
}
