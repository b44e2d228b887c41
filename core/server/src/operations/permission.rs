//! Changes that locks and the field `If` permit (RFC 4918, sections 6, 7 and 10.4).

use crate::dav::condition::{Resource, next_list};
use crate::dav::locks::{Extent, Locks, Permission, is_inside};
use crate::head::{Head, split_url};
use crate::path::{Path, decode_path};
use crate::range::tag_of;
use crate::status::{Refused, Status};
use crate::{Instrument, Kind, Server, Stat, Storage, Timer};

/// A lock of another client forbids a change.
pub(crate) const LOCKED: Refused = Refused::new(
    Status::Locked,
    "another client has locked the path or a part of it; try again later",
);
impl<S: Storage, I: Instrument, T: Timer> Server<'_, S, I, T> {
    /// Returns the present locks.
    pub(crate) fn locks(&self) -> core::cell::RefMut<'_, Locks> {
        let mut locks = self.locks.borrow_mut();
        locks.expire(self.timer.now_ms());
        locks
    }

    /// Decides whether the locks permit a change.
    pub(crate) fn permission(
        &self,
        head: &Head<'_>,
        path: &str,
        extent: Extent,
    ) -> Result<Permission, Refused> {
        let tokens = head.field("If")?.unwrap_or_default();
        Ok(self.locks().permission(path, extent, tokens))
    }

    /// Evaluates the field `If` for a path. Entity tags of other paths and lists for other servers never match.
    pub(crate) fn is_if_met(
        &self,
        host: Option<&str>,
        field: &str,
        path: &str,
        stat: Option<&Stat>,
    ) -> Result<bool, Refused> {
        let (mut rest, mut resource) = (field, None);
        let mut is_met = false;
        while let Some((list, after)) = next_list(rest, &mut resource)? {
            let (is_own, named) = match list.resource {
                Some(url) => path_of(host, url)?,
                None => (true, None),
            };
            let subject = named.as_deref().unwrap_or(path);
            let state = State {
                locks: &self.locks(),
                path: subject,
                stat: stat.filter(|_| subject == path),
            };
            is_met |= list.holds(&state)? && is_own;
            rest = after;
        }
        Ok(is_met)
    }
}

/// State of a path for the field `If`.
struct State<'s> {
    locks: &'s Locks,
    path: &'s str,
    stat: Option<&'s Stat>,
}

impl Resource for State<'_> {
    fn has_lock(&self, token: &str) -> bool {
        self.locks.has(self.path, token)
    }

    fn has_tag(&self, tag: &str) -> bool {
        let own = self.stat.filter(|stat| stat.kind == Kind::File).map(tag_of);
        own.is_some_and(|own| own == tag)
    }
}

/// Returns true if a URL in the field `If` belongs to this server, and its path.
fn path_of(host: Option<&str>, url: &str) -> Result<(bool, Option<Path>), Refused> {
    let (is_own, path) = match split_url(url) {
        Some((authority, path)) => {
            let is_own = host.is_none_or(|host| host.eq_ignore_ascii_case(authority));
            (is_own, path)
        }
        None => (true, url),
    };
    Ok((is_own, Some(decode_path(path)?)))
}

/// Returns true if one path is the other, or one contains the other.
pub(crate) fn overlap(one: &str, other: &str) -> bool {
    one == other || is_inside(one, other) || is_inside(other, one)
}
