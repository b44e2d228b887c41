//! Properties of files and folders (RFC 4918, section 9.1).

use super::list::url;
use crate::body::Body;
use crate::dav::Depth;
use crate::dav::bodies::{self, PROPERTIES, Properties, Property, Wanted};
use crate::dav::locks::{Lock, Scope};
use crate::dav::xml::{DAV, Name};
use crate::path::{name, unavailable};
use crate::range::tag_of;
use crate::status::{Closed, Fault, Refused, Status};
use crate::storage::EMPTY_NAME;
use crate::text::{HttpDate, media_type};
use crate::wire::{Length, Wire};
use crate::{Instrument, Kind, Server, Stat, Storage, Timer};
use cardiograph_recorder::is_protected;
use embedded_io_async::{Read, Write};

const TOO_DEEP: Refused = Refused::new(
    Status::Forbidden,
    "list one folder at a time, with Depth: 1",
);
/// Precondition code of a refused depth (RFC 4918, section 9.1.1).
const FINITE_DEPTH: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n\
    <D:error xmlns:D=\"DAV:\"><D:propfind-finite-depth/></D:error>\n";
const START: &[u8] =
    b"<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<D:multistatus xmlns:D=\"DAV:\">\n";
const SUPPORTED_LOCKS: &[u8] = b"<D:supportedlock>\
    <D:lockentry><D:lockscope><D:exclusive/></D:lockscope><D:locktype><D:write/></D:locktype></D:lockentry>\
    <D:lockentry><D:lockscope><D:shared/></D:lockscope><D:locktype><D:write/></D:locktype></D:lockentry>\
    </D:supportedlock>";

/// A file or folder, and what to tell about it.
struct Subject<'a> {
    folder: &'a str,
    /// Name in the folder; empty for the folder itself.
    name: &'a str,
    stat: &'a Stat,
    wanted: Wanted,
    /// Body of the request.
    body: &'a str,
}

