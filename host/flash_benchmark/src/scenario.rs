//! The nine sync scenarios of the study: a file of 1 MB, written ten times.

/// Sync after each of the ten writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncAfterEach {
    /// None.
    No,
    /// A sync that runs in the background.
    Background,
    /// A sync that is waited for.
    Wait,
}

/// Action after the last write, inside the measured time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Nothing.
    Nothing,
    /// A sync.
    Sync,
    /// Remount read-only.
    ReadOnly,
    /// Remount read-only, then writable.
    Remount,
    /// Remount read-only, then writable, then a sync.
    RemountAndSync,
}

/// A scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// Name, with the number in the study.
    pub name: &'static str,
    /// True if the file system is mounted with the option `sync`.
    pub is_mounted_sync: bool,
    /// Sync after each write.
    pub after_each: SyncAfterEach,
    /// End of the measured time.
    pub end: End,
}

impl Scenario {
    /// Length of the file in bytes.
    pub const FILE_BYTES: u32 = 1_000_000;
    /// Number of times that it is written.
    pub const WRITES: u32 = 10;
    /// Bytes written by a repetition.
    pub const BYTES: u64 = Scenario::FILE_BYTES as u64 * Scenario::WRITES as u64;

    /// Returns true if the scenario needs a file system that this run has mounted itself.
    pub fn needs_mount(&self) -> bool {
        self.is_mounted_sync || !matches!(self.end, End::Nothing | End::Sync)
    }
}

const fn scenario(
    name: &'static str,
    is_mounted_sync: bool,
    after_each: SyncAfterEach,
    end: End,
) -> Scenario {
    Scenario {
        name,
        is_mounted_sync,
        after_each,
        end,
    }
}

/// All scenarios in the order of the study. It does not say how its "remount only" (8) differs from 6; here, 8 ends with
/// the remount to read-only.
pub const SCENARIOS: [Scenario; 9] = [
    scenario(
        "1: background sync after each, final sync",
        false,
        SyncAfterEach::Background,
        End::Sync,
    ),
    scenario("2: final sync", false, SyncAfterEach::No, End::Sync),
    scenario(
        "3: sync after each",
        false,
        SyncAfterEach::Wait,
        End::Nothing,
    ),
    scenario(
        "4: mounted sync, sync after each, final sync",
        true,
        SyncAfterEach::Wait,
        End::Sync,
    ),
    scenario("5: mounted sync", true, SyncAfterEach::No, End::Nothing),
    scenario(
        "6: remount ro, then rw",
        false,
        SyncAfterEach::No,
        End::Remount,
    ),
    scenario(
        "7: remount ro, then rw, final sync",
        false,
        SyncAfterEach::No,
        End::RemountAndSync,
    ),
    scenario("8: remount ro", false, SyncAfterEach::No, End::ReadOnly),
    scenario(
        "9: background sync after each, remount ro, then rw",
        false,
        SyncAfterEach::Background,
        End::Remount,
    ),
];
