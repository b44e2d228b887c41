//! The studies' plots, drawn from simulated runs.

use crate::experiment::{Experiment, ExperimentError, Operations};
use crate::plot::{Axis, Mark, Series, svg};
use crate::recording::Recording;
use crate::web::{Place, WebServer};
use cardiograph_workload::Operation;
use std::num::NonZeroU32;

/// A plot with its title.
pub struct Figure {
    /// Number of the figure in the study, if any, and its subject.
    pub title: String,
    /// The plot as SVG.
    pub svg: String,
}

fn series(name: &str, mark: Mark, points: Vec<(f64, f64)>) -> Series {
    Series {
        name: name.to_string(),
        mark,
        points,
    }
}

fn ms(operation: &Operation) -> f64 {
    operation.duration_ns() as f64 / 1e6
}

/// Returns the points of a plot: latency of each operation in ms over the payload written before it in kB.
fn latencies_over_bytes(operations: &Operations) -> Vec<(f64, f64)> {
    let mut position = 0.0;
    let points = operations.all().iter().map(|operation| {
        let point = (position, ms(operation));
        position += operation.length_bytes as f64 / 1e3;
        point
    });
    points.collect()
}

fn write_latencies(title: &str, names: &[(&str, &Experiment)]) -> Result<Figure, ExperimentError> {
    let mut all = Vec::new();
    for (name, experiment) in names {
        let points = latencies_over_bytes(&experiment.run(1)?);
        all.push(series(name, Mark::Dot, points));
    }
    Ok(Figure {
        title: title.to_string(),
        svg: svg(
            &Axis::linear("written, kB"),
            &Axis::linear("write latency, ms"),
            &all,
        ),
    })
}

/// Plots a histogram of the stall spacing, with bins of `bin_kb` kB.
fn spacings(
    title: &str,
    experiment: &Experiment,
    threshold_ms: f64,
    bin_kb: f64,
) -> Result<Figure, ExperimentError> {
    let points = latencies_over_bytes(&experiment.run(1)?);
    let mut starts = Vec::new();
    let mut was_above = false;
    for (kb, ms) in points {
        let is_above = ms > threshold_ms;
        if is_above && !was_above {
            starts.push(kb);
        }
        was_above = is_above;
    }
    let mut bins = std::collections::BTreeMap::<u64, u32>::new();
    for pair in starts.windows(2) {
        *bins
            .entry(((pair[1] - pair[0]) / bin_kb) as u64)
            .or_default() += 1;
    }
    let bars = bins.into_iter();
    let bars = bars.map(|(bin, count)| ((bin as f64 + 0.5) * bin_kb, f64::from(count)));
    Ok(Figure {
        title: title.to_string(),
        svg: svg(
            &Axis::linear("stall spacing, kB"),
            &Axis::linear("stalls"),
            &[series("", Mark::Bar, bars.collect())],
        ),
    })
}

/// Plots energy in bins of 10 ms and write latencies on the same time axis, for a range of seconds.
fn energy(
    experiment: &Experiment,
    seconds: std::ops::Range<f64>,
) -> Result<[Figure; 2], ExperimentError> {
    let (_, profile, _) = experiment.set_up()?;
    let recording = Recording::of(experiment, 1)?;
    let trace = recording.energy(&profile, 1);
    let bins = trace.bins_uj().iter().enumerate();
    let bins = bins.map(|(bin, uj)| (bin as f64 * trace.bin_ns() as f64 / 1e9, *uj));
    let bins = bins.filter(|(s, _)| seconds.contains(s)).collect();
    let operations = recording.operations().all().iter();
    let times = operations.map(|operation| (operation.start_ns as f64 / 1e9, ms(operation)));
    let times = times.filter(|(s, _)| seconds.contains(s)).collect();
    let time = Axis::from("time, s", seconds.start);
    Ok([
        Figure {
            title: "4.10 · energy per 10 ms, kept open".to_string(),
            svg: svg(
                &time,
                &Axis::linear("energy, µJ"),
                &[series("", Mark::Bar, bins)],
            ),
        },
        Figure {
            title: "4.10 · write latency in the same seconds".to_string(),
            svg: svg(
                &time,
                &Axis::linear("write latency, ms"),
                &[series("", Mark::Dot, times)],
            ),
        },
    ])
}

/// Returns the mean throughput in kB/s of each phase over the x value given for the phase.
fn throughputs(
    experiment: &Experiment,
    phases: &[(usize, f64)],
) -> Result<Vec<(f64, f64)>, ExperimentError> {
    let operations = experiment.run(1)?;
    let throughput = |phase: usize| {
        let (mut bytes, mut ns) = (0, 0);
        for operation in operations.select(Some(phase), None) {
            bytes += operation.length_bytes;
            ns += operation.duration_ns();
        }
        bytes as f64 / ns.max(1) as f64 * 1e6
    };
    Ok(phases
        .iter()
        .map(|&(phase, x)| (x, throughput(phase)))
        .collect())
}

