//! `cardiograph reproduce`: published figures next to simulated ones.

use crate::failure::{Failure, print, print_error};
use crate::json;
use crate::outputs::{self, is_standard_output};
use crate::progress::Progress;
use crate::shared::Shared;
use cardiograph_report::values::whole;
use cardiograph_reproduce::page::{Section, html};
use cardiograph_reproduce::{
    Breakdown, Experiment, ExperimentError, MEMBERS, Outcome, Row, STUDIES, Study, figures,
    own_server, reproduce, study, table,
};
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::Mutex;

/// Reproduce the experiments of five published studies on simulated cards.
#[derive(clap::Args)]
#[command(after_help = "\
Rows with the role `fit` were used to fit the cards and boards; rows with the role `prediction` were not.
Times are virtual and the same on every computer, except for the two rows about load on two cores,
which are measured on this computer.

Examples:
  cardiograph reproduce                                      all studies
  cardiograph reproduce blinky                               a single study
  cardiograph reproduce --json rows.json --html studies.html")]
pub struct Args {
    /// Name of a single study [default: all studies]
    #[arg(value_name = "STUDY")]
    pub study: Option<String>,

    /// Write every row as JSON; - is standard output
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Write the rows and the studies' plots as one HTML file that works offline
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// Members of each card's ensemble to simulate; ensembles have at least eight
    #[arg(long, value_name = "N", default_value_t = MEMBERS, value_parser = whole::<u16>(1..=64))]
    pub members: u16,

    #[command(flatten)]
    pub shared: Shared,
}

/// Runs the requested studies, prints them and writes the requested files.
pub fn run(args: &Args) -> Result<(), Failure> {
    args.shared.apply([""; 0]);
    let names = match &args.study {
        Some(name) => vec![name.as_str()],
        None => STUDIES.to_vec(),
    };
    let studies: Result<Vec<Study>, String> = names.into_iter().map(study).collect();
    let studies = studies.map_err(Failure::new)?;
    outputs::check_files([&args.json, &args.html].into_iter().flatten())?;
    if args.html.as_deref().is_some_and(is_standard_output) {
        return Err(Failure::new("--html needs a file, not standard output"));
    }
    let rows: Vec<Row> = studies
        .iter()
        .flat_map(|study| study.rows.clone())
        .collect();
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let outcomes = with_progress(&rows, threads, args.members.into()).map_err(Failure::new)?;
    let notes: Result<Vec<_>, _> = studies.iter().map(notes).collect();
    let notes = notes?;
    let members = format!(
        "  of each card's ensemble, the first {} members were simulated\n",
        args.members
    );
    show(args, &(text(&studies, &outcomes, &notes) + &members))?;
    let rows: Vec<_> = outcomes.iter().map(Outcome::json_row).collect();
    json::write(args.json.as_deref(), "reproduce", &rows)?;
    if let Some(path) = &args.html {
        outputs::write_text(path, &page(&studies, &outcomes, &notes)?)?;
    }
    Ok(())
}

fn with_progress(
    rows: &[Row],
    threads: usize,
    members: usize,
) -> Result<Vec<Outcome>, ExperimentError> {
    let progress = Mutex::new(Progress::over_steps(0));
    let outcomes = reproduce(rows, threads, members, |finished, total| {
        if let Ok(mut progress) = progress.lock() {
            progress.show_of(finished, total);
        }
    });
    if let Ok(progress) = progress.into_inner() {
        progress.clear();
    }
    outcomes
}

/// Experiments for which a breakdown is printed, with a description of their operations.
const LINES: [(&str, &str); 2] = [
    (
        "magod2",
        "A line of 100 B to a file that is opened and closed for it",
    ),
    (
        "magod2-kept-open",
        "A line of 100 B to a file that is kept open",
    ),
];

/// Returns the notes to print below the rows of a study.
fn notes(study: &Study) -> Result<Vec<String>, Failure> {
    if study.name != "magod2" {
        return Ok(Vec::new());
    }
    let sentence = |&(workload, what): &(&str, &str)| {
        let experiment = Experiment::new("generic-16g-class10", "esp32", workload);
        Ok(Breakdown::of(&experiment)
            .map_err(Failure::new)?
            .sentence(what))
    };
    let mut notes: Vec<String> = LINES.iter().map(sentence).collect::<Result<_, _>>()?;
    notes.push(own_server::sentence().map_err(Failure::new)?);
    Ok(notes)
}

fn page(studies: &[Study], outcomes: &[Outcome], notes: &[Vec<String>]) -> Result<String, Failure> {
    let plots: Result<Vec<_>, _> = studies
        .iter()
        .map(|study| figures::of(study.name))
        .collect();
    let plots = plots.map_err(Failure::new)?;
    let mut rest = outcomes;
    let mut sections = Vec::new();
    for ((study, notes), figures) in studies.iter().zip(notes).zip(&plots) {
        let (of_study, after) = rest.split_at(study.rows.len());
        rest = after;
        sections.push(Section {
            title: &study.title,
            outcomes: of_study,
            notes,
            figures,
        });
    }
    Ok(html(&sections))
}

fn text(studies: &[Study], outcomes: &[Outcome], notes: &[Vec<String>]) -> String {
    let mut rest = outcomes;
    let mut out = String::new();
    for (study, notes) in studies.iter().zip(notes) {
        let (of_study, after) = rest.split_at(study.rows.len());
        rest = after;
        out.push_str(&table::text(&study.title, of_study));
        for note in notes {
            out.push_str(&format!("  {note}\n"));
        }
        out.push('\n');
    }
    out + &table::summary(outcomes)
}

/// Shows text to the user: on standard error if standard output carries a result.
fn show(args: &Args, text: &str) -> Result<(), Failure> {
    if args.json.as_deref().is_some_and(is_standard_output) {
        print_error(text);
        return Ok(());
    }
    print(text)
}
