//! Conditions of changes (RFC 9110, section 13), and turns in which they stay true until the change is made.

use super::permission::LOCKED;
use crate::dav::locks::{Extent, Permission};
use crate::head::Head;
use crate::limits::TURN_MS;
use crate::range::is_met;
use crate::status::{Fault, Refused, Status};
use crate::{Error, Instrument, Server, Storage, Timer};
use core::cell::Cell;

/// A condition is not met.
pub(crate) const NOT_MET: Refused = Refused::new(
    Status::PreconditionFailed,
    "the file has changed, or exists already: a condition of the request is not met; read it again",
);

/// The condition of WebDAV is not met.
const IF_NOT_MET: Refused = Refused::new(
    Status::PreconditionFailed,
    "the file has changed, or the lock has ended: the field If is not met; read the file again, or lock it again",
);

/// Changes that are being made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Changes {
    /// No change.
    #[default]
    None,
    /// This many changes without conditions.
    Some(u16),
    /// A change with a condition, which no other change may invalidate.
    Conditional,
}

/// Permission to make a change; it ends when this is dropped.
pub(crate) struct Turn<'s>(&'s Cell<Changes>);

impl<'s> Turn<'s> {
    /// Returns `None` if a change with a condition would overlap with another change.
    fn take(changes: &'s Cell<Changes>, is_conditional: bool) -> Option<Turn<'s>> {
        let next = match (changes.get(), is_conditional) {
            (Changes::None, true) => Changes::Conditional,
            (Changes::None, false) => Changes::Some(1),
            (Changes::Some(count), false) => Changes::Some(count.checked_add(1)?),
            _ => return None,
        };
        changes.set(next);
        Some(Turn(changes))
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0.set(match self.0.get() {
            Changes::Some(count @ 2..) => Changes::Some(count - 1),
            _ => Changes::None,
        });
    }
}

/// State of a path to which the condition of a change applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The change creates or replaces it.
    Any,
    /// The change fails without it.
    Existing,
    /// The request only reads it.
    #[cfg(feature = "webdav")]
    Source,
}

impl<S: Storage, I: Instrument, T: Timer> Server<'_, S, I, T> {
    /// Waits until the request may change a path, then checks its conditions. They hold until the turn ends.
    pub(crate) async fn turn(
        &self,
        head: &Head<'_>,
        path: &str,
        target: Target,
    ) -> Result<Turn<'_>, Fault> {
        let turn = loop {
            match Turn::take(&self.changes, head.fields.has_condition()) {
                Some(turn) => break turn,
                None => self.timer.sleep_ms(TURN_MS).await,
            }
        };
        self.check_conditions(head, path, target).await?;
        Ok(turn)
    }

    /// Checks the conditions of a change. The change itself reports that a path is missing or being recorded.
    pub(crate) async fn check_conditions(
        &self,
        head: &Head<'_>,
        path: &str,
        target: Target,
    ) -> Result<(), Fault> {
        let permission = match target {
            Target::Any => self.permission(head, path, Extent::File)?,
            Target::Existing => self.permission(head, path, Extent::Tree)?,
            #[cfg(feature = "webdav")]
            Target::Source => Permission::Granted,
        };
        if permission == Permission::Refused && !head.fields.has_if {
            return Err(LOCKED.into());
        }
        if permission == Permission::Granted && !head.fields.has_condition() {
            return Ok(());
        }
        let stat = match self.storage.open(path).await {
            Ok(file) => Some(self.storage.stat(&file)),
            Err(Error::NotFound) if target == Target::Any => None,
            Err(Error::NotFound) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let is_if_met = match head.field("If")? {
            Some(field) => self.is_if_met(head.host, field, path, stat.as_ref())?,
            None => true,
        };
        let is_growing = stat.is_some_and(|stat| stat.is_growing);
        if !is_growing && !is_met(head, stat.as_ref())? {
            return Err(NOT_MET.into());
        }
        if !is_growing && !is_if_met {
            return Err(IF_NOT_MET.into());
        }
        match permission {
            Permission::Granted => Ok(()),
            Permission::IfExisting if stat.is_some() => Ok(()),
            _ => Err(LOCKED.into()),
        }
    }
}
