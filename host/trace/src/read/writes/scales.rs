//! Units that the header of a table of writes does not name.

use super::header::{Duration, Header, Times};
use crate::read::ReadOptions;
use crate::read::columns::{FILETIME_TICK, cells, unquoted};
use crate::read::error::{Fault, Problem};
use crate::read::guess::{self, Guess, Numbers};
use crate::read::numeral::{Numerals, Points};
use crate::read::recording::{SAMPLE_ROWS, is_note, rows_in};
use crate::read::remedy::awk;
use crate::read::scale::Scale;
use crate::trace::About;
use std::borrow::Cow;

/// Scales of the column of times or starts, and of the column of latencies or ends.
pub(super) struct Scales {
    pub time: Scale,
    pub own: Scale,
}

/// Determines the scales of both columns; the notes state what was assumed.
pub(super) fn decide(
    header: &Header,
    head: &[u8],
    options: &ReadOptions,
    about: &mut About,
) -> Result<Scales, Fault> {
    let own = header.duration.times();
    let texts = |times: &Times| -> Vec<Cow<'_, [u8]>> {
        sample(header, head)
            .map(|row| header.text(row, times.index).into())
            .collect()
    };
    let stated = |times: &Times| Scale::of_column(&texts(times), options.date_order);
    let (own_stated, time_stated) = (stated(own), header.time.as_ref().and_then(stated));
    let is_own_known = own.unit.is_some() || own_stated.is_some();
    let is_time_known = |time: &Times| time.unit.is_some() || time_stated.is_some();
    if options.time_unit.is_some() && is_own_known && header.time.as_ref().is_none_or(is_time_known)
    {
        let names = header
            .time
            .iter()
            .chain([own])
            .map(|times| times.name.clone());
        let names = names.collect::<Vec<_>>().join(", ");
        return Err(Problem::UnitNamed { names }.in_file());
    }
    let own_scale = match own_stated {
        Some(scale) => scale,
        None if time_stated == Some(Scale::Filetime)
            && own.unit.or(options.time_unit).is_none()
            && !own.is_foreign =>
        {
            about.notes.push(format!(
                "The times are Windows file times; the latencies in column \"{}\" have no unit and are read in the same units \
                 of 100 ns.",
                own.name
            ));
            Scale::Unit(FILETIME_TICK)
        }
        None => {
            let (numerals, note) = numerals(header, head, own);
            let has_commas = || sample(header, head).any(|row| row.contains(&b','));
            let is_sole = header.fields == 1 && numerals == Numerals::Decimal;
            let of_commas = (note.is_none() && is_sole && has_commas()).then(|| {
                format!(
                    "The header names one column, \"{}\", so the commas are read as decimal commas.",
                    own.name
                )
            });
            about.notes.extend(note.or(of_commas));
            Scale::of_numbers(own_unit(header, head, options, about)?, numerals)
        }
    };
    let time = match &header.time {
        None => own_scale,
        Some(_) if time_stated.is_some() => time_stated.unwrap_or(own_scale),
        Some(time) => time_scale(header, head, time, own_scale, options, about)?,
    };
    Ok(Scales {
        time,
        own: own_scale,
    })
}