/// Draws the plots of a study.
///
/// # Errors
/// The error of the first experiment that fails.
pub fn of(study: &str) -> Result<Vec<Figure>, ExperimentError> {
    match study {
        "magod2" => magod2(),
        "flash-benchmark" => flash_benchmark(),
        "library-comparison" => library_comparison(),
        "blinky" => blinky(),
        _ => Ok(Vec::new()),
    }
}

fn magod2() -> Result<Vec<Figure>, ExperimentError> {
    let on = |card, workload| Experiment::new(card, "esp32", workload);
    let class10 = |workload| on("generic-16g-class10", workload);
    let opened = class10("magod2");
    let alone = class10("magod2-4.1");
    let served = Experiment {
        server: NonZeroU32::new(1360).map(|piece_bytes| WebServer {
            place: Place::Core0,
            piece_bytes,
            loss_ppm: 0,
        }),
        ..alone.clone()
    };
    let mut figures = vec![
        write_latencies(
            "4.1 · write latency with and without a download",
            &[("during downloads", &served), ("without", &alone)],
        )?,
        write_latencies(
            "4.6 · write latency; open, append and close for each line",
            &[("", &opened)],
        )?,
        spacings(
            "4.6 · spacing of stalls longer than 50 ms",
            &opened,
            50.0,
            5.0,
        )?,
        write_latencies(
            "4.7 · write latency in the first cluster and after it",
            &[("", &class10("magod2-4.7"))],
        )?,
        write_latencies(
            "4.9 · write latency, file kept open",
            &[("", &class10("magod2-kept-open"))],
        )?,
    ];
    figures.extend(energy(&class10("magod2-kept-open"), 20.0..32.0)?);
    figures.push(write_latencies(
        "4.11 · write latency, 1000 files in one folder",
        &[("", &class10("magod2-4.11"))],
    )?);
    figures.push(write_latencies(
        "4.12 · write latency of three cards",
        &[
            ("class 4", &on("generic-8g-class4", "magod2-4.12")),
            ("class 10", &class10("magod2-4.12")),
            ("generic-8g-third", &on("generic-8g-third", "magod2-4.12")),
        ],
    )?);
    figures.push(write_latencies(
        "4.13 · write latency of 2 MB, files kept open",
        &[
            ("one file", &class10("magod2-4.13-1")),
            ("50 files", &class10("magod2-4.13-50")),
            ("250 files", &class10("magod2-4.13-250")),
        ],
    )?);
    figures.extend(read_speed()?);
    Ok(figures)
}

/// Plots read throughput over file, cluster and buffer size, and over the bus clock.
fn read_speed() -> Result<Vec<Figure>, ExperimentError> {
    const FILES_KIB: [f64; 13] = [
        1.0, 2.0, 4.0, 5.0, 8.0, 9.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0,
    ];
    let with = |path: &str, value: &str| Experiment {
        set: vec![(path.to_string(), value.to_string())],
        ..Experiment::new("generic-16g-class10", "esp32", "read-sweep")
    };
    let cluster = |bytes| with("board.library.cluster_bytes", bytes);
    let files: Vec<(usize, f64)> = FILES_KIB.into_iter().enumerate().collect();
    let buffers: Vec<(usize, f64)> = (0..8).map(|n| (13 + n, f64::from(64 << n))).collect();
    let speed = Axis::linear("read throughput, kB/s");
    let mut clocks = Vec::new();
    for mhz in [4.0, 8.0, 13.3, 20.0, 26.6] {
        let hz = format!("{}", (mhz * 1e6) as u32);
        let rate = throughputs(&with("board.spi.clock_hz", &hz), &[(12, mhz)])?;
        clocks.extend(rate);
    }
    Ok(vec![
        Figure {
            title: "read throughput · file size, for two cluster sizes".to_string(),
            svg: svg(
                &Axis::log("file size, KiB"),
                &speed,
                &[
                    series(
                        "clusters of 8192 B",
                        Mark::Line,
                        throughputs(&cluster("8192"), &files)?,
                    ),
                    series(
                        "clusters of 4096 B",
                        Mark::Line,
                        throughputs(&cluster("4096"), &files)?,
                    ),
                ],
            ),
        },
        Figure {
            title: "read throughput · buffer size".to_string(),
            svg: svg(
                &Axis::log("buffer size, B"),
                &speed,
                &[series(
                    "",
                    Mark::Line,
                    throughputs(&cluster("8192"), &buffers)?,
                )],
            ),
        },
        Figure {
            title: "read throughput · bus clock".to_string(),
            svg: svg(
                &Axis::linear("SPI clock, MHz"),
                &speed,
                &[series("", Mark::Line, clocks)],
            ),
        },
    ])
}

