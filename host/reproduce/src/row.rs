//! Reads the studies' files; `studies/README.md` documents their keys.

use crate::{Experiment, Measure, Place, WebServer};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::ops::Range;

/// Name and TOML text of each study.
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

/// Names of all studies.
pub const STUDIES: [&str; FILES.len()] = {
    let mut names = [""; FILES.len()];
    let mut i = 0;
    while i < FILES.len() {
        names[i] = FILES[i].0;
        i += 1;
    }
    names
};

/// Role of a published number in tuning.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// A card or board was tuned to match the number.
    Fit,
    /// No card or board was tuned to match the number.
    Prediction,
}

impl Row {
    /// Returns true for a prediction by which the simulated cards are judged: it has a published number and is
    /// not set aside.
    pub fn is_counted(&self) -> bool {
        self.role == Role::Prediction && self.published.is_some() && self.set_aside.is_none()
    }

    /// Returns the lowest and the highest number that agree with the study; `None` if it gives none.
    pub fn agreeing(&self) -> Option<[f64; 2]> {
        let published = self.published?;
        Some(match self.is_upper_bound {
            true => [0.0, published],
            false => self.published_range.unwrap_or([published; 2]),
        })
    }

    /// Returns a simulated number divided by the nearest number that agrees with the study; `None` if it gives none.
    pub fn deviation(&self, simulated: f64) -> Option<f64> {
        let [least, most] = self.agreeing()?;
        let nearest = simulated.clamp(least, most);
        Some(match nearest == simulated {
            true => 1.0,
            false => simulated / nearest,
        })
    }
}

impl Role {
    /// Returns the role's name in the files.
    pub fn name(self) -> &'static str {
        match self {
            Role::Fit => "fit",
            Role::Prediction => "prediction",
        }
    }
}

/// Reason for not counting a prediction when the simulated cards are judged.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum SetAside {
    /// Repeats a row of role fit: the study varied what had no effect, or the number follows from two fits.
    Repeat,
    /// A ratio within 25 % of 1, which a model without the effect would meet as well.
    #[serde(rename = "near-1")]
    NearOne,
    /// A download, whose rate is that of web server and network.
    Server,
    /// Added after the counted predictions had been fixed.
    Later,
}

impl SetAside {
    /// Returns the reason's name in the files.
    pub fn name(self) -> &'static str {
        match self {
            SetAside::Repeat => "repeat",
            SetAside::NearOne => "near-1",
            SetAside::Server => "server",
            SetAside::Later => "later",
        }
    }
}

/// A study.
#[derive(Debug)]
pub struct Study {
    /// Name on the command line.
    pub name: &'static str,
    /// Title, with publisher and year.
    pub title: String,
    /// Published figures.
    pub rows: Vec<Row>,
}

/// A published number.
#[derive(Clone, Debug)]
pub struct Row {
    /// Name of the study.
    pub study: &'static str,
    /// Number of the figure or section of the study that contains the number.
    pub figure: String,
    /// Description of the quantity.
    pub quantity: String,
    /// Unit of the number; `1` for a ratio.
    pub unit: String,
    /// Published number; `None` if the study announced but never published it, or if it is not available.
    pub published: Option<f64>,
    /// True if the published number is an upper bound: the study says that or less.
    pub is_upper_bound: bool,
    /// Lowest and highest number, if the study gives only these; the published number is then about their middle.
    pub published_range: Option<[f64; 2]>,
    /// Role of the number.
    pub role: Role,
    /// Reason for not counting the prediction, if any.
    pub set_aside: Option<SetAside>,
    /// Evaluation of the simulated number.
    pub query: Query,
    /// Evaluation of the denominator, if the number is a ratio.
    pub over: Option<Query>,
    /// Evaluation of the same number with other assumptions, where the study leaves values open; the results then form
    /// a range.
    pub other: Option<Query>,
    /// True if the number is not that of a run, but the highest of several runs over the lowest.
    pub is_spread: bool,
}