impl<S: Storage, I: Instrument, T: Timer> Server<'_, S, I, T> {
    /// Sends the properties of a path and, with depth 1, of its members.
    pub(crate) async fn propfind<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        body: &mut Body<'_>,
        path: &str,
        depth: Depth,
    ) -> Result<(), Fault> {
        let body = body.kept_text(wire).await?;
        let wanted = bodies::propfind(body)?;
        if depth == Depth::Infinity {
            return self.refuse_depth(wire).await;
        }
        let file = self.storage.open(path).await?;
        let stat = self.storage.stat(&file);
        drop(file);
        let mut listing = match (stat.kind, depth) {
            (Kind::Directory, Depth::One) => Some(self.storage.list(path).await?),
            _ => None,
        };
        let mut buffer = EMPTY_NAME;
        wire.closes |= wire.is_old();
        wire.start(Status::MultiStatus).await?;
        wire.bytes(b"Content-Type: application/xml; charset=utf-8\r\nCache-Control: no-store\r\n")
            .await?;
        wire.body(Length::Unknown).await?;
        wire.bytes(START).await?;
        let folder = Subject {
            folder: path,
            name: "",
            stat: &stat,
            wanted,
            body,
        };
        self.describe(wire, &folder).await?;
        while let Some(listing) = &mut listing
            && let Some(entry) = self.storage.next(listing, &mut buffer).await?
        {
            if is_protected(entry.name) || unavailable(path, &entry).is_some() {
                continue;
            }
            let member = Subject {
                folder: path,
                name: entry.name,
                stat: &entry.stat,
                wanted,
                body,
            };
            self.describe(wire, &member).await?;
        }
        wire.bytes(b"</D:multistatus>\n").await?;
        Ok(wire.finish().await?)
    }

    async fn refuse_depth<C: Read + Write>(&self, wire: &mut Wire<'_, C, T>) -> Result<(), Fault> {
        wire.start(TOO_DEEP.status).await?;
        wire.bytes(b"Content-Type: application/xml; charset=utf-8\r\n")
            .await?;
        wire.body(Length::Known(FINITE_DEPTH.len() as u64)).await?;
        wire.bytes(FINITE_DEPTH.as_bytes()).await?;
        Ok(wire.finish().await?)
    }

    /// Sends the properties of one path: first those that it has, then those that it lacks.
    async fn describe<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        subject: &Subject<'_>,
    ) -> Result<(), Closed> {
        wire.bytes(b"<D:response><D:href>").await?;
        href(wire, subject).await?;
        wire.bytes(b"</D:href>").await?;
        let (mut has_some, mut lacks_some) = (false, bodies::unknown(subject.body, 0).is_some());
        for (property, _) in PROPERTIES {
            let has = self.has(property, subject.stat);
            match subject.wanted {
                Wanted::Values(set) if !set.has(property) => (),
                Wanted::Values(_) if !has => lacks_some = true,
                _ => has_some |= has,
            }
        }
        if has_some || !lacks_some {
            wire.bytes(b"<D:propstat><D:prop>").await?;
            for (property, name) in PROPERTIES {
                if !self.has(property, subject.stat) {
                    continue;
                }
                match subject.wanted {
                    Wanted::Names => wire.text(format_args!("<D:{name}/>")).await?,
                    Wanted::Values(set) if set.has(property) => {
                        self.value(wire, property, subject).await?;
                    }
                    Wanted::Values(_) => (),
                }
            }
            wire.bytes(b"</D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat>")
                .await?;
        }
        if let Wanted::Values(set) = subject.wanted
            && lacks_some
            && set != Properties::ALL
        {
            self.lacking(wire, set, subject).await?;
        }
        wire.bytes(b"</D:response>\n").await
    }

    /// Sends the names of requested properties that a path does not have.
    async fn lacking<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        set: Properties,
        subject: &Subject<'_>,
    ) -> Result<(), Closed> {
        wire.bytes(b"<D:propstat><D:prop>").await?;
        for (property, name) in PROPERTIES {
            if set.has(property) && !self.has(property, subject.stat) {
                wire.text(format_args!("<D:{name}/>")).await?;
            }
        }
        let mut number = 0;
        while let Some(name) = bodies::unknown(subject.body, number) {
            empty_element(wire, &name).await?;
            number += 1;
        }
        wire.bytes(b"</D:prop><D:status>HTTP/1.1 404 Not Found</D:status></D:propstat>")
            .await
    }

    /// Returns true if a path has a property.
    fn has(&self, property: Property, stat: &Stat) -> bool {
        let is_file = stat.kind == Kind::File;
        match property {
            Property::ResourceType | Property::SupportedLock | Property::LockDiscovery => true,
            Property::ContentLength | Property::ContentType | Property::ETag => is_file,
            Property::LastModified => stat.modified_s.is_some(),
            Property::QuotaAvailable | Property::QuotaUsed => {
                !is_file && self.free_and_used_bytes().is_some()
            }
        }
    }

    fn free_and_used_bytes(&self) -> Option<(u64, u64)> {
        let space = self.storage.space()?;
        let free_bytes = space.free_bytes?;
        Some((free_bytes, space.total_bytes.saturating_sub(free_bytes)))
    }

    async fn value<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        property: Property,
        subject: &Subject<'_>,
    ) -> Result<(), Closed> {
        let stat = subject.stat;
        let quota = || self.free_and_used_bytes().unwrap_or_default();
        match property {
            Property::ResourceType => {
                wire.bytes(match stat.kind {
                    Kind::File => b"<D:resourcetype/>",
                    Kind::Directory => {
                        b"<D:resourcetype><D:collection/></D:resourcetype>" as &[u8]
                    }
                })
                .await
            }
            Property::ContentLength => {
                element(wire, property, format_args!("{}", stat.bytes)).await
            }
            Property::ContentType => {
                let name = match subject.name {
                    "" => name(subject.folder),
                    name => name,
                };
                element(wire, property, format_args!("{}", media_type(name))).await
            }
            Property::LastModified => {
                let time = HttpDate(stat.modified_s.unwrap_or_default());
                element(wire, property, format_args!("{time}")).await
            }
            Property::ETag => element(wire, property, format_args!("{}", tag_of(stat))).await,
            Property::SupportedLock => wire.bytes(SUPPORTED_LOCKS).await,
            Property::LockDiscovery => self.discovered(wire, subject).await,
            Property::QuotaAvailable => {
                element(wire, property, format_args!("{}", quota().0)).await
            }
            Property::QuotaUsed => element(wire, property, format_args!("{}", quota().1)).await,
        }
    }

    /// Sends the locks that cover a path.
    async fn discovered<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        subject: &Subject<'_>,
    ) -> Result<(), Closed> {
        wire.bytes(b"<D:lockdiscovery>").await?;
        let mut index = 0;
        while let Some(lock) = self.lock_at(subject.folder, subject.name, index) {
            self.active_lock(wire, &lock, subject.folder, subject.name)
                .await?;
            index += 1;
        }
        wire.bytes(b"</D:lockdiscovery>").await
    }

    /// Sends a lock that covers a member of a folder, or the folder itself if `name` is empty.
    pub(crate) async fn active_lock<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        lock: &Lock,
        folder: &str,
        name: &str,
    ) -> Result<(), Closed> {
        let scope = match lock.scope {
            Scope::Exclusive => "exclusive",
            Scope::Shared => "shared",
        };
        let depth = if lock.is_deep { "infinity" } else { "0" };
        wire.text(format_args!(
            "<D:activelock><D:locktype><D:write/></D:locktype><D:lockscope><D:{scope}/></D:lockscope>\
             <D:depth>{depth}</D:depth><D:timeout>Second-{}</D:timeout>",
            lock.left_s(self.timer.now_ms())
        ))
        .await?;
        wire.fill(|row| self.locks().write_owner(lock, row)).await?;
        wire.text(format_args!(
            "<D:locktoken><D:href>{}</D:href></D:locktoken><D:lockroot><D:href>",
            lock.token()
        ))
        .await?;
        let (bytes, folder_bytes) = (usize::from(lock.path_bytes), folder.len());
        url(wire, folder.get(..bytes).unwrap_or(folder)).await?;
        if bytes > folder_bytes {
            wire.bytes(if folder == "/" { b"" } else { b"/" }).await?;
            url(wire, name).await?;
        }
        wire.bytes(b"</D:href></D:lockroot></D:activelock>").await
    }
}

