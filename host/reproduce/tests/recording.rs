//! A replay with another seed or card equals a run with this seed or card, except for polling times.

use cardiograph_reproduce::{Experiment, Operations, Recording, study};
use cardiograph_sim_card::Profile;
use cardiograph_workload::Operation;

fn experiment(board: &str, workload: &str) -> Experiment {
    Experiment::new("class10-16g", board, workload)
}

#[test]
fn a_replay_matches_a_run_within_the_polling_period() {
    for (board, workload, period_ns) in [
        // Over SPI, embedded-sdmmc polls byte by byte, 10 µs apart.
        ("esp32", "magod2-kept-open", 20_000),
        // On the SD bus the host detects the end of busy without polling.
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
            // An operation waits for the end of busy a few times.
            assert!(differ_ns < 12 * period_ns, "{differ_ns} ns on {board}");
        }
    }
}

/// Returns the sum of the durations, in ns.
fn total_ns(operations: &Operations) -> f64 {
    let durations = operations.all().iter().map(Operation::duration_ns);
    durations.sum::<u64>() as f64
}

/// A burst reaches another card in the pages of that card, not in those of the recorded one.
#[test]
fn a_replay_on_a_card_with_other_pages_matches_a_run() {
    let on = |planes: u32| {
        let mut experiment = Experiment::new("team-8g-class10", "lpc43xx", "blinky-stream-32768");
        let planes = ("card.flash.planes".to_string(), planes.to_string());
        experiment.set.push(planes);
        experiment
    };
    for (recorded, replayed) in [(1, 4), (4, 1)] {
        let recording = Recording::of(&on(recorded), 1).unwrap();
        let (_, profile, _) = on(replayed).set_up().unwrap();
        let replay_ns = total_ns(&recording.on(&profile, 1));
        let run_ns = total_ns(&on(replayed).run(1).unwrap());
        let ratio = replay_ns / run_ns;
        assert!(
            (ratio - 1.0).abs() < 0.002,
            "{recorded} to {replayed}: {ratio}"
        );
    }
}

/// With a server, the commands to the card depend on the durations of earlier commands, so each seed needs a
/// run of its own.
#[test]
fn a_run_with_a_server_can_be_recorded_but_not_replayed() {
    let rows = study("magod2").unwrap().rows;
    let row = rows.iter().find(|row| row.figure == "4.1").unwrap();
    let alone = &row.over.as_ref().unwrap().experiment;
    assert!(alone.can_be_replayed());
    let with_server = Experiment {
        workload: "magod2-4.7".to_string(),
        ..row.query.experiment.clone()
    };
    let (operations, calls) = with_server
        .run_recorded(&Profile::named(&with_server.card).unwrap(), 1)
        .unwrap();
    assert_eq!(operations.all(), with_server.run(1).unwrap().all());
    assert!(calls.len() > operations.all().len());
    let Err(error) = Recording::of(&with_server, 1) else {
        panic!("an experiment with a web server was recorded for replay");
    };
    assert!(error.to_string().contains("web server"), "{error}");
}
