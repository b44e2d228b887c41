//! Locks: a table in memory, with a time limit for each.

#[cfg(feature = "webdav")]
use crate::ROW_BYTES_MAX;
use crate::path::{Path, parent};
#[cfg(feature = "webdav")]
use crate::wire::Room;
use core::fmt::Write;

/// Number of locks at the same time.
pub(crate) const LOCKS_MAX: usize = if usize::BITS == 32 { 4 } else { 16 };
/// Longest owner of a lock, in bytes, as XML.
const OWNER_BYTES_MAX: usize = match (cfg!(feature = "webdav"), usize::BITS) {
    (false, _) => 0,
    (true, 32) => 64,
    (true, _) => 256,
};
/// Duration of a lock that requests none, and longest duration, in s. Clients refresh the locks that they still need.
const DEFAULT_S: u32 = 600;
const DURATION_S_MAX: u32 = 3600;

/// Sharing of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scope {
    Exclusive,
    Shared,
}

/// The owner of a lock as its client describes it: XML without declarations. Empty if it is unknown or too long.
pub(crate) type Owner = heapless::String<OWNER_BYTES_MAX>;

/// The text of a lock's token.
pub(crate) type Token = heapless::String<45>;

/// A lock without its path, which is the beginning of each path that the lock covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lock {
    id: u128,
    pub(crate) scope: Scope,
    /// The lock covers everything below its path.
    pub(crate) is_deep: bool,
    /// Length of its path.
    pub(crate) path_bytes: u8,
    expires_ms: u64,
}

impl Lock {
    /// Returns the token: a UUID of version 8 (RFC 9562).
    pub(crate) fn token(&self) -> Token {
        let part = |shift: u32, bits: u32| (self.id >> shift) as u64 & ((1 << bits) - 1);
        let (first, second, third) = (part(96, 32), part(80, 16), part(64, 12));
        let (fourth, fifth) = (part(48, 14) | 0x8000, part(0, 48));
        let mut token = Token::new();
        // Its length is fixed.
        let _ = write!(
            token,
            "urn:uuid:{first:08x}-{second:04x}-8{third:03x}-{fourth:04x}-{fifth:012x}"
        );
        token
    }

    /// Returns true if a field `If` contains the token.
    fn is_in(&self, field: &str) -> bool {
        let token = self.token();
        let mut parts = field.split('<').skip(1);
        parts.any(|part| part.split('>').next() == Some(&token))
    }

    /// Returns the time left, in s.
    pub(crate) fn left_s(&self, now_ms: u64) -> u64 {
        self.expires_ms.saturating_sub(now_ms) / 1000
    }
}

/// A lock with its path.
#[derive(Debug)]
struct Locked {
    path: Path,
    lock: Lock,
    owner: Owner,
}

impl Locked {
    fn covers(&self, path: &str) -> bool {
        self.path == path || self.lock.is_deep && is_inside(path, &self.path)
    }
}

/// Returns true if a path is below a folder.
pub(crate) fn is_inside(path: &str, folder: &str) -> bool {
    let rest = path.strip_prefix(folder);
    rest.is_some_and(|rest| rest.starts_with('/') || folder == "/" && !rest.is_empty())
}

/// Extent of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// A file is created or replaced.
    File,
    /// A path is removed with everything below it, or moved.
    Tree,
}

/// Result of comparing a change with the locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Permission {
    Granted,
    /// Granted if the path exists already: its folder is locked, but not what is in it.
    IfExisting,
    Refused,
}

/// Reason why there is no lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoLock {
    /// Another lock excludes it.
    Conflict,
    /// The table is full.
    TableFull,
}

/// The locks.
#[derive(Debug, Default)]
pub(crate) struct Locks(heapless::Vec<Locked, LOCKS_MAX>);

impl Locks {
    /// Removes the locks whose time is over.
    pub(crate) fn expire(&mut self, now_ms: u64) {
        self.0.retain(|locked| locked.lock.expires_ms > now_ms);
    }

    /// Creates a lock; returns it. `id` is random.
    pub(crate) fn take(
        &mut self,
        path: &Path,
        (scope, is_deep, owner): (Scope, bool, Owner),
        id: u128,
        expires_ms: u64,
    ) -> Result<Lock, NoLock> {
        let overlaps = |it: &Locked| it.covers(path) || is_deep && is_inside(&it.path, path);
        let excludes = |it: &Locked| [scope, it.lock.scope].contains(&Scope::Exclusive);
        if self.0.iter().any(|it| overlaps(it) && excludes(it)) {
            return Err(NoLock::Conflict);
        }
        let lock = Lock {
            id,
            scope,
            is_deep,
            path_bytes: path.len() as u8,
            expires_ms,
        };
        let added = self.0.push(Locked {
            path: path.clone(),
            lock,
            owner,
        });
        added.map(|()| lock).map_err(|_| NoLock::TableFull)
    }

