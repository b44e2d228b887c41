//! `cardiograph reproduce`: published figures beside simulated ones.

use crate::args::Reproduce;
use crate::failure::{Failure, print, print_error};
use crate::outputs::{self, is_standard_output};
use cardiograph_reproduce::{Outcome, Row, STUDIES, Study, reproduce, study, table};
use std::num::NonZero;

/// Runs the studies asked for, prints them and writes what was asked for.
pub fn run(args: &Reproduce) -> Result<(), Failure> {
    let names = match &args.study {
        Some(name) => vec![name.as_str()],
        None => STUDIES.to_vec(),
    };
    let studies: Result<Vec<Study>, String> = names.into_iter().map(study).collect();
    let studies = studies.map_err(Failure::new)?;
    outputs::check_files([&args.json, &args.html].into_iter().flatten())?;
    let rows: Vec<Row> = studies
        .iter()
        .flat_map(|study| study.rows.clone())
        .collect();
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
    let outcomes = reproduce(&rows, threads).map_err(Failure::new)?;
    tell(args, &text(&studies, &outcomes))?;
    if let Some(path) = &args.json {
        let rows: Vec<_> = outcomes.iter().map(Outcome::json_row).collect();
        let json = serde_json::to_string_pretty(&rows).map_err(Failure::new)?;
        outputs::put(path, &(json + "\n"))?;
    }
    Ok(())
}

fn text(studies: &[Study], outcomes: &[Outcome]) -> String {
    let mut rest = outcomes;
    let mut out = String::new();
    for study in studies {
        let (of_study, after) = rest.split_at(study.rows.len());
        rest = after;
        out.push_str(&table::text(&study.title, of_study));
        out.push('\n');
    }
    out + &table::summary(outcomes)
}

/// Speaks to the person: on standard error where standard output is for a program.
fn tell(args: &Reproduce, text: &str) -> Result<(), Failure> {
    if args.json.as_deref().is_some_and(is_standard_output) {
        print_error(text);
        return Ok(());
    }
    print(text)
}
