//! Types and ranges of the keys of a specification. They are checked before serde parses the text, because its messages
//! name types of Rust, but no key.

use crate::SweepError;
use cardiograph_record::LINE_BYTES_MIN;
use cardiograph_recorder::{LINE_BYTES_MAX, RING_BYTES_MAX, RING_BYTES_MIN};
use cardiograph_sim_card::parse_toml;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::ops::RangeInclusive;

/// Longest recording, in s: ten years.
const RUN_S_MAX: u64 = 315_576_000;
/// Seeds and times are stored as signed 64-bit numbers.
pub(crate) const SEED_MAX: u64 = i64::MAX as u64;
/// Longest text in a message, in characters.
const SHOWN_MAX: usize = 40;

/// Type of a key's value.
enum Kind {
    Text,
    Choice(&'static [&'static str]),
    Whole(RangeInclusive<u64>),
}

/// Number of values.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Arity {
    One,
    List,
}

const FIELDS: [(&str, Arity, Kind); 15] = [
    ("about", Arity::One, Kind::Text),
    ("mode", Arity::One, Kind::Choice(&["card", "recorder"])),
    ("cards", Arity::List, Kind::Text),
    ("boards", Arity::List, Kind::Text),
    ("rates_hz", Arity::List, Kind::Whole(1..=1_000_000)),
    (
        "sample_bytes",
        Arity::One,
        Kind::Whole(LINE_BYTES_MIN as u64..=LINE_BYTES_MAX as u64),
    ),
    (
        "buffers_bytes",
        Arity::List,
        Kind::Whole(RING_BYTES_MIN as u64..=RING_BYTES_MAX as u64),
    ),
    (
        "policies",
        Arity::List,
        Kind::Choice(&["stream", "naive", "keep-open", "after-session"]),
    ),
    ("run_s", Arity::One, Kind::Whole(1..=RUN_S_MAX)),
    (
        "durability_window_ms",
        Arity::One,
        Kind::Whole(1..=3_600_000),
    ),
    ("session_s", Arity::One, Kind::Whole(1..=86_400)),
    ("seeds", Arity::One, Kind::Whole(1..=1_000_000_000)),
    ("first_seed", Arity::One, Kind::Whole(0..=SEED_MAX)),
    ("seeds_per_task", Arity::One, Kind::Whole(1..=1_000_000)),
    ("max_tasks", Arity::One, Kind::Whole(1..=i64::MAX as u64)),
];

/// Checks type and range of every known key; unknown and missing keys are left to serde. Error messages start with `name`.
pub(crate) fn check_text(name: &str, text: &str) -> Result<(), SweepError> {
    let values: BTreeMap<String, Value> = parse_toml(name, text).map_err(SweepError::new)?;
    for (field, arity, kind) in &FIELDS {
        let Some(value) = values.get(*field) else {
            continue;
        };
        match (arity, value) {
            (Arity::One, value) => kind.check(name, field, "is", value)?,
            (Arity::List, Value::List(list)) => {
                for value in list {
                    kind.check(name, field, "contains", value)?;
                }
            }
            (Arity::List, value) => {
                return Err(SweepError::new(format!(
                    "{name}: `{field}` is {value}; use a list between [ and ]"
                )));
            }
        }
    }
    Ok(())
}

/// Checks the range of a whole number.
pub(crate) fn check_range(name: &str, field: &str, value: u64) -> Result<(), SweepError> {
    let found = FIELDS.iter().find(|(known, ..)| *known == field);
    match found {
        Some((_, Arity::List, kind)) => {
            kind.check(name, field, "contains", &Value::Whole(value.into()))
        }
        Some((_, Arity::One, kind)) => kind.check(name, field, "is", &Value::Whole(value.into())),
        None => Ok(()),
    }
}

impl Kind {
    fn check(&self, name: &str, field: &str, verb: &str, value: &Value) -> Result<(), SweepError> {
        let remedy = match (self, value) {
            (Kind::Text, Value::Text(_)) => return Ok(()),
            (Kind::Choice(choices), Value::Text(text)) if choices.contains(&text.as_str()) => {
                return Ok(());
            }
            (Kind::Whole(range), Value::Whole(number)) => {
                if u64::try_from(*number).is_ok_and(|number| range.contains(&number)) {
                    return Ok(());
                }
                format!("it must be {} to {}", range.start(), range.end())
            }
            (Kind::Text, _) => String::from("use a text between quotation marks"),
            (Kind::Choice(choices), _) => format!("use {}", either(choices)),
            (Kind::Whole(range), _) => {
                format!(
                    "use a whole number from {} to {}",
                    range.start(),
                    range.end()
                )
            }
        };
        Err(SweepError::new(format!(
            "{name}: `{field}` {verb} {value}; {remedy}"
        )))
    }
}

/// Lists choices: `"a", "b" or "c"`.
fn either(choices: &[&str]) -> String {
    let quoted: Vec<_> = choices
        .iter()
        .map(|choice| format!("\"{choice}\""))
        .collect();
    match quoted.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => quoted.concat(),
    }
}

/// A value of any type.
enum Value {
    Whole(i128),
    Real(f64),
    Text(String),
    Bool(bool),
    List(Vec<Value>),
    /// A table, or a date.
    Other,
}

impl Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Whole(number) => write!(f, "{number}"),
            Value::Real(number) if number.is_nan() => f.write_str("nan"),
            // With an exponent if it is long.
            Value::Real(number) => write!(f, "{number:?}"),
            Value::Text(text) if text.chars().count() > SHOWN_MAX => {
                let start: String = text.chars().take(SHOWN_MAX).collect();
                write!(f, "{start:?}...")
            }
            Value::Text(text) => write!(f, "{text:?}"),
            Value::Bool(value) => write!(f, "{value}"),
            Value::List(_) => f.write_str("a list"),
            Value::Other => f.write_str("a table or a date"),
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Whole(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Whole(value.into()))
    }

    fn visit_i128<E>(self, value: i128) -> Result<Value, E> {
        Ok(Value::Whole(value))
    }

    fn visit_u128<E>(self, value: u128) -> Result<Value, E> {
        Ok(Value::Whole(i128::try_from(value).unwrap_or(i128::MAX)))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Real(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Text(value.to_string()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut values = Vec::new();
        while let Some(value) = list.next_element()? {
            values.push(value);
        }
        Ok(Value::List(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Value::Other)
    }
}