/// A statistic of selected operations of an experiment.
#[derive(Clone, Debug)]
pub struct Query {
    /// Experiment to run.
    pub experiment: Experiment,
    /// Statistic to evaluate.
    pub measure: Measure,
    /// Latency above which an operation counts as a stall, or as slow, in ns.
    pub threshold_ns: u64,
    /// Restriction to operations with file offsets in this range, in bytes.
    pub offsets_bytes: Option<Range<u64>>,
    /// Restriction to one phase of the workload, counted from 0.
    pub phase: Option<usize>,
    /// Trace of a stand-in of a card, whose writes are evaluated in place of those of the experiment.
    pub trace: Option<String>,
}

impl Query {
    /// Returns true if the experiment runs on a simulated card.
    pub fn needs_card(&self) -> bool {
        self.trace.is_none() && !self.measure.runs_on_host()
    }
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
    #[serde(default)]
    at_most: bool,
    published_range: Option<[f64; 2]>,
    role: Role,
    set_aside: Option<SetAside>,
    #[serde(flatten)]
    keys: Keys,
    over: Option<Keys>,
    other: Option<Keys>,
    #[serde(default)]
    spread: bool,
}

#[derive(Clone, Default, Deserialize)]
struct Keys {
    card: Option<String>,
    board: Option<String>,
    workload: Option<String>,
    set: Option<BTreeMap<String, toml::Value>>,
    server: Option<ServerKeys>,
    measure: Option<Measure>,
    threshold_ms: Option<f64>,
    offsets_bytes: Option<[u64; 2]>,
    phase: Option<usize>,
    trace: Option<String>,
    writes: Option<String>,
    raw: Option<bool>,
}

/// Keys that describe a web server; all are absent in experiments without a web server.
#[derive(Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ServerKeys {
    place: Option<Place>,
    piece_bytes: Option<NonZeroU32>,
    #[serde(default)]
    loss_ppm: u32,
}

impl ServerKeys {
    fn server(self) -> Result<Option<WebServer>, String> {
        match (self.place, self.piece_bytes) {
            (Some(place), Some(piece_bytes)) => Ok(Some(WebServer {
                place,
                piece_bytes,
                loss_ppm: self.loss_ppm,
            })),
            (None, None) => Ok(None),
            _ => Err("`server` needs both `place` and `piece_bytes`".to_string()),
        }
    }
}

impl Keys {
    /// Returns the keys, with missing ones taken from `defaults`.
    fn or(&self, defaults: &Keys) -> Keys {
        Keys {
            card: self.card.clone().or_else(|| defaults.card.clone()),
            board: self.board.clone().or_else(|| defaults.board.clone()),
            workload: self.workload.clone().or_else(|| defaults.workload.clone()),
            set: self.set.clone().or_else(|| defaults.set.clone()),
            server: self.server.or(defaults.server),
            measure: self.measure.or(defaults.measure),
            threshold_ms: self.threshold_ms.or(defaults.threshold_ms),
            offsets_bytes: self.offsets_bytes.or(defaults.offsets_bytes),
            phase: self.phase.or(defaults.phase),
            trace: self.trace.clone().or_else(|| defaults.trace.clone()),
            writes: self.writes.clone().or_else(|| defaults.writes.clone()),
            raw: self.raw.or(defaults.raw),
        }
    }

    fn query(self) -> Result<Query, String> {
        let need = |value: Option<String>, key: &str| value.ok_or(format!("`{key}` is missing"));
        let set = self.set.unwrap_or_default();
        let is_known = |path: &String| path.starts_with("card.") || path.starts_with("board.");
        if let Some(path) = set.keys().find(|path| !is_known(path)) {
            return Err(format!(
                "`set` has the path `{path}`; paths must begin with `card.` or `board.`"
            ));
        }
        let is_raw = self.raw.unwrap_or_default();
        if is_raw && (self.server.is_some() || self.writes.is_some()) {
            return Err("`raw` cannot be combined with `server` or `writes`".to_string());
        }
        if self.phase == Some(0) {
            return Err("`phase` is 0; phases are counted from 1".to_string());
        }
        Ok(Query {
            experiment: Experiment {
                card: need(self.card, "card")?,
                board: need(self.board, "board")?,
                workload: need(self.workload, "workload")?,
                set: set
                    .into_iter()
                    .map(|(path, value)| (path, value.to_string()))
                    .collect(),
                server: self.server.unwrap_or_default().server()?,
                writes: self.writes,
                is_raw,
                host: 0,
            },
            measure: self.measure.ok_or("`measure` is missing")?,
            threshold_ns: (self.threshold_ms.unwrap_or_default() * 1e6) as u64,
            offsets_bytes: self.offsets_bytes.map(|[from, to]| from..to),
            phase: self.phase.map(|phase| phase - 1),
            trace: self.trace,
        })
    }
}

