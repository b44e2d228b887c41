//! Answers, and all answers about a card.

use serde::Serialize;

/// An answer about a card.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer<T> {
    value: Option<T>,
    confidence: Option<f64>,
    evidence: String,
}

impl<T> Answer<T> {
    pub(crate) fn known(value: T, confidence: f64, evidence: String) -> Answer<T> {
        Answer {
            value: Some(value),
            confidence: Some(confidence),
            evidence,
        }
    }

    pub(crate) fn cannot_tell(reason: impl Into<String>) -> Answer<T> {
        Answer {
            value: None,
            confidence: None,
            evidence: reason.into(),
        }
    }

    pub(crate) fn needs(what: &str) -> Answer<T> {
        Answer::cannot_tell(format!("the experiment needs {what}"))
    }

    /// Returns the answer with another value.
    pub(crate) fn map<U>(self, change: impl FnOnce(T) -> U) -> Answer<U> {
        Answer {
            value: self.value.map(change),
            confidence: self.confidence,
            evidence: self.evidence,
        }
    }

    /// Returns the value, or `None` for "cannot tell".
    pub fn value(&self) -> Option<T>
    where
        T: Copy,
    {
        self.value
    }

    /// Returns the probability that the value is right, as far as the card behaves as the experiment assumes.
    pub fn confidence(&self) -> Option<f64> {
        self.confidence
    }

    /// Returns what was seen, or why it does not suffice.
    pub fn evidence(&self) -> &str {
        &self.evidence
    }
}

/// Everything that was found out about a card.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Findings {
    /// Bytes that the card reads and programs together.
    pub page_bytes: Answer<u64>,
    /// Bytes that the card erases and remaps together.
    pub unit_bytes: Answer<u64>,
    /// Number of sequential streams that the card writes in turn without copying.
    pub open_units: Answer<u64>,
    /// Bytes of small rewrites that the card gathers in its log without copying, in whole units.
    pub log_bytes: Answer<u64>,
    /// Bytes at the start of the card that withstand small writes, for the FAT; 0 for none.
    pub fat_zone_bytes: Answer<u64>,
    /// True if the card makes room for small writes while it is idle.
    pub collects_while_idle: Answer<bool>,
    /// Bytes written.
    pub written_bytes: u64,
    /// Duration, in ns.
    #[serde(skip)]
    pub elapsed_ns: u64,
}
