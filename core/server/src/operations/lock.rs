//! LOCK, UNLOCK and PROPPATCH (RFC 4918, sections 9.2, 9.10 and 9.11).

use super::condition::Target;
use super::permission::LOCKED;
use super::propfind::empty_element;
use super::upload::done;
use crate::body::Body;
use crate::dav::Depth;
use crate::dav::bodies::{self, Patch, is_microsoft};
use crate::dav::locks::{Extent, Lock, NoLock, Permission, duration_s};
use crate::head::Head;
use crate::path::{Path, append};
use crate::status::{Fault, Refused, Status};
use crate::wire::{Length, Wire};
use crate::{Error, Instrument, Server, Storage, Timer};
use core::hash::Hasher;
use embedded_io_async::{Read, Write};

const NO_TOKEN: Refused = Refused::bad("the field Lock-Token is missing");
const NOT_LOCKED: Refused =
    Refused::new(Status::Conflict, "the path is not locked with this token");
const TABLE_FULL: Refused = Refused::new(
    Status::ServiceUnavailable,
    "other clients hold too many locks; try again later",
);

impl<S: Storage, I: Instrument, T: Timer> Server<'_, S, I, T> {
    /// Locks a path, or refreshes its lock. A path that does not exist becomes an empty file.
    pub(crate) async fn lock<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        head: &Head<'_>,
        body: &mut Body<'_>,
        path: &Path,
    ) -> Result<(), Fault> {
        let is_deep = match Depth::of(head)? {
            Depth::Zero => false,
            Depth::Infinity => true,
            Depth::One => return Err(Refused::bad("a lock has depth 0 or infinity").into()),
        };
        let wanted = bodies::lock(body.text(wire).await?)?;
        let duration_ms = 1000 * u64::from(duration_s(head.field("Timeout")?));
        let Some((scope, owner)) = wanted else {
            let tokens = head.field("If")?.unwrap_or_default();
            let expires_ms = self.timer.now_ms() + duration_ms;
            let lock = self.locks().refresh(path, tokens, expires_ms);
            let lock = lock.ok_or(Refused::new(
                Status::PreconditionFailed,
                "no lock of this path has a token of the field If",
            ))?;
            return self.granted(wire, &lock, path, Status::Ok).await;
        };
        let permission = self.permission(head, path, Extent::File)?;
        // The lock comes first, so that no other client gets it while the file is created.
        let expires_ms = self.timer.now_ms() + duration_ms;
        let taken = self
            .locks()
            .take(path, (scope, is_deep, owner), self.random(), expires_ms);
        let lock = taken.map_err(|reason| match reason {
            NoLock::Conflict => LOCKED,
            NoLock::TableFull => TABLE_FULL,
        })?;
        match self.prepare(path, permission).await {
            Ok(status) => self.granted(wire, &lock, path, status).await,
            Err(fault) => {
                self.locks().release(path, &lock.token());
                Err(fault)
            }
        }
    }

    /// Creates an empty file if nothing has the path of a new lock; other locks may forbid that.
    async fn prepare(&self, path: &str, permission: Permission) -> Result<Status, Fault> {
        match self.storage.open(path).await {
            Ok(file) => match self.storage.stat(&file).is_growing {
                true => return Err(Error::Recording.into()),
                false => return Ok(Status::Ok),
            },
            Err(Error::NotFound) => (),
            Err(error) => return Err(error.into()),
        }
        if permission != Permission::Granted {
            return Err(LOCKED.into());
        }
        let upload = match self.storage.create(path, Some(0)).await {
            Ok(upload) => upload,
            Err(Error::NotFound) => return Err(super::upload::NO_FOLDER.into()),
            Err(error) => return Err(error.into()),
        };
        self.storage.commit(upload, path).await?;
        Ok(Status::Created)
    }

    /// Sends a lock.
    async fn granted<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        lock: &Lock,
        path: &str,
        status: Status,
    ) -> Result<(), Fault> {
        wire.closes |= wire.is_old();
        wire.start(status).await?;
        wire.text(format_args!(
            "Content-Type: application/xml; charset=utf-8\r\nLock-Token: <{}>\r\n",
            lock.token()
        ))
        .await?;
        wire.body(Length::Unknown).await?;
        wire.bytes(
            b"<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<D:prop xmlns:D=\"DAV:\"><D:lockdiscovery>",
        )
        .await?;
        self.active_lock(wire, lock, path, "").await?;
        wire.bytes(b"</D:lockdiscovery></D:prop>\n").await?;
        Ok(wire.finish().await?)
    }

    /// Ends a lock.
    pub(crate) async fn unlock<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        head: &Head<'_>,
        path: &str,
    ) -> Result<(), Fault> {
        let token = head.field("Lock-Token")?.ok_or(NO_TOKEN)?;
        let token = token.trim_start_matches('<').trim_end_matches('>');
        let was_locked = self.locks().release(path, token);
        match was_locked {
            true => done(wire, Status::NoContent).await,
            false => Err(NOT_LOCKED.into()),
        }
    }

    /// Responds to PROPPATCH: no property can be changed. Explorer gives up a copy unless its times are accepted, so the
    /// response to a client that changes only properties of Microsoft is that they were.
    pub(crate) async fn proppatch<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        head: &Head<'_>,
        body: &mut Body<'_>,
        path: &str,
    ) -> Result<(), Fault> {
        let body = body.kept_text(wire).await?;
        let patch = bodies::proppatch(body)?;
        self.storage.open(path).await?;
        self.check_conditions(head, path, Target::Existing).await?;
        wire.closes |= wire.is_old();
        wire.start(Status::MultiStatus).await?;
        wire.bytes(b"Content-Type: application/xml; charset=utf-8\r\n")
            .await?;
        wire.body(Length::Unknown).await?;
        wire.bytes(
            b"<?xml version=\"1.0\" encoding=\"utf-8\"?>\n\
              <D:multistatus xmlns:D=\"DAV:\"><D:response><D:href>",
        )
        .await?;
        super::list::url(wire, path).await?;
        wire.bytes(b"</D:href>").await?;
        let groups = match patch {
            Patch::Accepted => [None, Some("200 OK")],
            Patch::Refused => [Some("403 Forbidden"), Some("424 Failed Dependency")],
        };
        for (of_microsoft, status) in [false, true].into_iter().zip(groups) {
            let mut names = (0..).map_while(|number| bodies::patched(body, number));
            let has_any = names.any(|name| is_microsoft(&name) == of_microsoft);
            let Some(status) = status.filter(|_| has_any || patch == Patch::Accepted) else {
                continue;
            };
            wire.bytes(b"<D:propstat><D:prop>").await?;
            let mut number = 0;
            while let Some(name) = bodies::patched(body, number) {
                if is_microsoft(&name) == of_microsoft {
                    empty_element(wire, &name).await?;
                }
                number += 1;
            }
            wire.text(format_args!(
                "</D:prop><D:status>HTTP/1.1 {status}</D:status></D:propstat>"
            ))
            .await?;
        }
        wire.bytes(b"</D:response></D:multistatus>\n").await?;
        Ok(wire.finish().await?)
    }

    /// Returns one of the locks that cover a member of a folder, or the folder itself if `name` is empty.
    pub(crate) fn lock_at(&self, folder: &str, name: &str, index: usize) -> Option<Lock> {
        let mut path = Path::try_from(folder).ok()?;
        if !name.is_empty() {
            append(&mut path, name).ok()?;
        }
        self.locks().covering(&path).nth(index).copied()
    }

    /// Returns an unpredictable number.
    #[expect(
        deprecated,
        reason = "the only keyed hash of the core library, and its algorithm does not matter to anyone else"
    )]
    fn random(&self) -> u128 {
        let (secret, now_ms) = (self.config.secret, self.timer.now_ms());
        let count = self.counters.requests.get();
        let half = |part: u64| {
            let mut hasher = core::hash::SipHasher::new_with_keys(secret, !secret.rotate_left(29));
            [part, now_ms, count]
                .into_iter()
                .for_each(|word| hasher.write_u64(word));
            u128::from(hasher.finish())
        };
        half(0) << 64 | half(1)
    }
}