/// Returns the study with the given name.
///
/// # Errors
/// If there is no such study; the message lists all studies.
pub fn study(name: &str) -> Result<Study, String> {
    let Some(&(known, text)) = FILES.iter().find(|(known, _)| *known == name) else {
        return Err(format!(
            "no study named {name}; choose one of {}",
            STUDIES.join(", ")
        ));
    };
    let file: File =
        toml::from_str(text).map_err(|error| format!("studies/{known}.toml: {error}"))?;
    let location = |entry: &Entry| format!("studies/{known}.toml, {}", entry.quantity);
    let mut rows = Vec::new();
    for entry in file.row {
        let location = location(&entry);
        let keys = entry.keys.or(&file.default);
        let over = entry.over.map(|over| over.or(&keys));
        let other = entry.other.map(|other| other.or(&keys));
        if [over.is_some(), other.is_some(), entry.spread]
            .iter()
            .filter(|is| **is)
            .count()
            > 1
        {
            return Err(format!(
                "{location}: use only one of `over`, `other` and `spread`"
            ));
        }
        let is_inside = |[least, most]: [f64; 2]| {
            entry
                .published
                .is_some_and(|published| (least..=most).contains(&published))
        };
        if entry.published_range.is_some_and(|range| !is_inside(range)) {
            return Err(format!(
                "{location}: `published` must be within `published_range`"
            ));
        }
        if entry.at_most && entry.published_range.is_some() {
            return Err(format!(
                "{location}: use only one of `at_most` and `published_range`"
            ));
        }
        let query = |keys: Keys| keys.query().map_err(|error| format!("{location}: {error}"));
        rows.push(Row {
            study: known,
            figure: entry.figure,
            quantity: entry.quantity,
            unit: entry.unit,
            published: entry.published,
            is_upper_bound: entry.at_most,
            published_range: entry.published_range,
            role: entry.role,
            set_aside: entry.set_aside,
            query: query(keys)?,
            over: over.map(query).transpose()?,
            other: other.map(query).transpose()?,
            is_spread: entry.spread,
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

    /// Returns all rows of role fit, with a web server or without one, in order.
    fn fits(with_server: bool) -> Vec<Row> {
        let rows = STUDIES.map(|name| study(name).unwrap().rows);
        let fits = rows.into_iter().flatten();
        fits.filter(|row| row.role == Role::Fit)
            .filter(|row| row.query.experiment.server.is_some() == with_server)
            .collect()
    }

    /// Returns the FNV-1a hash of the names of rows, in order.
    fn hash_of(rows: &[Row]) -> u64 {
        let names = rows
            .iter()
            .map(|row| format!("{}|{}|{}\n", row.study, row.figure, row.quantity));
        names
            .collect::<String>()
            .bytes()
            .fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
            })
    }

    #[test]
    fn fit_rows_are_those_committed_to_before_tuning() {
        assert_eq!(hash_of(&fits(false)), 2_909_242_085_795_743_645);
    }

    fn all_rows() -> Vec<Row> {
        let rows = STUDIES.map(|name| study(name).unwrap().rows);
        rows.into_iter().flatten().collect()
    }

    /// Guards against setting predictions aside by result.
    #[test]
    fn counted_predictions_are_those_committed_to_before_fitting() {
        let counted: Vec<Row> = all_rows().into_iter().filter(Row::is_counted).collect();
        assert_eq!(counted.len(), 33);
        assert_eq!(hash_of(&counted), 1_496_817_651_178_164_345);
    }

    /// The mark `near-1` follows from the number, not from a judgement.
    #[test]
    fn predicted_ratios_are_near_1_exactly_if_they_are_marked() {
        for row in all_rows() {
            let is_near =
                row.unit == "1" && row.published.is_some_and(|p| (0.8..=1.25).contains(&p));
            let is_marked = row.set_aside == Some(SetAside::NearOne);
            if row.role == Role::Prediction {
                assert_eq!(is_near, is_marked, "{}", row.quantity);
            } else {
                assert_eq!(row.set_aside, None, "{}", row.quantity);
            }
        }
    }

    /// The server has two processor times, which are not published: one fit for each.
    #[test]
    fn two_rows_of_the_web_server_are_fits() {
        let quantities: Vec<String> = fits(true).into_iter().map(|row| row.quantity).collect();
        assert_eq!(
            quantities,
            [
                "download, server in the main loop",
                "download in chunks of 32 B"
            ]
        );
    }

    /// Guards against choosing roles by result: roles must be those fixed before tuning.
    #[test]
    fn role_counts_are_those_fixed_before_tuning() {
        let count = |role| {
            let rows = STUDIES.map(|name| study(name).unwrap().rows);
            let rows = rows.iter().flatten().filter(|row| row.published.is_some());
            rows.filter(|row| row.role == role).count()
        };
        // Added later: two predictions with two cores, one with a download, and the web server's ten rows,
        // to two of which its two processor times were fitted. Then ten slowest and fastest downloads, three ratios of
        // downloads, two rows of figure 4.11, and seven files on ext2.
        assert_eq!(
            (count(Role::Fit), count(Role::Prediction)),
            (47 + 2, 44 + 2 + 1 + 8 + 10 + 3 + 2 + 7)
        );
    }

    #[test]
    fn raw_writes_exclude_a_server_and_recorded_writes() {
        let query = |more: &str| {
            let text = format!(
                "card = \"a\"\nboard = \"b\"\nworkload = \"c\"\nmeasure = \"mean\"\nraw = true\n{more}"
            );
            toml::from_str::<Keys>(&text).unwrap().query()
        };
        assert!(query("").unwrap().experiment.is_raw);
        for more in ["writes = \"ext2/file-size\"", "server = {}"] {
            assert!(query(more).unwrap_err().contains("`raw`"), "{more}");
        }
    }

    #[test]
    fn server_keys_come_together() {
        let server = |toml: &str| {
            let keys: ServerKeys = toml::from_str(toml).map_err(|error| error.to_string())?;
            keys.server()
        };
        assert_eq!(server(""), Ok(None));
        let given = server("place = \"core-0\"\npiece_bytes = 1")
            .unwrap()
            .unwrap();
        assert_eq!((given.place, given.loss_ppm), (Place::Core0, 0));
        for bad in [
            "piece_bytes = 1",
            "place = \"core-0\"",
            "place = \"core-2\"\npiece_bytes = 1",
            "place = \"core-0\"\npiece_bytes = 0",
            "rate = 1",
        ] {
            assert!(server(bad).is_err(), "{bad}");
        }
    }

    /// Checks key names, because serde's flatten ignores unknown keys.
    #[test]
    fn study_files_have_no_unknown_keys() {
        let known = [
            "figure",
            "quantity",
            "unit",
            "published",
            "role",
            "set_aside",
            "card",
            "board",
            "workload",
            "set",
            "measure",
            "threshold_ms",
            "offsets_bytes",
            "phase",
            "over",
            "other",
            "server",
            "trace",
            "writes",
            "raw",
            "spread",
            "at_most",
            "published_range",
        ];
        for (name, text) in FILES {
            let file: toml::Table = toml::from_str(text).unwrap();
            for row in file["row"].as_array().unwrap() {
                let row = row.as_table().unwrap();
                let nested =
                    ["over", "other"].map(|key| row.get(key).and_then(toml::Value::as_table));
                let nested = nested.into_iter().flatten().flat_map(toml::Table::keys);
                let keys = row.keys().chain(nested);
                for key in keys {
                    assert!(known.contains(&key.as_str()), "{name}: `{key}`");
                }
            }
        }
    }

    #[test]
    fn the_error_for_an_unknown_study_lists_all_studies() {
        let error = study("magod3").unwrap_err();
        assert!(
            error.contains("magod3") && error.contains("blinky"),
            "{error}"
        );
    }
}
