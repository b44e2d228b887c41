//! Least lengths of files for which recordings are removed, and shares of an empty card.

use super::*;
use crate::jobs::Done;
use crate::recorder::Config;
use crate::shell::test_rig::*;
use crate::volume::Removed;

/// If recordings are removed to make room, a file holds what arrives in 20 s, while the next one is prepared.
#[test]
fn files_for_which_recordings_are_removed_have_a_least_length() {
    let mut case = CASE;
    case.streams[0].rate = 10_000;
    case.streams[1].rate = 6_000;
    for (when_full, room, file_bytes, is_shared, due) in [
        (WhenFull::Wait, Room::Unknown, 1 << 20, false, 128),
        (WhenFull::RemoveOldest, Room::None, 1 << 20, false, 128),
        (WhenFull::RemoveOldest, Room::Unknown, 1 << 20, false, 390),
        (WhenFull::RemoveOldest, Room::Tight, 1 << 20, true, 625),
        // At most half of the requested length, at least that of any file.
        (WhenFull::RemoveOldest, Room::Unknown, 300_000, false, 292),
        (WhenFull::RemoveOldest, Room::Unknown, 65_536, false, 128),
    ] {
        case.is_shared = is_shared;
        let config = Config {
            when_full,
            file_bytes,
            ..Config::default()
        };
        with(&case, config, |shell, _, _| {
            shell.state.room = room;
            let blocks = shell.request(0).blocks_min;
            assert_eq!(
                blocks, due,
                "{when_full:?} {room:?} {file_bytes} {is_shared}"
            );
        });
    }
}

/// Returns a configuration for files of this length, for which recordings are removed.
fn removing(file_bytes: u32) -> Config {
    Config {
        when_full: WhenFull::RemoveOldest,
        file_bytes,
        ..Config::default()
    }
}

/// Otherwise all recordings would be removed for one file.
#[test]
fn files_for_which_recordings_are_removed_fit_several_times_on_the_card() {
    let mut case = CASE;
    case.streams[0].rate = 10_000_000;
    let config = removing(1 << 30);
    for (is_shared, due) in [(true, CARD_BLOCKS / 8), (false, CARD_BLOCKS / 16)] {
        case.is_shared = is_shared;
        with(&case, config, |shell, _, _| {
            assert_eq!(shell.request(0).blocks_min, due);
        });
    }
}

/// Other files may divide the free space so that no removal makes room for the whole length: without a limit, all
/// recordings would be removed.
#[test]
fn half_the_length_is_enough_after_removals_in_vain() {
    let mut case = CASE;
    case.streams[0].rate = 200_000;
    let config = removing(4 << 20);
    for is_shared in [true, false] {
        case.is_shared = is_shared;
        let tracks = if is_shared { 1 } else { 2 };
        with(&case, config, |shell, _, _| {
            let id = shell.id(0, 1);
            let remove = |shell: &mut Tested, blocks| {
                shell.take_done(Done::Removed(Some(Removed { id, blocks })));
            };
            // 2 MiB, half of the requested length.
            assert_eq!(shell.request(0).blocks_min, 4096);
            remove(shell, 4096 * 2 * tracks - 128);
            assert_eq!(shell.request(0).blocks_min, 4096);
            remove(shell, 1);
            assert_eq!(shell.request(0).blocks_min, 2048);
            // A file that fits does not unite the free space.
            remove(shell, 2048 * 2 * tracks - 128);
            shell.take_done(Done::Reserved(0, reserved(2, 200_000, 4096)));
            remove(shell, 2048 * 2 * tracks - 128);
            assert_eq!(shell.request(0).blocks_min, 2048);
            remove(shell, u32::MAX);
            assert_eq!(shell.request(0).blocks_min, 1024);
            for _ in 0..300 {
                remove(shell, u32::MAX);
            }
            assert_eq!(shell.request(0).blocks_min, 128);
            shell.take_done(Done::Mounted(None));
            assert_eq!(shell.request(0).blocks_min, 4096, "another card");
        });
    }
}

#[test]
fn tracks_without_a_file_share_the_room() {
    let mut case = CASE;
    case.is_shared = false;
    with(&case, Config::default(), |shell, _, _| {
        // Only track 0 has an open file.
        assert_eq!(shell.request(1).shares, 1);
        shell.state.tracks[1].ahead = 1;
        assert_eq!(shell.request(0).shares, 1);
        shell.state.tracks[0].file = None;
        assert_eq!(shell.request(0).shares, 1);
        shell.state.tracks[1].ahead = 0;
        assert_eq!(shell.request(0).shares, 2);
    });
}
