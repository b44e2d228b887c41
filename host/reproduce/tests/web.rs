//! Study 1's web server: the throughput of its downloads, and the factors that determine it.
//!
//! Each download is compared byte by byte with the file that was written, and each run reads its lines back.

use cardiograph_reproduce::{Experiment, NO_WORKLOAD, Operations, Place, WebServer};
use std::num::NonZeroU32;

fn experiment(place: Place, piece_bytes: u32, loss_ppm: u32) -> Experiment {
    Experiment {
        server: Some(WebServer {
            place,
            piece_bytes: NonZeroU32::new(piece_bytes).unwrap(),
            loss_ppm,
        }),
        ..Experiment::new("class10-16g", "esp32", NO_WORKLOAD)
    }
}

/// Returns the mean time of a download in ms.
fn mean_ms(operations: &Operations) -> f64 {
    let downloads = operations.downloads();
    let sum_ns: u64 = downloads.iter().map(|one| one.duration_ns()).sum();
    sum_ns as f64 / downloads.len() as f64 / 1e6
}

#[test]
fn a_client_downloads_ten_times_one_after_the_other() {
    let operations = experiment(Place::MainLoop, 1360, 0).run(1).unwrap();
    let downloads = operations.downloads();
    assert_eq!((downloads.len(), operations.all().len()), (10, 0));
    assert!(downloads.iter().all(|one| one.length_bytes == 1_000_000));
    assert!(
        downloads
            .windows(2)
            .all(|pair| pair[0].end_ns <= pair[1].start_ns)
    );
}

/// The study calls a bad link "range".
#[test]
fn downloads_over_a_bad_link_are_slow_and_end_right() {
    let good = experiment(Place::MainLoop, 1360, 0).run(1).unwrap();
    let bad = experiment(Place::MainLoop, 1360, 20_000);
    let (first, again) = (bad.run(1).unwrap(), bad.run(1).unwrap());
    assert_eq!(first.downloads(), again.downloads());
    assert_ne!(first.downloads(), bad.run(2).unwrap().downloads());
    assert_eq!(first.downloads().len(), 10);
    assert!(mean_ms(&first) > 1.5 * mean_ms(&good));
}

/// On core 0, the server also waits for the network stack: 0.4 µs for each of 1,000,000 bytes.
#[test]
fn core_0_costs_the_time_of_the_network_stack() {
    let time_ms = |place| mean_ms(&experiment(place, 1360, 0).run(1).unwrap());
    let more_ms = time_ms(Place::Core0) - time_ms(Place::Core1);
    assert!((390.0..410.0).contains(&more_ms), "{more_ms} ms");
}

#[test]
fn a_writer_and_a_download_slow_each_other() {
    let alone = experiment(Place::Core0, 1360, 0).run(1).unwrap();
    let both = Experiment {
        workload: "magod2-4.1".to_string(),
        ..experiment(Place::Core0, 1360, 0)
    };
    let writer = Experiment {
        server: None,
        ..both.clone()
    };
    let (both, writer) = (both.run(1).unwrap(), writer.run(1).unwrap());
    assert_eq!(both.all().len(), 1000);
    assert!(mean_ms(&both) > mean_ms(&alone));
    let sum_ns = |run: &Operations| run.all().iter().map(|one| one.duration_ns()).sum::<u64>();
    assert!(sum_ns(&both) > sum_ns(&writer));
    // The client stays until the writer is done: 1000 lines at 8 Hz take more than 125 s.
    assert!(both.downloads().len() > 20, "{}", both.downloads().len());
}

#[test]
fn a_server_needs_a_network_and_a_workload_that_exists() {
    let error = |experiment: Experiment| experiment.run(1).err().map(|error| error.to_string());
    let wired = Experiment {
        board: "lpc43xx".to_string(),
        ..experiment(Place::Core1, 1360, 0)
    };
    let message = error(wired).unwrap();
    assert!(
        message.contains("lpc43xx") && message.contains("network"),
        "{message}"
    );
    let nothing = Experiment::new("class10-16g", "esp32", NO_WORKLOAD);
    assert_eq!(error(nothing).unwrap(), "no workload named none");
}
