//! The demo: the recorder next to two simple sketches. All three devices have the same samples and the same model of
//! card. Users can cut the power of all devices and pull the recorder's card.
//!
//! ```text
//!   Supply ──┬── recorder ── card      served; its card can be pulled
//!            ├── sketch ──── card      opens and closes the file for each line
//!            └── sketch ──── card      keeps the file open
//! ```

mod account;
mod lane;
mod sketch;
mod supply;
#[cfg(test)]
mod tests;

use account::Account;
use cardiograph_recorder::{Event, Figures};
use cardiograph_serve::Listener;
use cardiograph_server::{
    CardRecorder, Command, Gap, Instrument, Item, ROW_BYTES_MAX, Refusal, Sample, Status,
    WriteLatency,
};
use cardiograph_sim_card::wire::Wire;
use cardiograph_sim_card::{Board, Card};
use lane::{Lane, Place};
use sketch::Way;
use std::cell::{Cell, RefCell};
use std::io::Write as _;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};
use supply::Supply;

/// Duration of a power cut.
const OFF: Duration = Duration::from_secs(1);
/// The sketches, with their names in requests and on the page.
const WAYS: [(Way, &str, &str); 2] = [
    (Way::OpenAndClose, "reopen", "open and close for each line"),
    (Way::KeepOpen, "keepopen", "keep the file open"),
];
/// Name of the recorder in requests, and on the page.
const OURS: (&str, &str) = ("ours", "Cardiograph");
/// Columns of the table.
const COLUMNS: &str =
    "way to log\tsamples\tlost: buffer full\tlost: card pulled\tlost: power cuts\tlongest write";

/// A running demo.
pub(crate) struct Demo {
    lanes: Vec<Lane>,
    supply: Arc<Supply>,
    /// The lane whose state the page shows; `None` for the recorder.
    shown: Cell<Option<usize>>,
    account: RefCell<Account>,
    is_card_out: Cell<bool>,
    is_cut: Cell<bool>,
}

impl Demo {
    /// Starts the devices with sketches. Each has a copy of the card, whose volume consists of the given blocks.
    pub(crate) fn start(card: &Card, volume: Range<u64>, board: &Board) -> Demo {
        let supply = Arc::new(Supply::default());
        let board = board.clone();
        let place = Place { board, volume };
        let lane = |way| Lane::start(way, card.clone(), place.clone(), Arc::clone(&supply));
        Demo {
            lanes: WAYS.map(|(way, ..)| lane(way)).into(),
            supply,
            shown: Cell::default(),
            account: RefCell::default(),
            is_card_out: Cell::default(),
            is_cut: Cell::default(),
        }
    }

    /// Returns true from a power cut until [`Demo::restore`].
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut.get()
    }

    /// Notes an event of the recorder.
    pub(crate) fn note(&self, event: &Event) {
        self.account.borrow_mut().note(event);
    }

    /// Notes the end of a run: its samples, how many of them were lost before the power cut, and the longest write.
    pub(crate) fn end_run(&self, pushed: u64, figures: Figures) {
        let mut account = self.account.borrow_mut();
        account.end_run(pushed, figures.lost, figures.write_us_max, self.is_cut());
    }

    /// Waits without power, then restores it. A card that was out is inserted again. Requests in this time are lost: a
    /// second press of the button, or a browser that sends its request again, does not cut the power again.
    pub(crate) fn restore(&self, wire: &Wire, listener: &Listener, is_stopped: &dyn Fn() -> bool) {
        let since = Instant::now();
        while since.elapsed() < OFF && !is_stopped() {
            std::thread::sleep(Duration::from_millis(20));
            listener.refuse_waiting();
        }
        wire.card().power_on();
        self.supply.restore();
        self.is_card_out.set(false);
        self.is_cut.set(false);
    }

    /// Returns the state of the recorder with its samples since the start of the demo, as the table counts them.
    fn since_start(&self, run: Status) -> Status {
        let account = self.account.borrow();
        let (samples, lost, write_us_max) =
            account.with_run(run.samples, run.lost, run.write_us_max);
        Status {
            samples,
            lost: lost.sum() + account.gone(),
            write_us_max,
            ..run
        }
    }

    /// Carries out an action of the page.
    fn act(&self, action: &str, wire: &Wire) -> Result<(), Refusal> {
        let way = WAYS.iter().position(|(_, name, _)| *name == action);
        match action {
            "powercut" => {
                wire.card().power_cut();
                self.supply.cut();
                self.is_cut.set(true);
            }
            "card" if self.is_card_out.replace(!self.is_card_out.get()) => wire.card().power_on(),
            "card" => wire.card().power_cut(),
            name if name == OURS.0 => self.shown.set(None),
            _ => self.shown.set(Some(way.ok_or(Refusal::Unsupported)?)),
        }
        Ok(())
    }

    /// Writes an item of the page.
    fn item(&self, number: usize, status: Option<Status>, to: &mut Text) -> Option<Item> {
        let ways = WAYS.len();
        match number {
            0 => Some(self.choice(None, OURS, to)),
            _ if number <= ways => {
                let at = number - 1;
                Some(self.choice(Some(at), (WAYS[at].1, WAYS[at].2), to))
            }
            _ => self.more(number - ways - 1, &status.unwrap_or_default(), to),
        }
    }

    fn choice(&self, lane: Option<usize>, texts: (&'static str, &str), to: &mut Text) -> Item {
        to.put(format_args!("Show: {}", texts.1));
        Item::Action {
            name: texts.0,
            is_chosen: Some(self.shown.get() == lane),
        }
    }

    /// Writes an item after the choices: two buttons, the table, the story.
    fn more(&self, number: usize, status: &Status, to: &mut Text) -> Option<Item> {
        let action = |name| Item::Action {
            name,
            is_chosen: None,
        };
        let account = self.account.borrow();
        match number {
            0 => {
                to.put(format_args!("Pull the power"));
                Some(action("powercut"))
            }
            1 => {
                let verb = if self.is_card_out.get() {
                    "Insert"
                } else {
                    "Pull"
                };
                to.put(format_args!("{verb} the card"));
                Some(action("card"))
            }
            2 => {
                to.put(format_args!("{COLUMNS}"));
                Some(Item::Row)
            }
            3 => {
                let (samples, lost, us) =
                    account.with_run(status.samples, status.lost, status.write_us_max);
                let ms = f64::from(us) / 1000.0;
                to.put(format_args!(
                    "{}\t{samples}\t{}\t{}\t{}\t{ms:.1} ms",
                    OURS.1,
                    lost.buffer,
                    lost.card,
                    account.gone()
                ));
                Some(Item::Row)
            }
            4.. => match (self.lanes.get(number - 4), WAYS.get(number - 4)) {
                (Some(lane), Some((_, _, name))) => {
                    let (tally, gone, failure) = lane.result();
                    let ms = f64::from(tally.line_us_max) / 1000.0;
                    to.put(format_args!("{name}"));
                    if let Some(failure) = failure {
                        to.put(format_args!(" (stopped: {failure})"));
                    }
                    to.put(format_args!(
                        "\t{}\t{}\t0\t{gone}\t{ms:.1} ms",
                        tally.samples, tally.lost
                    ));
                    Some(Item::Row)
                }
                _ => {
                    let sentence = account.sentence(number - 4 - self.lanes.len())?;
                    to.put(format_args!("{sentence}"));
                    Some(Item::Sentence)
                }
            },
        }
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        self.supply.end();
        self.lanes.iter_mut().for_each(Lane::join);
    }
}

