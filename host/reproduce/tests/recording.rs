//! What a recording says of another seed or card is what a run on that card gives, but for polling.

use cardiograph_reproduce::{Experiment, Recording};

fn experiment(board: &str, workload: &str) -> Experiment {
    Experiment {
        card: "class10-16g".to_string(),
        board: board.to_string(),
        workload: workload.to_string(),
        set: Vec::new(),
    }
}

#[test]
fn a_replay_is_the_run_it_stands_for() {
    for (board, workload, period_ns) in [
        // SPI polls byte by byte, and embedded-sdmmc waits 10 us between looks.
        ("esp32", "magod2-kept-open", 20_000),
        // The SD bus tells when busy is over.
        ("lpc43xx", "blinky-stream-512", 100),
    ] {
        let experiment = experiment(board, workload);
        let (_, profile, _) = experiment.set_up().unwrap();
        let recording = Recording::of(&experiment, 1).unwrap();
        let same = recording.on(&profile, 1);
        assert_eq!(same.all(), recording.operations().all());
        let (replay, run) = (recording.on(&profile, 2), experiment.run(2).unwrap());
        assert_eq!(replay.all().len(), run.all().len());
        for (replay, run) in replay.all().iter().zip(run.all()) {
            let differ_ns = replay.duration_ns().abs_diff(run.duration_ns());
            // An operation has a few waits for busy.
            assert!(differ_ns < 12 * period_ns, "{differ_ns} ns on {board}");
        }
    }
}
