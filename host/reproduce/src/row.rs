//! The studies' files; their keys are in `studies/README.md`.

use crate::{Experiment, Measure};
use cardiograph_store::Download;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::ops::Range;

/// Studies: name and TOML.
const FILES: &[(&str, &str)] = &[
    ("magod2", include_str!("../../../studies/magod2.toml")),
    (
        "flash-benchmark",
        include_str!("../../../studies/flash-benchmark.toml"),
    ),
    (
        "library-comparison",
        include_str!("../../../studies/library-comparison.toml"),
    ),
    (
        "arduino-bytes",
        include_str!("../../../studies/arduino-bytes.toml"),
    ),
    ("blinky", include_str!("../../../studies/blinky.toml")),
];

/// Names of the studies there are.
pub const STUDIES: [&str; FILES.len()] = {
    let mut names = [""; FILES.len()];
    let mut i = 0;
    while i < FILES.len() {
        names[i] = FILES[i].0;
        i += 1;
    }
    names
};

/// What a published number was used for.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// A card or board was tuned until it came out.
    Fit,
    /// Nothing was tuned to it.
    Prediction,
}

impl Role {
    /// As it stands in the files.
    pub fn name(self) -> &'static str {
        match self {
            Role::Fit => "fit",
            Role::Prediction => "prediction",
        }
    }
}

/// A study.
#[derive(Debug)]
pub struct Study {
    /// What it is asked for by.
    pub name: &'static str,
    /// Who published it, and when.
    pub title: String,
    /// Its figures.
    pub rows: Vec<Row>,
}

/// A published number.
#[derive(Clone, Debug)]
pub struct Row {
    /// The study.
    pub study: &'static str,
    /// Where the study has it.
    pub figure: String,
    /// What it is.
    pub quantity: String,
    /// Its unit.
    pub unit: String,
    /// The number; none where a study promised it and never gave it, or where it is not at hand.
    pub published: Option<f64>,
    /// What it was used for.
    pub role: Role,
    /// How it is simulated.
    pub take: Take,
    /// What it is a ratio to, if it is one.
    pub over: Option<Take>,
}

/// A number from the writes of an experiment.
#[derive(Clone, Debug)]
pub struct Take {
    /// What is run.
    pub experiment: Experiment,
    /// What is taken from it.
    pub measure: Measure,
    /// What a peak, or a slow write, is longer than, in ns.
    pub threshold_ns: u64,
    /// Only writes whose place in the file is in this range count, in bytes.
    pub offsets_bytes: Option<Range<u64>>,
    /// Only this phase of the workload counts, from 0.
    pub phase: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    title: String,
    #[serde(default)]
    default: Keys,
    row: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    figure: String,
    quantity: String,
    unit: String,
    published: Option<f64>,
    role: Role,
    #[serde(flatten)]
    keys: Keys,
    over: Option<Keys>,
}

#[derive(Clone, Default, Deserialize)]
struct Keys {
    card: Option<String>,
    board: Option<String>,
    workload: Option<String>,
    set: Option<BTreeMap<String, toml::Value>>,
    download: Option<DownloadKeys>,
    measure: Option<Measure>,
    threshold_ms: Option<f64>,
    offsets_bytes: Option<[u64; 2]>,
    part: Option<usize>,
}

/// Empty for no download.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(non_snake_case, reason = "Bps is bytes per second")]
struct DownloadKeys {
    piece_bytes: Option<NonZeroU32>,
    network_Bps: Option<NonZeroU32>,
}

impl DownloadKeys {
    fn download(self) -> Result<Option<Download>, String> {
        match (self.piece_bytes, self.network_Bps) {
            (Some(piece_bytes), Some(rate)) => Ok(Some(Download {
                piece_bytes,
                network_Bps: rate,
            })),
            (None, None) => Ok(None),
            _ => Err("`download` needs `piece_bytes` and `network_Bps`".to_string()),
        }
    }
}

impl Keys {
    /// These, and where they say nothing those.
    fn or(&self, those: &Keys) -> Keys {
        Keys {
            card: self.card.clone().or_else(|| those.card.clone()),
            board: self.board.clone().or_else(|| those.board.clone()),
            workload: self.workload.clone().or_else(|| those.workload.clone()),
            set: self.set.clone().or_else(|| those.set.clone()),
            download: self.download.or(those.download),
            measure: self.measure.or(those.measure),
            threshold_ms: self.threshold_ms.or(those.threshold_ms),
            offsets_bytes: self.offsets_bytes.or(those.offsets_bytes),
            part: self.part.or(those.part),
        }
    }

