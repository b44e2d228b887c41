//! A recorder of numbers, whose newest samples are in memory.

use cardiograph_server::*;
use std::cell::{Cell, RefCell};
use std::fmt::Write as _;

/// A recorder that takes a sample whenever somebody asks for its state or its newest sample.
pub struct Recorder {
    pub next: Cell<u64>,
    /// Samples taken per query.
    pub step: u64,
    /// Samples kept in memory.
    pub kept: u64,
    /// File with older samples, and the number of its first one.
    pub card: Option<(RecordingPath, u64)>,
    pub gaps: RefCell<Vec<Gap>>,
    pub is_recording: Cell<bool>,
    pub orders: RefCell<Vec<String>>,
    pub notice: &'static str,
}

impl Default for Recorder {
    fn default() -> Self {
        Recorder {
            next: Cell::new(100),
            step: 0,
            kept: 50,
            card: None,
            gaps: RefCell::default(),
            is_recording: Cell::new(true),
            orders: RefCell::default(),
            notice: "",
        }
    }
}

/// Returns a sample as text.
pub fn row_of(number: u64) -> String {
    format!("{},{}.5", number * 10, number)
}

fn put(row: &mut [u8; ROW_BYTES_MAX], text: &str) -> usize {
    row[..text.len()].copy_from_slice(text.as_bytes());
    text.len()
}

impl Instrument for Recorder {
    fn status(&self) -> Option<Status> {
        Some(Status {
            is_recording: self.is_recording.get(),
            streams: 1,
            ring_bytes: 1000,
            ring_capacity_bytes: 65536,
            samples: self.next.get(),
            lost: 3,
            gaps: self.gaps.borrow().len() as u64,
            ..Status::default()
        })
    }

    fn write_notice(&self, text: &mut dyn std::fmt::Write) -> std::fmt::Result {
        text.write_str(self.notice)
    }

    fn columns(&self, _: u8, row: &mut [u8; ROW_BYTES_MAX]) -> usize {
        put(row, "time_ms,level_v")
    }

    fn next(&self, _: u8) -> u64 {
        self.next.get()
    }

    fn sample(&self, _: u8, number: u64, row: &mut [u8; ROW_BYTES_MAX]) -> Sample {
        if number >= self.next.get() {
            self.next.set(self.next.get() + self.step);
            return Sample::Later;
        }
        let oldest = self.next.get().saturating_sub(self.kept);
        match &self.card {
            _ if number >= oldest => Sample::Row(put(row, &row_of(number))),
            Some((path, first)) => Sample::OnCard {
                path: path.clone(),
                first: *first,
            },
            None => Sample::Lost {
                next: oldest,
                cause: "busy",
            },
        }
    }

    fn gap(&self, number: u64) -> Option<Gap> {
        self.gaps.borrow().get(number as usize).copied()
    }

    fn control(&self, command: Command) -> Result<(), Refusal> {
        let (is_recording, mut text) = (self.is_recording.get(), String::new());
        match command {
            Command::Start(_) if is_recording => return Err(Refusal::Recording),
            Command::Stop | Command::Rotate(_) if !is_recording => {
                return Err(Refusal::NotRecording);
            }
            _ => write!(text, "{command:?}").unwrap(),
        }
        self.is_recording.set(command != Command::Stop);
        self.orders.borrow_mut().push(text);
        Ok(())
    }

    fn act(&self, action: &str) -> Result<(), Refusal> {
        if action != "lamp" {
            return Err(Refusal::Unsupported);
        }
        self.orders.borrow_mut().push(action.to_string());
        Ok(())
    }

    fn item(&self, number: usize, text: &mut [u8; ROW_BYTES_MAX]) -> Option<(Item, usize)> {
        let lamp = |is_chosen| Item::Action {
            name: "lamp",
            is_chosen,
        };
        let (item, words) = match number {
            0 => (lamp(None), "The \"lamp\""),
            1 => (lamp(Some(true)), "On"),
            2 => (Item::Row, "cell\tcell 2"),
            3 => (
                Item::Sentence,
                "A sentence\nof more than 64 letters, with \u{fc}, which is split in the middle of it.",
            ),
            _ => return None,
        };
        Some((item, put(text, words)))
    }

    fn set_clock(&self, unix_ms: u64, zone_min: i16) -> Result<(), Refusal> {
        self.orders
            .borrow_mut()
            .push(format!("{unix_ms} {zone_min}"));
        Ok(())
    }
}