fn own_unit(
    header: &Header,
    head: &[u8],
    options: &ReadOptions,
    about: &mut About,
) -> Result<crate::read::TimeUnit, Fault> {
    let own = header.duration.times();
    let is_end = matches!(header.duration, Duration::End(_));
    let of_start = header.time.as_ref().and_then(|time| time.unit);
    if let (true, Some(unit)) = (own.is_foreign, options.time_unit) {
        about.notes.push(format!(
            "One unit of the column \"{}\" is read as 1 {}, as --time-unit states.",
            own.name, unit.name
        ));
        return Ok(unit);
    }
    if own.is_foreign {
        let at = own.index + 1;
        let rows = header.rows_above();
        return Err(Problem::ForeignUnit {
            column: own.name.clone(),
            convert: awk(
                header.separator,
                &format!("NR > {rows} {{ ${at} /= 48 }} 1"),
            ),
        }
        .in_file());
    }
    if let Some(unit) = own.unit.or(options.time_unit) {
        if !is_end && own.unit.is_some() {
            let numbers = column(header, head, own);
            let note = guess::note_of_magnitude(&own.name, unit, &numbers);
            about.notes.extend(note);
        }
        return Ok(unit);
    }
    if let Some(unit) = of_start.filter(|_| is_end) {
        return Ok(unit);
    }
    let (what, numbers) = match &header.time {
        Some(start) if is_end => (
            format!("the times in column \"{}\"", own.name),
            column(header, head, own).minus(&column(header, head, start)),
        ),
        _ if header.is_named => (
            format!("the latencies in column \"{}\"", own.name),
            column(header, head, own),
        ),
        _ => ("the latencies".to_owned(), column(header, head, own)),
    };
    let guess = guess::of_latencies(&what, &numbers)?;
    about.notes.push(guess.reason);
    Ok(guess.unit)
}

fn time_scale(
    header: &Header,
    head: &[u8],
    time: &Times,
    own_scale: Scale,
    options: &ReadOptions,
    about: &mut About,
) -> Result<Scale, Fault> {
    let (numerals, _) = numerals(header, head, time);
    if let Some(unit) = time.unit.or(options.time_unit) {
        return Ok(Scale::of_numbers(unit, numerals));
    }
    let what = format!("the times in column \"{}\"", time.name);
    let numbers = column(header, head, time);
    let known = match guess::since_1970(&time.name, &numbers) {
        Some(guess) => Some(guess),
        None if matches!(own_scale, Scale::InTexts | Scale::Calendar(_)) => {
            let is_ulog = false;
            Some(guess::of_times(&time.name, &numbers, is_ulog)?)
        }
        None => None,
    };
    if let Some(Guess { unit, reason }) = known {
        about.notes.push(reason);
        return Ok(Scale::of_numbers(unit, numerals));
    }
    let (Scale::Unit(own_unit) | Scale::Grouped(own_unit, _)) = own_scale else {
        return Ok(own_scale);
    };
    let own = header.duration.times();
    let (span, busy) = (
        column(header, head, time).span(),
        column(header, head, own).sum(),
    );
    if matches!(header.duration, Duration::Latency(_)) && span < 0.9 * busy {
        let readings = format!(
            "read as {}, they span less time than the sum of the latencies",
            own_unit.name
        );
        let options = "--time-unit s, ms, us or ns".to_owned();
        return Err(Problem::UnitUnknown {
            what,
            readings,
            options,
        }
        .in_file());
    }
    about.notes.push(format!(
        "The times in column \"{}\" have no unit; they are read as {}, like those in column \"{}\".",
        time.name, own_unit.name, own.name
    ));
    Ok(Scale::of_numbers(own_unit, numerals))
}

/// Returns the meaning of points and commas in a column, and a note if this meaning is uncertain.
fn numerals(header: &Header, head: &[u8], times: &Times) -> (Numerals, Option<String>) {
    let mut points = Points::default();
    for row in sample(header, head) {
        points.push(header.text(row, times.index), 0);
    }
    points.decide()
}

/// Returns the rows from which units are inferred.
pub(super) fn sample<'a>(
    header: &Header,
    head: &'a [u8],
) -> impl Iterator<Item = &'a [u8]> + Clone {
    let rows = rows_in(head).filter(|row| !is_note(row));
    rows.skip(header.rows_above()).take(SAMPLE_ROWS)
}

pub(super) fn column(header: &Header, head: &[u8], times: &Times) -> Numbers {
    let (numerals, _) = numerals(header, head, times);
    let mut numbers = Numbers::default();
    for row in sample(header, head) {
        let cell = cells(row, header.separator).nth(times.index);
        if let Some(plain) = cell.and_then(|cell| numerals.plain(unquoted(cell))) {
            numbers.push(&plain);
        }
    }
    numbers
}