fn flash_benchmark() -> Result<Vec<Figure>, ExperimentError> {
    let on = |workload| Experiment {
        is_raw: true,
        ..Experiment::new("sandisk-extreme-ii-2g", "linux-reader-hangs", workload)
    };
    let sizes = [25.0, 32.0, 33.0, 35.0, 38.0, 50.0, 100.0];
    let sizes: Vec<_> = sizes.into_iter().enumerate().collect();
    let chunks = [1024.0, 512.0, 32.0, 8.0, 1.0];
    let chunks: Vec<_> = chunks.into_iter().enumerate().collect();
    let speed = Axis::linear("write throughput, kB/s");
    Ok(vec![
        Figure {
            title: "cache size · transfers at random offsets".to_string(),
            svg: svg(
                &Axis::linear("transfer size, MB"),
                &speed,
                &[series(
                    "",
                    Mark::Line,
                    throughputs(&on("cache-size"), &sizes)?,
                )],
            ),
        },
        Figure {
            title: "chunk size · 1 MiB in chunks".to_string(),
            svg: svg(
                &Axis::log("chunk size, KiB"),
                &speed,
                &[series(
                    "",
                    Mark::Line,
                    throughputs(&on("chunk-sweep"), &chunks)?,
                )],
            ),
        },
    ])
}

fn library_comparison() -> Result<Vec<Figure>, ExperimentError> {
    let sizes = [(0, 64.0), (1, 256.0), (2, 1024.0)];
    let mut all = Vec::new();
    for (name, board) in [
        ("SD_MMC", "esp32-s3-sd4"),
        ("SdFat", "esp32-s3-sdfat"),
        ("SD.h", "esp32-s3-spi"),
    ] {
        let throughputs = throughputs(
            &Experiment::new("kioxia-16g-tlc", board, "library-comparison"),
            &sizes,
        )?;
        all.push(series(name, Mark::Line, throughputs));
    }
    Ok(vec![Figure {
        title: "write throughput of three libraries".to_string(),
        svg: svg(
            &Axis::log("file size, KiB"),
            &Axis::log("write throughput, kB/s"),
            &all,
        ),
    }])
}

fn blinky() -> Result<Vec<Figure>, ExperimentError> {
    let cards = [
        "team-8g",
        "sandisk-edge-8g-class4",
        "kingston-8g-class10",
        "toshiba-8g-class4",
        "panasonic-1g",
        "apacer-1g",
        "sandisk-industrial-8g-mlc",
    ];
    let figure = |card: &&str| {
        let experiment = Experiment::new(card, "lpc43xx", "blinky-stream-512");
        write_latencies(
            &format!("{card} · write latency, 512 B, file kept open"),
            &[("", &experiment)],
        )
    };
    let mut figures: Vec<Figure> = cards.iter().map(figure).collect::<Result<_, _>>()?;
    figures.extend(larger_blocks()?);
    Ok(figures)
}

/// Plots mean throughput and worst-case latency over the write size, for two consumer and two industrial
/// cards.
fn larger_blocks() -> Result<[Figure; 2], ExperimentError> {
    let cards = [
        "sandisk-edge-8g-class4",
        "kingston-8g-class10",
        "apacer-1g",
        "sandisk-industrial-8g-mlc",
    ];
    let sizes = [
        (512.0, "blinky-stream-512"),
        (2048.0, "blinky-stream-2048"),
        (32_768.0, "blinky-stream-32768"),
    ];
    let (mut averages, mut longest) = (Vec::new(), Vec::new());
    for card in cards {
        let (mut average, mut long) = (Vec::new(), Vec::new());
        for (bytes, workload) in sizes {
            let experiment = Experiment::new(card, "lpc43xx", workload);
            average.extend(throughputs(&experiment, &[(0, bytes)])?);
            let operations = experiment.run(1)?;
            let times = operations.all().iter().map(ms);
            long.push((bytes, times.fold(0.0, f64::max)));
        }
        averages.push(series(card, Mark::Line, average));
        longest.push(series(card, Mark::Line, long));
    }
    let size = Axis::log("write size, B");
    Ok([
        Figure {
            title: "larger blocks · mean throughput".to_string(),
            svg: svg(&size, &Axis::log("kB/s"), &averages),
        },
        Figure {
            title: "larger blocks · worst-case latency".to_string(),
            svg: svg(&size, &Axis::log("ms"), &longest),
        },
    ])
}
