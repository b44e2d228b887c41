//! Simulated cards and boards to choose from.

use cardiograph_sim_card::{BOARDS, Board, Bus, CARDS, Profile};
use serde::Serialize;

/// All simulated cards and boards.
#[derive(Serialize)]
pub struct Lists {
    cards: Vec<Named>,
    boards: Vec<Named>,
}

/// A name and a description.
#[derive(Serialize)]
struct Named {
    name: &'static str,
    about: String,
    /// True if the recorder can use it: it drives cards over SPI.
    records: bool,
}

/// Returns all simulated cards and boards.
pub fn all() -> Result<Lists, String> {
    let cards = CARDS.iter().map(|(name, _)| {
        let profile = Profile::named(name).map_err(|error| error.to_string())?;
        Ok(Named {
            name,
            about: profile.about,
            records: true,
        })
    });
    let boards = BOARDS.iter().map(|(name, _)| {
        let board = Board::named(name).map_err(|error| error.to_string())?;
        Ok(Named {
            name,
            about: board.about,
            records: matches!(board.bus, Bus::Spi(_)),
        })
    });
    Ok(Lists {
        cards: cards.collect::<Result<_, String>>()?,
        boards: boards.collect::<Result<_, String>>()?,
    })
}