    /// Extends the lock that covers a path and whose token is among `tokens`; returns it.
    pub(crate) fn refresh(&mut self, path: &str, tokens: &str, expires_ms: u64) -> Option<Lock> {
        let is_it = |it: &Locked| it.covers(path) && it.lock.is_in(tokens);
        let locked = self.0.iter_mut().find(|it| is_it(it))?;
        locked.lock.expires_ms = expires_ms;
        Some(locked.lock)
    }

    /// Ends the lock with a token if it covers the path; returns true if there was one.
    pub(crate) fn release(&mut self, path: &str, token: &str) -> bool {
        let is_it = |it: &Locked| it.covers(path) && it.lock.token() == token;
        let found = self.0.iter().position(is_it);
        found.inspect(|at| drop(self.0.swap_remove(*at))).is_some()
    }

    /// Ends the locks of a path that was removed or moved, and of everything below it.
    pub(crate) fn forget(&mut self, path: &str) {
        self.0
            .retain(|lock| lock.path != path && !is_inside(&lock.path, path));
    }

    /// Returns the locks that cover a path.
    pub(crate) fn covering<'l>(&'l self, path: &'l str) -> impl Iterator<Item = &'l Lock> {
        let covering = self.0.iter().filter(move |it| it.covers(path));
        covering.map(|it| &it.lock)
    }

    /// Writes the owner of a lock as an element, if it is known; returns its length.
    #[cfg(feature = "webdav")]
    pub(crate) fn write_owner(&self, lock: &Lock, row: &mut [u8; ROW_BYTES_MAX]) -> usize {
        let found = self.0.iter().find(|it| it.lock.id == lock.id);
        let Some(Locked { owner, .. }) = found.filter(|it| !it.owner.is_empty()) else {
            return 0;
        };
        let mut room = Room::new(row);
        // The longest owner fits.
        let _ = write!(room, "<D:owner>{owner}</D:owner>");
        room.len()
    }

    /// Returns true if the lock with a token covers the path.
    pub(crate) fn has(&self, path: &str, token: &str) -> bool {
        self.covering(path).any(|lock| lock.token() == token)
    }

    /// Decides whether a client that submits `tokens` may change a path.
    pub(crate) fn permission(&self, path: &str, extent: Extent, tokens: &str) -> Permission {
        // One of the shared locks of a path is enough.
        let is_submitted = |it: &Locked| {
            let mut of_path = self.0.iter().filter(|other| other.path == it.path);
            of_path.any(|other| other.lock.is_in(tokens))
        };
        let mut permission = Permission::Granted;
        for it in self.0.iter().filter(|it| !is_submitted(it)) {
            let is_below = extent == Extent::Tree && is_inside(&it.path, path);
            if it.covers(path) || is_below {
                return Permission::Refused;
            }
            if it.path == parent(path) {
                permission = match extent {
                    Extent::File => Permission::IfExisting,
                    Extent::Tree => return Permission::Refused,
                };
            }
        }
        permission
    }
}