async fn element<C: Read + Write, T: Timer>(
    wire: &mut Wire<'_, C, T>,
    property: Property,
    value: core::fmt::Arguments<'_>,
) -> Result<(), Closed> {
    let name = PROPERTIES[property as usize].1;
    wire.text(format_args!("<D:{name}>{value}</D:{name}>"))
        .await
}

/// Writes a property without a value.
pub(crate) async fn empty_element<C: Read + Write, T: Timer>(
    wire: &mut Wire<'_, C, T>,
    name: &Name<'_>,
) -> Result<(), Closed> {
    let is_dav = name.space == DAV;
    wire.bytes(if is_dav { b"<D:" } else { b"<" }).await?;
    wire.bytes(name.local.as_bytes()).await?;
    if !is_dav {
        wire.bytes(b" xmlns=\"").await?;
        for (at, part) in name.space.split('"').enumerate() {
            wire.bytes(if at > 0 { b"&quot;" } else { b"" }).await?;
            wire.bytes(part.as_bytes()).await?;
        }
        wire.bytes(b"\"").await?;
    }
    wire.bytes(b"/>").await
}

/// Writes the path of a subject; that of a folder ends with a slash.
async fn href<C: Read + Write, T: Timer>(
    wire: &mut Wire<'_, C, T>,
    subject: &Subject<'_>,
) -> Result<(), Closed> {
    if subject.folder != "/" {
        url(wire, subject.folder).await?;
    }
    if !subject.name.is_empty() {
        wire.bytes(b"/").await?;
        url(wire, subject.name).await?;
    }
    match subject.stat.kind {
        Kind::Directory => wire.bytes(b"/").await,
        Kind::File => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn properties_are_in_the_order_of_their_numbers() {
        for (at, (property, _)) in PROPERTIES.into_iter().enumerate() {
            assert_eq!(property as usize, at);
        }
    }
}
