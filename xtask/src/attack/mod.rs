//! Twelve hostile clients against the server beside two recordings, compared with recordings beside an idle server.
//!
//! ```text
//!   recording on a directory ──┐                      ┌── recording on a directory, idle server
//!   recording on a sim. card ──┤<── 12 clients each   └── recording on a sim. card, idle server
//! ```
//!
//! All four run at the same time, so that the idle ones show what the machine alone costs.

mod clients;
mod server;

use crate::run::{build_command, target};
use server::{Medium, Server, Status};
use std::time::{Duration, Instant};

const MEDIA: [Medium; 2] = [Medium::Directory, Medium::SimulatedCard];
/// Idle recordings of each medium; chance decides how often a busy disk exceeds a window.
const IDLE_RUNS: usize = 3;
const CLIENTS: u64 = 12;
const LANE_S: u64 = 600;
const SLICE_S: u64 = 40;
/// Time after which descriptors and memory have to be back where they were.
const QUIET: Duration = Duration::from_secs(15);
/// Memory that the allocator may keep, in kB.
const SPARE_KB: u64 = 4096;

/// Attacks for ten minutes.
pub fn lane() -> Result<(), String> {
    attack(Duration::from_secs(LANE_S), 1)
}

/// Attacks for less than a minute; returns the number of recordings that survived.
pub fn slice(turn: u64) -> Result<usize, String> {
    attack(Duration::from_secs(SLICE_S), 2 + turn)?;
    Ok(MEDIA.len())
}

fn attack(time: Duration, seed: u64) -> Result<(), String> {
    build_command()?;
    println!("seed {seed}");
    let folder = super::bench::scratch(target().join("attack"))?;
    let mut attacked = Vec::new();
    let mut idle = Vec::new();
    for medium in MEDIA {
        attacked.push(Server::start(
            medium,
            &folder.join(format!("{medium:?}-attacked")),
        )?);
        for number in 0..IDLE_RUNS {
            let own = folder.join(format!("{medium:?}-idle-{number}"));
            idle.push((medium, Server::start(medium, &own)?));
        }
    }
    let before = statuses(&attacked)?;
    std::thread::scope(|scope| {
        for (number, server) in (0..).zip(&attacked) {
            for client in 0..CLIENTS {
                let seed = seed * 1000 + number * CLIENTS + client;
                scope.spawn(move || clients::attack(server.address, seed, Instant::now() + time));
            }
        }
    });
    std::thread::sleep(QUIET);
    let after = statuses(&attacked)?;
    for (server, (before, after)) in attacked.iter().zip(before.iter().zip(&after)) {
        let windows = idle.iter().filter(|(medium, _)| *medium == server.medium);
        let windows: Vec<u64> = windows
            .map(|(_, server)| Ok(server.status()?.windows_exceeded))
            .collect::<Result<_, String>>()?;
        println!(
            "{:?}: {before:?} -> {after:?}; windows beside idle servers: {windows:?}",
            server.medium
        );
        judge(before, after, &windows).map_err(|why| format!("{:?}: {why}", server.medium))?;
    }
    for (medium, server) in &idle {
        let lost = server.status()?.lost;
        if lost > 0 {
            return Err(format!(
                "{medium:?}: {lost} samples lost beside an idle server; this machine is too busy"
            ));
        }
    }
    attacked.into_iter().try_for_each(Server::stop)?;
    idle.into_iter().try_for_each(|(_, server)| server.stop())
}

fn statuses(servers: &[Server]) -> Result<Vec<Status>, String> {
    servers.iter().map(Server::status).collect()
}

/// Judges a recording by its figures before and after the attack, and by how often windows were exceeded beside idle
/// servers.
fn judge(before: &Status, after: &Status, windows: &[u64]) -> Result<(), String> {
    let most = windows.iter().copied().max().unwrap_or(0);
    match after {
        Status {
            recording: false, ..
        } => Err(String::from("the attack ended the recording")),
        Status { lost, .. } if *lost > 0 => Err(format!("{lost} samples lost")),
        Status {
            windows_exceeded, ..
        } if *windows_exceeded > most => Err(format!(
            "{windows_exceeded} windows exceeded, {most} beside idle servers"
        )),
        Status { descriptors, .. } if *descriptors > before.descriptors => Err(format!(
            "{descriptors} descriptors are open, {} before",
            before.descriptors
        )),
        // Its contents are the memory of a simulated card, which the uploads fill.
        Status {
            memory_kb: Some(kb),
            ..
        } if *kb > before.memory_kb.unwrap_or(0) + SPARE_KB => {
            Err(format!("{kb} kB of memory, {:?} before", before.memory_kb))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_figure_is_judged() {
        let good = Status {
            recording: true,
            lost: 0,
            windows_exceeded: 1,
            descriptors: 9,
            memory_kb: Some(9000),
        };
        assert_eq!(judge(&good, &good, &[0, 1]), Ok(()));
        for bad in [
            Status {
                recording: false,
                ..good
            },
            Status { lost: 1, ..good },
            Status {
                windows_exceeded: 2,
                ..good
            },
            Status {
                descriptors: 10,
                ..good
            },
            Status {
                memory_kb: Some(20_000),
                ..good
            },
        ] {
            assert!(judge(&good, &bad, &[0, 1]).is_err(), "{bad:?}");
        }
    }
}
