//! Times of hosts that no study states: processor times of drivers and libraries, and what the reset of a card reader adds to a
//! time-out. Boards have assumed ones, and a few that were derived from a published figure. The members of an ensemble differ in
//! them as in their cards.

use cardiograph_sim_card::{Board, Seed};

/// Largest factor between a processor time of a member and the one in the board's file: assumed.
const FACTOR_MAX: f64 = 1.5;
/// Longest reset of a card reader, in ms: assumed.
const RESET_MS_MAX: u64 = 2000;

/// Returns a board with the times of a member. Those of the first, number 0, are those of the board's file; each time
/// of the others is multiplied by a factor that the numbers of board and member determine.
pub(crate) fn of_member(mut board: Board, name: &str, member: u16) -> Board {
    if member == 0 {
        return board;
    }
    let mut random = Seed::new(member.into()).stream(&format!("times of {name}"));
    let mut times = [
        &mut board.driver.command_us,
        &mut board.driver.block_us,
        &mut board.library.call_us,
        &mut board.library.byte_ns,
        &mut board.library.read_byte_ns,
    ];
    for time in &mut times {
        // Between -1 and 1.
        let place = random.below(2_000_001) as f64 / 1e6 - 1.0;
        **time = (f64::from(**time) * FACTOR_MAX.powf(place)).round() as u32;
    }
    if let Some(hang) = &mut board.driver.hang {
        hang.timeout_ms += random.below(RESET_MS_MAX + 1) as u32;
    }
    board
}

#[cfg(test)]
mod tests {
    use super::*;
    use cardiograph_sim_card::BOARDS;

    #[test]
    fn members_differ_in_processor_times_within_the_factor() {
        for (name, _) in BOARDS {
            let board = Board::named(name).unwrap();
            assert_eq!(of_member(board.clone(), name, 0), board);
            let mut calls_us = Vec::new();
            for member in 1..8 {
                let other = of_member(board.clone(), name, member);
                assert_eq!(of_member(board.clone(), name, member), other);
                let times = |board: &Board| {
                    let (driver, library) = (board.driver, board.library);
                    [
                        driver.command_us,
                        driver.block_us,
                        library.call_us,
                        library.byte_ns,
                        library.read_byte_ns,
                    ]
                };
                for (time, of_file) in times(&other).into_iter().zip(times(&board)) {
                    let of_file = f64::from(of_file);
                    let allowed = of_file / FACTOR_MAX - 0.5..=of_file * FACTOR_MAX + 0.5;
                    assert!(allowed.contains(&f64::from(time)), "{name}: {time}");
                }
                calls_us.push(other.library.call_us);
                assert_eq!(other.bus, board.bus);
            }
            calls_us.dedup();
            assert!(calls_us.len() > 1, "{name}");
        }
    }
}