/// Returns the duration in s that a `Timeout` field grants: the first one of its list that the server understands, up
/// to an hour.
pub(crate) fn duration_s(timeout: Option<&str>) -> u32 {
    let mut words = timeout.unwrap_or_default().split(',').map(str::trim);
    let known = words.find_map(|word| match word.strip_prefix("Second-") {
        Some(digits) if digits.bytes().all(|digit| digit.is_ascii_digit()) => {
            Some(digits.parse().unwrap_or(DURATION_S_MAX))
        }
        _ => (word == "Infinite").then_some(DURATION_S_MAX),
    });
    known.unwrap_or(DEFAULT_S).clamp(1, DURATION_S_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::format;

    fn path(text: &str) -> Path {
        Path::try_from(text).unwrap()
    }

    fn take(locks: &mut Locks, text: &str, scope: Scope, is_deep: bool) -> Result<Token, NoLock> {
        let id = 0x0123_4567_89AB_CDEF_0123_4567_89AB_0000 + locks.0.len() as u128;
        let lock = locks.take(&path(text), (scope, is_deep, Owner::new()), id, 1000);
        lock.map(|lock| lock.token())
    }

    #[test]
    fn tokens_are_uuids_of_version_8() {
        let token = take(&mut Locks::default(), "/a", Scope::Exclusive, false).unwrap();
        assert_eq!(token, "urn:uuid:01234567-89ab-8def-8123-456789ab0000");
    }

    #[test]
    fn exclusive_locks_exclude_every_overlapping_lock() {
        let mut locks = Locks::default();
        take(&mut locks, "/a/b", Scope::Exclusive, false).unwrap();
        for (text, is_deep) in [("/a/b", false), ("/a", true), ("/", true)] {
            for scope in [Scope::Exclusive, Scope::Shared] {
                let taken = take(&mut locks, text, scope, is_deep);
                assert_eq!(taken, Err(NoLock::Conflict), "{text}");
            }
        }
        for text in ["/a/bc", "/a/b/c", "/b"] {
            take(&mut locks, text, Scope::Exclusive, true).unwrap();
        }
        take(&mut locks, "/a", Scope::Exclusive, false).unwrap();
        assert_eq!(
            take(&mut locks, "/b/x", Scope::Shared, false),
            Err(NoLock::Conflict)
        );
    }

    #[test]
    fn shared_locks_exclude_only_exclusive_ones() {
        let mut locks = Locks::default();
        let one = take(&mut locks, "/a", Scope::Shared, false).unwrap();
        let other = take(&mut locks, "/a", Scope::Shared, false).unwrap();
        assert_ne!(one, other);
        assert_eq!(
            take(&mut locks, "/a", Scope::Exclusive, false),
            Err(NoLock::Conflict)
        );
        let permission = |tokens: &str| locks.permission("/a", Extent::File, tokens);
        assert_eq!(permission(""), Permission::Refused);
        assert_eq!(permission(&format!("(<{one}>)")), Permission::Granted);
        assert_eq!(permission(&format!("(<{other}>)")), Permission::Granted);
        assert_eq!(permission(&format!("(<{other}x>)")), Permission::Refused);
    }

    #[test]
    fn a_change_needs_the_tokens_of_all_locks_that_it_affects() {
        use Permission::{Granted, IfExisting, Refused};
        let mut locks = Locks::default();
        let file = take(&mut locks, "/d/f", Scope::Exclusive, false).unwrap();
        let deep = take(&mut locks, "/e", Scope::Exclusive, true).unwrap();
        let flat = take(&mut locks, "/g", Scope::Exclusive, false).unwrap();
        let [file, deep, flat] = [file, deep, flat].map(|token| format!("(<{token}>)"));
        for (path, extent, tokens, expected) in [
            ("/d/f", Extent::File, "", Refused),
            ("/d/f", Extent::File, &*file, Granted),
            ("/d/f", Extent::File, &*deep, Refused),
            ("/d", Extent::Tree, "", Refused),
            ("/d", Extent::Tree, &*file, Granted),
            ("/d", Extent::File, "", Granted),
            ("/d/g", Extent::File, "", Granted),
            ("/e/x/y", Extent::File, "", Refused),
            ("/e/x/y", Extent::File, &*deep, Granted),
            ("/ex", Extent::File, "", Granted),
            ("/g/new", Extent::File, "", IfExisting),
            ("/g/old", Extent::Tree, "", Refused),
            ("/g/old", Extent::Tree, &*flat, Granted),
            ("/g/x/y", Extent::Tree, "", Granted),
        ] {
            let permission = locks.permission(path, extent, tokens);
            assert_eq!(permission, expected, "{path} {extent:?} {tokens}");
        }
    }

    #[test]
    fn locks_end_by_token_by_time_and_with_their_path() {
        let mut locks = Locks::default();
        let token = take(&mut locks, "/a", Scope::Exclusive, true).unwrap();
        assert!(!locks.release("/b", &token));
        assert!(
            locks
                .refresh("/a/x", &format!("(<{token}>)"), 2000)
                .is_some()
        );
        assert!(locks.refresh("/a", "(<urn:uuid:other>)", 9000).is_none());
        locks.expire(1999);
        assert!(locks.has("/a/x", &token));
        assert!(locks.release("/a", &token) && !locks.release("/a", &token));
        take(&mut locks, "/a", Scope::Exclusive, false).unwrap();
        take(&mut locks, "/a/b", Scope::Exclusive, false).unwrap();
        take(&mut locks, "/ab", Scope::Exclusive, false).unwrap();
        locks.forget("/a");
        assert_eq!(locks.0.len(), 1);
        locks.expire(1000);
        assert_eq!(locks.0.len(), 0);
    }

    #[test]
    fn the_table_is_bounded() {
        let mut locks = Locks::default();
        for _ in 0..LOCKS_MAX {
            take(&mut locks, "/a", Scope::Shared, false).unwrap();
        }
        assert_eq!(
            take(&mut locks, "/a", Scope::Shared, false),
            Err(NoLock::TableFull)
        );
    }

    #[test]
    fn durations_are_bounded() {
        for (text, expected) in [
            (None, 600),
            (Some("Second-100"), 100),
            (Some("Infinite, Second-4100000000"), 3600),
            (Some("Second-99999999999999999999"), 3600),
            (Some("Second-0"), 1),
            (Some("Extend, Second-5"), 5),
            (Some("Second-"), 3600),
            (Some("nonsense"), 600),
        ] {
            assert_eq!(duration_s(text), expected, "{text:?}");
        }
    }
}
