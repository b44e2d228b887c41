//! The plots that the studies show, simulated.

use crate::experiment::{Experiment, ExperimentError, Operations};
use crate::plot::{Axis, Mark, Series, svg};
use crate::recording::Recording;
use cardiograph_workload::Operation;

/// A plot with what it shows.
pub struct Figure {
    /// Where the study has it, and what it is.
    pub title: String,
    /// The plot.
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

/// Time of each operation over the payload before it, in kB and ms.
fn times_over_bytes(operations: &Operations) -> Vec<(f64, f64)> {
    let mut position = 0.0;
    let points = operations.all().iter().map(|operation| {
        let point = (position, ms(operation));
        position += operation.length_bytes as f64 / 1e3;
        point
    });
    points.collect()
}

fn write_times(title: &str, names: &[(&str, &Experiment)]) -> Result<Figure, ExperimentError> {
    let mut all = Vec::new();
    for (name, experiment) in names {
        let points = times_over_bytes(&experiment.run(1)?);
        all.push(series(name, Mark::Dot, points));
    }
    Ok(Figure {
        title: title.to_string(),
        svg: svg(
            &Axis::linear("written, kB"),
            &Axis::linear("write time, ms"),
            &all,
        ),
    })
}

/// Payload from peak to peak, in classes of so many kB.
fn spacings(
    title: &str,
    experiment: &Experiment,
    threshold_ms: f64,
    class_kb: f64,
) -> Result<Figure, ExperimentError> {
    let points = times_over_bytes(&experiment.run(1)?);
    let mut starts = Vec::new();
    let mut was_above = false;
    for (kb, ms) in points {
        let is_above = ms > threshold_ms;
        if is_above && !was_above {
            starts.push(kb);
        }
        was_above = is_above;
    }
    let mut classes = std::collections::BTreeMap::<u64, u32>::new();
    for pair in starts.windows(2) {
        *classes
            .entry(((pair[1] - pair[0]) / class_kb) as u64)
            .or_default() += 1;
    }
    let bars = classes.into_iter();
    let bars = bars.map(|(class, count)| ((class as f64 + 0.5) * class_kb, f64::from(count)));
    Ok(Figure {
        title: title.to_string(),
        svg: svg(
            &Axis::linear("from peak to peak, kB"),
            &Axis::linear("peaks"),
            &[series("", Mark::Bar, bars.collect())],
        ),
    })
}

/// Energy in bins of 10 ms, and write times under it on the same axis, for a stretch of seconds.
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
            title: "4.10 · energy in 10 ms, kept open".to_string(),
            svg: svg(
                &time,
                &Axis::linear("energy, uJ"),
                &[series("", Mark::Bar, bins)],
            ),
        },
        Figure {
            title: "4.10 · write time under it".to_string(),
            svg: svg(
                &time,
                &Axis::linear("write time, ms"),
                &[series("", Mark::Dot, times)],
            ),
        },
    ])
}

/// Mean rate of each phase in kB/s, over something that its number stands for.
fn rates(
    experiment: &Experiment,
    phases: &[(usize, f64)],
) -> Result<Vec<(f64, f64)>, ExperimentError> {
    let operations = experiment.run(1)?;
    let rate = |phase: usize| {
        let (mut bytes, mut ns) = (0, 0);
        for operation in operations.counted(Some(phase), None) {
            bytes += operation.length_bytes;
            ns += operation.duration_ns();
        }
        bytes as f64 / ns.max(1) as f64 * 1e6
    };
    Ok(phases.iter().map(|&(phase, x)| (x, rate(phase))).collect())
}

/// The plots of a study.
///
/// # Errors
/// The first experiment that fails.
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
    let class10 = |workload| on("class10-16g", workload);
    let opened = class10("magod2");
    let mut figures = vec![
        write_times(
            "4.6 · write time, opened and closed for each line",
            &[("", &opened)],
        )?,
        spacings(
            "4.6 · distance between peaks over 50 ms",
            &opened,
            50.0,
            5.0,
        )?,
        write_times(
            "4.7 · the first cluster and those after it",
            &[("", &class10("magod2-4.7"))],
        )?,
        write_times(
            "4.9 · write time, kept open",
            &[("", &class10("magod2-kept-open"))],
        )?,
    ];
    figures.extend(energy(&class10("magod2-kept-open"), 20.0..32.0)?);
    figures.push(write_times(
        "4.11 · 1000 files in one folder",
        &[("", &class10("magod2-4.11"))],
    )?);
    figures.push(write_times(
        "4.12 · three cards",
        &[
            ("class 4", &on("class4", "magod2-4.12")),
            ("class 10", &class10("magod2-4.12")),
            ("third", &on("third", "magod2-4.12")),
        ],
    )?);
    figures.push(write_times(
        "4.13 · 2 MB, kept open",
        &[
            ("one file", &class10("magod2-4.13-1")),
            ("50 files", &class10("magod2-4.13-50")),
            ("250 files", &class10("magod2-4.13-250")),
        ],
    )?);
    figures.extend(read_speed()?);
    Ok(figures)
}