    fn take(self) -> Result<Take, String> {
        let need = |value: Option<String>, key: &str| value.ok_or(format!("`{key}` is missing"));
        let set = self.set.unwrap_or_default();
        let is_known = |path: &String| path.starts_with("card.") || path.starts_with("board.");
        if let Some(path) = set.keys().find(|path| !is_known(path)) {
            return Err(format!(
                "`set` has `{path}`; a path begins with `card.` or `board.`"
            ));
        }
        if self.part == Some(0) {
            return Err("`part` is 0; parts count from 1".to_string());
        }
        Ok(Take {
            experiment: Experiment {
                card: need(self.card, "card")?,
                board: need(self.board, "board")?,
                workload: need(self.workload, "workload")?,
                set: set
                    .into_iter()
                    .map(|(path, value)| (path, value.to_string()))
                    .collect(),
                download: self.download.unwrap_or_default().download()?,
            },
            measure: self.measure.ok_or("`measure` is missing")?,
            threshold_ns: (self.threshold_ms.unwrap_or_default() * 1e6) as u64,
            offsets_bytes: self.offsets_bytes.map(|[from, to]| from..to),
            phase: self.part.map(|part| part - 1),
        })
    }
}

/// Reads the study of this name.
///
/// # Errors
/// If there is none; the message lists those there are.
pub fn study(name: &str) -> Result<Study, String> {
    let Some(&(known, text)) = FILES.iter().find(|(known, _)| *known == name) else {
        return Err(format!(
            "there is no study named {name}; there are: {}",
            STUDIES.join(", ")
        ));
    };
    let file: File =
        toml::from_str(text).map_err(|error| format!("studies/{known}.toml: {error}"))?;
    let place = |entry: &Entry| format!("studies/{known}.toml, {}", entry.quantity);
    let mut rows = Vec::new();
    for entry in file.row {
        let place = place(&entry);
        let keys = entry.keys.or(&file.default);
        let over = entry.over.map(|over| over.or(&keys));
        let take = |keys: Keys| keys.take().map_err(|error| format!("{place}: {error}"));
        rows.push(Row {
            study: known,
            figure: entry.figure,
            quantity: entry.quantity,
            unit: entry.unit,
            published: entry.published,
            role: entry.role,
            take: take(keys)?,
            over: over.map(take).transpose()?,
        });
    }
    debug_assert_eq!(file.name, known);
    Ok(Study {
        name: known,
        title: file.title,
        rows,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_study_can_be_read() {
        for name in STUDIES {
            let study = study(name).unwrap();
            assert!(!study.rows.is_empty() && !study.title.is_empty());
        }
    }

    /// FNV-1a of all rows of role fit, in order.
    fn fits_hash() -> u64 {
        let rows = STUDIES.map(|name| study(name).unwrap().rows);
        let fits = rows.iter().flatten().filter(|row| row.role == Role::Fit);
        let names = fits.map(|row| format!("{}|{}|{}\n", row.study, row.figure, row.quantity));
        names
            .collect::<String>()
            .bytes()
            .fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
            })
    }

    #[test]
    fn the_fits_are_those_that_were_fixed() {
        assert_eq!(fits_hash(), 12_739_326_518_351_273_021);
    }

    /// Roles may not follow what comes out: they are as they were before anything was tuned.
    #[test]
    fn roles_are_as_they_were_fixed() {
        let count = |role| {
            let rows = STUDIES.map(|name| study(name).unwrap().rows);
            let rows = rows.iter().flatten().filter(|row| row.published.is_some());
            rows.filter(|row| row.role == role).count()
        };
        // Predictions that came later: two of two cores, one of a download.
        assert_eq!(
            (count(Role::Fit), count(Role::Prediction)),
            (47, 44 + 2 + 1)
        );
    }

    #[test]
    fn a_download_is_whole_or_none() {
        let download = |toml: &str| {
            let keys: DownloadKeys = toml::from_str(toml).map_err(|error| error.to_string())?;
            keys.download()
        };
        assert_eq!(download(""), Ok(None));
        assert!(
            download("piece_bytes = 1\nnetwork_Bps = 1")
                .unwrap()
                .is_some()
        );
        for bad in [
            "piece_bytes = 1",
            "piece_bytes = 0\nnetwork_Bps = 1",
            "rate = 1",
        ] {
            assert!(download(bad).is_err(), "{bad}");
        }
    }

    /// Keys are gathered by serde's flatten, which passes over those it does not know.
    #[test]
    fn no_key_is_misspelt() {
        let known = [
            "figure",
            "quantity",
            "unit",
            "published",
            "role",
            "card",
            "board",
            "workload",
            "set",
            "measure",
            "threshold_ms",
            "offsets_bytes",
            "part",
            "over",
            "download",
        ];
        for (name, text) in FILES {
            let file: toml::Table = toml::from_str(text).unwrap();
            for row in file["row"].as_array().unwrap() {
                let row = row.as_table().unwrap();
                let over = row.get("over").and_then(toml::Value::as_table);
                let keys = row
                    .keys()
                    .chain(over.into_iter().flat_map(|over| over.keys()));
                for key in keys {
                    assert!(known.contains(&key.as_str()), "{name}: `{key}`");
                }
            }
        }
    }

    #[test]
    fn an_unknown_study_lists_those_there_are() {
        let error = study("magod3").unwrap_err();
        assert!(
            error.contains("magod3") && error.contains("blinky"),
            "{error}"
        );
    }
}
