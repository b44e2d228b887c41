//! Commands over the serial port: they stop the recording, and test the writes of the card.

use crate::print::{self, Serial};
use crate::{CONTROL, print_memory, println};
use cardiograph_recorder::ReadDesk;
use cardiograph_server::{
    BENCH_LINE_BYTES_MAX, Bench, CardStorage, Next, Order, OrderLine, WriteTest, bench_refusal,
};
use core::fmt::Write;
use embassy_executor::Spawner;
use embassy_time::{Duration, Instant, Timer};

/// Time between reads of the port: its FIFO holds eight bytes, those of 0.69 ms at 115,200 baud.
const POLL: Duration = Duration::from_micros(500);
const RECORDING: &str = "a recording is in progress; send stop to end it";

/// Starts the task.
pub fn start(spawner: Spawner, desk: &'static ReadDesk<'static>) {
    spawner.spawn(obey(desk).expect("spawned once"));
}

#[embassy_executor::task]
async fn obey(desk: &'static ReadDesk<'static>) {
    let storage = CardStorage::new(desk);
    let mut orders = OrderLine::new();
    loop {
        match received(&mut orders) {
            None => Timer::after(POLL).await,
            Some(Order::Stop) => CONTROL.stop(),
            Some(Order::Status) => {
                print_status(desk);
                print_memory();
            }
            Some(Order::Test(Ok(_))) if desk.figures().is_recording => refuse(RECORDING),
            Some(Order::Test(Ok(test))) => measure(desk, &storage, &mut orders, test).await,
            Some(Order::Test(Err(reason))) => refuse(reason),
            Some(_) => (),
        }
    }
}

/// Runs a test, and prints its trace.
async fn measure(
    desk: &ReadDesk<'_>,
    storage: &CardStorage<'_, '_>,
    orders: &mut OrderLine,
    test: WriteTest,
) {
    let mut bench = match Bench::begin(storage, test).await {
        Ok(bench) => bench,
        Err(error) => return refuse(error.reason()),
    };
    loop {
        match bench.advance(|| Instant::now().as_micros()).await {
            Next::Over => return,
            Next::Wait(ms) => Timer::after_millis(ms.into()).await,
            Next::Line => print_line(|line| bench.line(line)),
        }
        // The other side may have repeated the command before it received the first line.
        while let Some(order) = received(orders) {
            if let Order::Stop | Order::StopTest = order {
                bench.stop("a command stopped it");
            }
        }
        if desk.figures().is_recording {
            bench.stop("a recording began");
        }
    }
}

fn print_status(desk: &ReadDesk<'_>) {
    let figures = desk.figures();
    println!(
        "status: {} samples, {} lost, ring {} of {} B",
        figures.samples, figures.lost, figures.ring_bytes, figures.ring_capacity_bytes
    );
}

fn refuse(reason: &str) {
    print_line(|line| bench_refusal(reason, line));
}

fn print_line(write: impl FnOnce(&mut [u8; BENCH_LINE_BYTES_MAX]) -> usize) {
    let mut line = [0; BENCH_LINE_BYTES_MAX];
    let len = write(&mut line);
    let _ = Serial.write_str(str::from_utf8(&line[..len]).unwrap_or_default());
    println!();
}

/// Returns the next command among the bytes that the port has received.
fn received(orders: &mut OrderLine) -> Option<Order> {
    core::iter::from_fn(print::received).find_map(|byte| orders.add(byte))
}
