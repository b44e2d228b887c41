//! Times of the tests and the mutants that they reach, in a file, so that an interrupted run continues at once.

use crate::at;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;

/// Of one test, without a mutant.
#[derive(Clone, PartialEq, Debug)]
pub enum Measurement {
    Ended {
        /// Processor time, in s.
        time_s: f64,
        reached: Vec<u32>,
    },
    /// The test took longer than this limit, in s.
    Stopped { limit_s: f64 },
}

/// The measurements of a file, by program, time of its build, and test.
pub struct Measurements {
    path: PathBuf,
    by_key: BTreeMap<String, Measurement>,
}

impl Measurements {
    pub fn open(path: PathBuf) -> Result<Measurements, String> {
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let parsed = text.lines().filter_map(parsed);
        let by_key = parsed.collect();
        Ok(Measurements { path, by_key })
    }

    /// Returns a measurement, unless the test was stopped and has more time now.
    pub fn get(&self, key: &str, limit_s: f64) -> Option<Measurement> {
        let known = self.by_key.get(key)?;
        match known {
            Measurement::Stopped { limit_s: old_s } if *old_s < limit_s => None,
            _ => Some(known.clone()),
        }
    }

    pub fn add(&mut self, key: String, measurement: Measurement) -> Result<Measurement, String> {
        let text = match &measurement {
            Measurement::Ended { time_s, reached } => {
                let reached: Vec<String> = reached.iter().map(u32::to_string).collect();
                format!("{time_s}\t{}", reached.join(" "))
            }
            Measurement::Stopped { limit_s } => format!("{limit_s}\tstopped"),
        };
        let line = format!("{key}\t{text}\n");
        let file = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.path);
        file.and_then(|mut file| file.write_all(line.as_bytes()))
            .map_err(at(&self.path))?;
        self.by_key.insert(key, measurement.clone());
        Ok(measurement)
    }
}

fn parsed(line: &str) -> Option<(String, Measurement)> {
    let (line, reached) = line.rsplit_once('\t')?;
    let (key, time_s) = line.rsplit_once('\t')?;
    let time_s = time_s.parse().ok()?;
    let measurement = match reached {
        "stopped" => Measurement::Stopped { limit_s: time_s },
        _ => Measurement::Ended {
            time_s,
            reached: reached
                .split_whitespace()
                .map(str::parse)
                .collect::<Result<_, _>>()
                .ok()?,
        },
    };
    Some((key.to_string(), measurement))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measurements_are_read_as_they_were_written_and_stopped_tests_run_again_with_more_time() {
        let path = std::env::temp_dir().join(format!("measurements-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let ended = Measurement::Ended {
            time_s: 0.25,
            reached: vec![1, 22],
        };
        let stopped = Measurement::Stopped { limit_s: 4.0 };
        let mut written = Measurements::open(path.clone()).expect("a new file");
        for (key, measurement) in [("a 1\tb::c", &ended), ("a 1\tb::d", &stopped)] {
            assert!(written.add(key.to_string(), measurement.clone()).is_ok());
        }
        let read = Measurements::open(path.clone()).expect("a written file");
        let _ = std::fs::remove_file(&path);
        assert_eq!(read.get("a 1\tb::c", 60.0), Some(ended));
        assert_eq!(read.get("a 1\tb::d", 4.0), Some(stopped));
        assert_eq!(read.get("a 1\tb::d", 4.5), None);
        assert_eq!(read.get("a 2\tb::c", 4.0), None, "another build");
    }
}
