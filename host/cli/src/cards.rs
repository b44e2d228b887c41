//! `cardiograph cards`: lists the simulated cards and boards, or draws one.

use crate::drawing;
use crate::failure::{Failure, print};
use crate::target::toml_text;
use cardiograph_sim_card::{BOARDS, Board, CARDS, FIXTURES, Profile, parse_toml};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::fmt::Write;

/// List the simulated cards and boards, or draw the structure of one.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  cardiograph cards                                          list all names
  cardiograph cards generic-16g-class10                      structure of a card, and derived figures
  cardiograph cards my-card.toml                             the same for a custom card or board
  cardiograph bench sim:generic-16g-class10@esp32            measure a card on a board")]
pub struct Args {
    /// A card or board to draw, by name or as a TOML file
    #[arg(value_name = "NAME|FILE")]
    pub name: Option<String>,
}

/// Draws the card or board of the given name, or lists all.
pub fn run(args: &Args) -> Result<(), Failure> {
    match args.name.as_deref() {
        None => print(&list()?),
        Some(name) => print(&match find(name)? {
            Found::Card(profile) => drawing::card(name, &profile),
            Found::Board(board) => drawing::board(name, &board),
        }),
    }
}

fn list() -> Result<String, Failure> {
    let names = CARDS.iter().chain(BOARDS).map(|(name, _)| name.len());
    let width = names.max().unwrap_or(0);
    let mut out = String::from("Cards\n");
    for (name, _) in CARDS {
        let profile = Profile::named(name).map_err(Failure::new)?;
        let _ = writeln!(out, "  {name:<width$}  {}", profile.about);
    }
    out.push_str("\nBoards\n");
    for (name, _) in BOARDS {
        let board = Board::named(name).map_err(Failure::new)?;
        let _ = writeln!(out, "  {name:<width$}  {}", board.about);
    }
    out.push_str(
        "\nA target is a card on a board: sim:generic-16g-class10@esp32\n\
         Structure of a card: cardiograph cards generic-16g-class10\n",
    );
    Ok(out)
}

enum Found {
    Card(Profile),
    Board(Board),
}

fn find(name: &str) -> Result<Found, Failure> {
    if let Some(text) = toml_text(name)? {
        return from_file(name, &text);
    }
    let is_in = |all: &[(&str, &str)]| all.iter().any(|(known, _)| *known == name);
    if is_in(CARDS) || is_in(FIXTURES) {
        let profile = Profile::named(name).map_err(Failure::new)?;
        return Ok(Found::Card(profile));
    }
    if is_in(BOARDS) {
        let board = Board::named(name).map_err(Failure::new)?;
        return Ok(Found::Board(board));
    }
    Err(Failure::new(format!(
        "no card or board named {name}; use one of the cards {}, one of the boards {}, or a TOML file",
        names(CARDS),
        names(BOARDS)
    )))
}

fn names(all: &[(&str, &str)]) -> String {
    let names: Vec<_> = all.iter().map(|(name, _)| *name).collect();
    names.join(", ")
}

/// Top-level keys of a TOML file, which distinguish a card from a board.
#[derive(Deserialize)]
struct Keys {
    flash: Option<IgnoredAny>,
    controller: Option<IgnoredAny>,
    power: Option<IgnoredAny>,
    spi: Option<IgnoredAny>,
    sd: Option<IgnoredAny>,
    driver: Option<IgnoredAny>,
    library: Option<IgnoredAny>,
}

/// Distinguishes cards and boards by the tables of the file, even if their contents are invalid.
fn from_file(name: &str, text: &str) -> Result<Found, Failure> {
    let keys: Keys = parse_toml(name, text).map_err(Failure::new)?;
    let any = |keys: &[&Option<IgnoredAny>]| keys.iter().any(|key| key.is_some());
    let is_card = any(&[&keys.flash, &keys.controller, &keys.power]);
    let is_board = any(&[&keys.spi, &keys.sd, &keys.driver, &keys.library]);
    match (is_card, is_board) {
        (true, false) => Profile::from_toml(name, text)
            .map(Found::Card)
            .map_err(Failure::new),
        (false, true) => Board::from_toml(name, text)
            .map(Found::Board)
            .map_err(Failure::new),
        (true, true) => Err(Failure::new(format!(
            "{name}: contains tables of both a card and a board; use a separate file for each"
        ))),
        (false, false) => Err(Failure::new(format!(
            "{name}: neither a card ([flash], [controller], [power]) nor a board ([spi] or [sd], \
             [driver], [library])"
        ))),
    }
}
