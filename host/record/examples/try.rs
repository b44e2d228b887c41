use cardiograph_recorder::*;
use cardiograph_sim_card::{Card, Profile, Seed};
use cardiograph_sim_device::*;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let profile = Profile::named(&args[1]).unwrap();
    let rate: u32 = args[2].parse().unwrap();
    let seconds: u64 = args[3].parse().unwrap();
    let ring: usize = args[4].parse().unwrap();
    let clock: u32 = args[5].parse().unwrap();
    let mut card = Card::new(&profile, Seed::new(1));
    cardiograph_store::format(&mut card, 8192).unwrap();
    let mut device = Device::new(card, 1, clock, Seed::new(1));
    device.config = Config {
        file_bytes: 1 << 27,
        ..Config::default()
    };
    let setup = StreamSetup {
        config: StreamConfig {
            prefix: *b"REC",
            format: Format::Lines {
                header: "",
                line_bytes_max: 100,
            },
            window: Window::default(),
        },
        ring_bytes: ring,
        samples: Box::new(Lines {
            rate_hz: rate,
            line_bytes: 100,
            count: u64::from(rate) * seconds,
        }),
    };
    let mut late = 0;
    let t = std::time::Instant::now();
    let logged = device.log(
        [setup],
        |us, event| match event {
            Event::Checkpoint { is_late: false, .. } => (),
            Event::Checkpoint { .. } => late += 1,
            other => println!("{:.3} {:?}", us as f64 / 1e6, other),
        },
        |_, _, _| None,
    );
    println!("{logged:?} late {late} {:?}", t.elapsed());
    println!("bytes {:?}", device.wire.card().count());
}
