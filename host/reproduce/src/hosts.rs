//! Times of hosts that no study states: processor times of drivers and libraries, and the reset time of a card reader after
//! a time-out. Boards have assumed ones, and a few that were derived from a published figure. The members of an ensemble differ in
//! them as in their cards.

use cardiograph_sim_card::{Board, Seed};

/// Largest factor between a processor time of a member and the one in the board's file: assumed.
const FACTOR_MAX: f64 = 1.5;
/// Longest reset of a card reader, in ms: assumed.
const RESET_MS_MAX: f64 = 2000.0;

/// Returns a board with the times of a member. Those of the first, number 0, are those of the board's file; each time
/// of the others is multiplied by a factor that the numbers of board and member determine. The factors of members 1 and 2, 3 and
/// 4, and so on are reciprocal (antithetic variates; Hammersley and Morton, 1956), so that the median of a few members
/// stays near the file's.
pub(crate) fn of_member(mut board: Board, name: &str, member: u16) -> Board {
    if member == 0 {
        return board;
    }
    let pair = member.div_ceil(2);
    let sign = if member.is_multiple_of(2) { -1.0 } else { 1.0 };
    let mut random = Seed::new(pair.into()).stream(&format!("times of {name}"));
    // Between -1 and 1.
    let mut place = || sign * (random.below(2_000_001) as f64 / 1e6 - 1.0);
    for time in times(&mut board) {
        *time = (f64::from(*time) * FACTOR_MAX.powf(place())).round() as u32;
    }
    if let Some(hang) = &mut board.driver.hang {
        hang.timeout_ms += (RESET_MS_MAX * (1.0 + place()) / 2.0).round() as u32;
    }
    board
}

fn times(board: &mut Board) -> [&mut u32; 5] {
    [
        &mut board.driver.command_us,
        &mut board.driver.block_us,
        &mut board.library.call_us,
        &mut board.library.byte_ns,
        &mut board.library.read_byte_ns,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use cardiograph_sim_card::BOARDS;

    #[test]
    fn members_differ_in_processor_times_within_the_factor() {
        for (name, _) in BOARDS {
            let mut board = Board::named(name).unwrap();
            assert_eq!(of_member(board.clone(), name, 0), board);
            let mut calls_us = Vec::new();
            for member in 1..8 {
                let mut other = of_member(board.clone(), name, member);
                assert_eq!(of_member(board.clone(), name, member), other);
                assert_eq!(other.bus, board.bus);
                calls_us.push(other.library.call_us);
                for (time, of_file) in times(&mut other).into_iter().zip(times(&mut board)) {
                    let of_file = f64::from(*of_file);
                    let allowed = of_file / FACTOR_MAX - 0.5..=of_file * FACTOR_MAX + 0.5;
                    assert!(allowed.contains(&f64::from(*time)), "{name}: {time}");
                }
            }
            calls_us.sort_unstable();
            calls_us.dedup();
            assert!(calls_us.len() > 1, "{name}: {calls_us:?}");
        }
    }

    #[test]
    fn two_members_are_on_both_sides_of_the_file() {
        for (name, _) in BOARDS {
            let board = Board::named(name).unwrap();
            for member in [1, 3, 5] {
                let mut pair = [member, member + 1].map(|of| of_member(board.clone(), name, of));
                let mut of_file = board.clone();
                let [one, other] = &mut pair;
                let both = times(one).into_iter().zip(times(other));
                for ((one, other), of_file) in both.zip(times(&mut of_file)) {
                    let mean = (f64::from(*one) * f64::from(*other)).sqrt();
                    assert!((mean - f64::from(*of_file)).abs() < 1.5, "{name}: {mean}");
                }
            }
        }
    }
}
