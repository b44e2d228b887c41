use cardiograph_record::{lossless_rate_Bps, plain_stream};
use cardiograph_recorder::*;
use cardiograph_sim_card::{Card, Profile, Seed};
use cardiograph_sim_device::*;
fn main() {
    let args: Vec<String> = std::env::args().collect();
    let mb: u64 = args[1].parse().unwrap();
    let seeds: u64 = args[2].parse().unwrap();
    let window: u64 = args.get(3).map_or(1_000_000, |w| w.parse().unwrap());
    for name in [
        "team-8g-class10",
        "sandisk-edge-8g",
        "kingston-8g",
        "toshiba-8g",
        "panasonic-1g-slc",
        "apacer-1g-slc",
        "sandisk-industrial-8g",
    ] {
        for seed in 1..=seeds {
            let profile = Profile::named(name).unwrap();
            let blocks = (mb * 1_000_000 / 512) as u32;
            let (times, _) = plain_stream(
                Card::new(&profile, Seed::new(seed)),
                25_000_000,
                32768,
                blocks,
                |_, _| {},
            )
            .unwrap();
            let bound = lossless_rate_Bps(&times, 65536);
            let rate = (bound * 0.95 / 100.0) as u32;
            let mut card = Card::new(&profile, Seed::new(seed));
            cardiograph_store::format(&mut card, 32768).unwrap();
            let mut device = Device::new(card, 1, 25_000_000, Seed::new(1));
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
                    window: Window::Us(window),
                },
                ring_bytes: 65536,
                samples: Box::new(Lines {
                    rate_hz: rate,
                    line_bytes: 100,
                    count: mb * 10_000,
                }),
            };
            let t = std::time::Instant::now();
            let mut gaps = vec![];
            let logged = device.log(
                [setup],
                |us, event| match event {
                    Event::Checkpoint { .. } => (),
                    Event::Lost { gap, .. } => gaps.push((us as f64 / 1e6, gap.count)),
                    _ => (),
                },
                |_, _, _| None,
            );
            let Finished::Done([s]) = logged.finished else {
                println!("{name} {:?}", logged.finished);
                continue;
            };
            println!(
                "{name} seed {seed} bound {:.1} kB/s rate {} lost {} of {} peak {} ckpt {} breaches {} risk {} us, {:?} gaps {:?}",
                bound / 1e3,
                rate,
                s.lost,
                logged.pushed[0],
                s.ring_peak_bytes,
                s.checkpoints,
                s.window_breaches,
                s.at_risk_us_max,
                t.elapsed(),
                &gaps[..gaps.len().min(5)]
            );
        }
    }
}