/// Text of an item; the end of a longer one is omitted.
struct Text<'a> {
    bytes: &'a mut [u8; ROW_BYTES_MAX],
    len: usize,
}

impl Text<'_> {
    fn put(&mut self, text: std::fmt::Arguments) {
        let mut rest = &mut self.bytes[self.len..];
        let room = rest.len();
        // All texts are ASCII, so that none is cut within a character.
        let _ = rest.write_fmt(text);
        self.len += room - rest.len();
    }
}

/// The instrument of a device, and of its demo if there is one.
pub(crate) struct Shown<'a, 'd, 'b> {
    pub(crate) recorder: CardRecorder<'d, 'b>,
    pub(crate) demo: Option<&'a Demo>,
    pub(crate) wire: &'a Wire,
}

impl Shown<'_, '_, '_> {
    fn lane(&self) -> Option<&Lane> {
        let demo = self.demo?;
        demo.lanes.get(demo.shown.get()?)
    }
}

impl Instrument for Shown<'_, '_, '_> {
    fn status(&self) -> Option<Status> {
        match (self.lane(), self.demo) {
            (Some(lane), _) => Some(lane.status()),
            (None, Some(demo)) => Some(demo.since_start(self.recorder.status()?)),
            (None, None) => self.recorder.status(),
        }
    }

    fn write_fault(&self, text: &mut dyn std::fmt::Write) -> std::fmt::Result {
        match self.lane() {
            Some(lane) => text.write_str(&lane.result().2.unwrap_or_default()),
            None => self.recorder.write_fault(text),
        }
    }

    fn write_notice(&self, text: &mut dyn std::fmt::Write) -> std::fmt::Result {
        self.recorder.write_notice(text)
    }

    fn latency(&self, number: u64) -> Option<WriteLatency> {
        match self.lane() {
            Some(lane) => lane.latency(number),
            None => self.recorder.latency(number),
        }
    }

    fn act(&self, action: &str) -> Result<(), Refusal> {
        match self.demo {
            Some(demo) => demo.act(action, self.wire),
            None => self.recorder.act(action),
        }
    }

    fn item(&self, number: usize, text: &mut [u8; ROW_BYTES_MAX]) -> Option<(Item, usize)> {
        let Some(demo) = self.demo else {
            return self.recorder.item(number, text);
        };
        let mut to = Text {
            bytes: text,
            len: 0,
        };
        let item = demo.item(number, self.recorder.status(), &mut to)?;
        Some((item, to.len))
    }

    fn columns(&self, stream: u8, row: &mut [u8; ROW_BYTES_MAX]) -> usize {
        self.recorder.columns(stream, row)
    }

    fn next(&self, stream: u8) -> u64 {
        self.recorder.next(stream)
    }

    fn sample(&self, stream: u8, number: u64, row: &mut [u8; ROW_BYTES_MAX]) -> Sample {
        self.recorder.sample(stream, number, row)
    }

    fn gap(&self, number: u64) -> Option<Gap> {
        match self.lane() {
            // A sketch only counts its losses.
            Some(_) => None,
            None => self.recorder.gap(number),
        }
    }

    fn control(&self, command: Command) -> Result<(), Refusal> {
        self.recorder.control(command)
    }

    fn set_clock(&self, unix_ms: u64, zone_min: i16) -> Result<(), Refusal> {
        self.recorder.set_clock(unix_ms, zone_min)
    }
}