/// Read speed against file, cluster and buffer size, and against the clock.
fn read_speed() -> Result<Vec<Figure>, ExperimentError> {
    const FILES_KIB: [f64; 13] = [
        1.0, 2.0, 4.0, 5.0, 8.0, 9.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0,
    ];
    let with = |path: &str, value: &str| Experiment {
        set: vec![(path.to_string(), value.to_string())],
        ..Experiment::new("class10-16g", "esp32", "read-sweep")
    };
    let cluster = |bytes| with("board.library.cluster_bytes", bytes);
    let files: Vec<(usize, f64)> = FILES_KIB.into_iter().enumerate().collect();
    let buffers: Vec<(usize, f64)> = (0..8).map(|n| (13 + n, f64::from(64 << n))).collect();
    let speed = Axis::linear("read speed, kB/s");
    let mut clocks = Vec::new();
    for mhz in [4.0, 8.0, 13.3, 20.0, 26.6] {
        let hz = format!("{}", (mhz * 1e6) as u32);
        let rate = rates(&with("board.spi.clock_hz", &hz), &[(12, mhz)])?;
        clocks.extend(rate);
    }
    Ok(vec![
        Figure {
            title: "read speed · size of the file, for two sizes of cluster".to_string(),
            svg: svg(
                &Axis::log("file, KiB"),
                &speed,
                &[
                    series(
                        "clusters of 8192 B",
                        Mark::Line,
                        rates(&cluster("8192"), &files)?,
                    ),
                    series(
                        "clusters of 4096 B",
                        Mark::Line,
                        rates(&cluster("4096"), &files)?,
                    ),
                ],
            ),
        },
        Figure {
            title: "read speed · size of the buffer".to_string(),
            svg: svg(
                &Axis::log("buffer, B"),
                &speed,
                &[series("", Mark::Line, rates(&cluster("8192"), &buffers)?)],
            ),
        },
        Figure {
            title: "read speed · clock of the bus".to_string(),
            svg: svg(
                &Axis::linear("SPI, MHz"),
                &speed,
                &[series("", Mark::Line, clocks)],
            ),
        },
    ])
}

fn flash_benchmark() -> Result<Vec<Figure>, ExperimentError> {
    let on = |workload| Experiment::new("sandisk-extreme2-2g", "linux-reader", workload);
    let sizes = [25.0, 32.0, 33.0, 35.0, 38.0, 50.0, 100.0];
    let sizes: Vec<_> = sizes.into_iter().enumerate().collect();
    let chunks = [1024.0, 512.0, 32.0, 8.0, 1.0];
    let chunks: Vec<_> = chunks.into_iter().enumerate().collect();
    let speed = Axis::linear("write speed, kB/s");
    Ok(vec![
        Figure {
            title: "cache size · transfers to random places".to_string(),
            svg: svg(
                &Axis::linear("transfer, MB"),
                &speed,
                &[series("", Mark::Line, rates(&on("cache-size"), &sizes)?)],
            ),
        },
        Figure {
            title: "chunk size · 1 MiB in pieces".to_string(),
            svg: svg(
                &Axis::log("piece, KiB"),
                &speed,
                &[series("", Mark::Line, rates(&on("chunk-sweep"), &chunks)?)],
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
        let rates = rates(
            &Experiment::new("kioxia-16g", board, "library-comparison"),
            &sizes,
        )?;
        all.push(series(name, Mark::Line, rates));
    }
    Ok(vec![Figure {
        title: "write speed of three libraries".to_string(),
        svg: svg(
            &Axis::log("file, KiB"),
            &Axis::log("write speed, kB/s"),
            &all,
        ),
    }])
}

fn blinky() -> Result<Vec<Figure>, ExperimentError> {
    let cards = [
        "team-8g-class10",
        "sandisk-edge-8g",
        "kingston-8g",
        "toshiba-8g",
        "panasonic-1g-slc",
        "apacer-1g-slc",
        "sandisk-industrial-8g",
    ];
    let figure = |card: &&str| {
        let experiment = Experiment::new(card, "lpc43xx", "blinky-stream-512");
        write_times(&format!("{card} · kept open, 512 B"), &[("", &experiment)])
    };
    let mut figures: Vec<Figure> = cards.iter().map(figure).collect::<Result<_, _>>()?;
    figures.extend(larger_blocks()?);
    Ok(figures)
}

/// Average and longest write over the size of a write, for two consumer and two industrial cards.
fn larger_blocks() -> Result<[Figure; 2], ExperimentError> {
    let cards = [
        "sandisk-edge-8g",
        "kingston-8g",
        "apacer-1g-slc",
        "sandisk-industrial-8g",
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
            average.extend(rates(&experiment, &[(0, bytes)])?);
            let operations = experiment.run(1)?;
            let times = operations.all().iter().map(ms);
            long.push((bytes, times.fold(0.0, f64::max)));
        }
        averages.push(series(card, Mark::Line, average));
        longest.push(series(card, Mark::Line, long));
    }
    let size = Axis::log("a write, B");
    Ok([
        Figure {
            title: "larger blocks · average".to_string(),
            svg: svg(&size, &Axis::log("kB/s"), &averages),
        },
        Figure {
            title: "larger blocks · longest write".to_string(),
            svg: svg(&size, &Axis::log("ms"), &longest),
        },
    ])
}
