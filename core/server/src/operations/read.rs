//! Files: whole, in part, or as they grow.

use super::condition::NOT_MET;
use super::list::url;
use crate::head::Head;
use crate::limits::FOLLOW_MS;
use crate::path::{Path, append, name};
use crate::range::{Condition, Selection, evaluate, selection, tag_of};
use crate::route::Reading;
use crate::status::{Closed, Fault, Status};
use crate::text::{HttpDate, media_type};
use crate::wire::{Length, Wire};
use crate::{Error, Instrument, Kind, Server, Stat, Storage, Timer};
use core::future::{Future, poll_fn};
use core::ops::Range;
use core::pin::pin;
use core::task::Poll;
use embedded_io_async::{Read, Write};

impl<S: Storage, I: Instrument, T: Timer> Server<'_, S, I, T> {
    /// Sends a file, the `index.htm` of a folder, or the page of a folder.
    pub(crate) async fn read<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        head: &Head<'_>,
        path: &mut Path,
        reading: &Reading,
    ) -> Result<(), Fault> {
        let Some(mut file) = self.open_file(path).await? else {
            return self.page(wire, path).await;
        };
        if let Some(slice) = &reading.slice {
            return self.slice(wire, &file, path, reading, slice).await;
        }
        if reading.follows {
            return self.follow(wire, &mut file, name(path), reading).await;
        }
        let range = self
            .start_file(wire, head, &file, name(path), reading)
            .await?;
        if let Some(range) = range {
            self.send(wire, &file, range.start, range.end).await?;
        }
        Ok(wire.finish().await?)
    }

    /// Opens a file, or the page of a folder, whose path it returns; `None` if the folder has none.
    async fn open_file(&self, path: &mut Path) -> Result<Option<S::File>, Fault> {
        let file = self.storage.open(path).await?;
        if self.storage.stat(&file).kind == Kind::File {
            return Ok(Some(file));
        }
        // If everybody may upload, such a page could be anybody's, and would hide the list.
        if !self.config.is_read_only && self.config.basic_auth.is_none() {
            return Ok(None);
        }
        let folder_bytes = path.len();
        append(path, INDEX)?;
        match self.storage.open(path).await {
            Ok(index) if self.storage.stat(&index).kind == Kind::File => Ok(Some(index)),
            Ok(_) | Err(Error::NotFound) => {
                path.truncate(folder_bytes);
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Sends the head of a response with a file. Returns the range of bytes to send, or `None` if there are none.
    async fn start_file<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        head: &Head<'_>,
        file: &S::File,
        name: &str,
        reading: &Reading,
    ) -> Result<Option<Range<u64>>, Fault> {
        let stat = self.storage.stat(file);
        let tag = tag_of(&stat);
        let selection = selection(&head.fields, &stat, &tag);
        // A growing file has changed after any date, even in the same second.
        let modified_s = match stat.is_growing {
            true => Some(u64::MAX),
            false => stat.modified_s,
        };
        let condition = evaluate(head, Some(&tag), modified_s)?;
        let started = start_range(wire, condition, &tag, selection, stat.bytes).await?;
        let Some(range) = started else {
            return Ok(None);
        };
        describe(wire, &stat, name, reading.is_download).await?;
        wire.body(Length::Known(range.end - range.start)).await?;
        Ok(Some(range).filter(|_| !wire.is_head()))
    }

    /// Sends bytes of a file.
    pub(crate) async fn send<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        file: &S::File,
        start: u64,
        end: u64,
    ) -> Result<(), Fault> {
        #[cfg(feature = "computer")]
        let start = self.send_direct(wire, file, start, end).await?;
        self.send_pieces(wire, file, start, end).await
    }

    /// Sends all but the last bytes of a range without copying them, as far as the system can; returns the offset of the
    /// rest. The rest is read, because that fails if the file has changed: the client then does not get the last byte.
    #[cfg(feature = "computer")]
    async fn send_direct<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        file: &S::File,
        start: u64,
        end: u64,
    ) -> Result<u64, Fault> {
        let Some(known) = self.storage.as_any(file) else {
            return Ok(start);
        };
        if !wire.is_direct() || end.saturating_sub(start) <= READ_LAST_BYTES {
            return Ok(start);
        }
        wire.flush().await?;
        let (mut offset, end) = (start, end - READ_LAST_BYTES);
        while offset < end {
            let sent = wire.send_file(known, offset, end - offset).await?;
            offset += match sent {
                0 => {
                    let bytes = READ_AHEAD_BYTES.min(end - offset);
                    self.send_pieces(wire, file, offset, offset + bytes).await?;
                    bytes
                }
                sent => sent,
            };
            // Another connection may be waiting.
            yield_once().await;
        }
        Ok(offset)
    }

    /// Sends bytes of a file through buffers. While a piece is sent, the next one is read.
    async fn send_pieces<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        file: &S::File,
        start: u64,
        end: u64,
    ) -> Result<(), Fault> {
        let (mut offset, mut piece) = (start, None);
        loop {
            let left = usize::try_from(end.saturating_sub(offset)).unwrap_or(usize::MAX);
            self.exchange(wire, &mut piece, file, offset, left).await?;
            match &piece {
                _ if left == 0 => return Ok(()),
                Some(next) if next.is_empty() || next.len() > left => {
                    return Err(Error::Changed.into());
                }
                Some(next) => offset += next.len() as u64,
                None => self.storage.locate(file, offset).await?,
            }
        }
    }

    /// Sends a piece of a file while it reads the next one, which replaces it: `None` if its place has to be
    /// looked up.
    async fn exchange<'s, C: Read + Write>(
        &'s self,
        wire: &mut Wire<'_, C, T>,
        piece: &mut Option<S::Bytes<'s>>,
        file: &S::File,
        offset: u64,
        bytes_max: usize,
    ) -> Result<(), Fault> {
        let mut read = pin!(async {
            match bytes_max {
                0 => Ok(None),
                _ => self.storage.read_located(file, offset, bytes_max).await,
            }
        });
        let mut next = None;
        if let Some(piece) = &*piece {
            let mut send = pin!(wire.lend(piece));
            poll_fn(|context| {
                if next.is_none()
                    && let Poll::Ready(read) = read.as_mut().poll(context)
                {
                    next = Some(read);
                }
                send.as_mut().poll(context)
            })
            .await?;
        }
        // The piece goes back to the storage here, so that a storage that has no other buffer can read the next one.
        *piece = None;
        *piece = match next {
            Some(next) => next?,
            None => read.await?,
        };
        Ok(())
    }

    /// Sends a file, and everything that is appended to it until the recorder closes it.
    async fn follow<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        file: &mut S::File,
        name: &str,
        reading: &Reading,
    ) -> Result<(), Fault> {
        let mut stat = self.storage.stat(file);
        if reading.offset > stat.bytes {
            return not_satisfiable(wire, stat.bytes).await;
        }
        wire.closes |= wire.is_old();
        wire.start(Status::Ok).await?;
        describe(wire, &stat, name, reading.is_download).await?;
        wire.body(Length::Unknown).await?;
        let mut sent = reading.offset;
        while !wire.is_head() {
            self.send(wire, file, sent, stat.bytes).await?;
            wire.flush().await?;
            sent = stat.bytes.max(sent);
            if !stat.is_growing {
                break;
            }
            wire.pause(FOLLOW_MS).await?;
            self.storage.refresh(file).await?;
            stat = self.storage.stat(file);
        }
        Ok(wire.finish().await?)
    }
}

/// Sends the head of a response that supports ranges, except for its last fields. Returns the range, or `None` if
/// the response is complete.
pub(crate) async fn start_range<C: Read + Write, T: Timer>(
    wire: &mut Wire<'_, C, T>,
    condition: Condition,
    tag: &str,
    selection: Selection,
    bytes: u64,
) -> Result<Option<Range<u64>>, Fault> {
    match condition {
        Condition::Met => (),
        Condition::NotMet => return Err(NOT_MET.into()),
        Condition::Unchanged => {
            wire.start(Status::NotModified).await?;
            wire.text(format_args!("ETag: {tag}\r\nCache-Control: no-cache\r\n"))
                .await?;
            wire.body(Length::None).await?;
            return Ok(None);
        }
    }
    let range = match selection {
        // Ranges are defined for GET only.
        _ if wire.is_head() => {
            wire.start(Status::Ok).await?;
            0..bytes
        }
        Selection::Nothing => {
            not_satisfiable(wire, bytes).await?;
            return Ok(None);
        }
        Selection::Whole => {
            wire.start(Status::Ok).await?;
            0..bytes
        }
        Selection::Part(start, end) => {
            wire.start(Status::PartialContent).await?;
            let last = end - 1;
            wire.text(format_args!(
                "Content-Range: bytes {start}-{last}/{bytes}\r\n"
            ))
            .await?;
            start..end
        }
    };
    wire.text(format_args!("Accept-Ranges: bytes\r\nETag: {tag}\r\n"))
        .await?;
    Ok(Some(range))
}

/// Last bytes of a range that are read, so that they are checked.
#[cfg(feature = "computer")]
const READ_LAST_BYTES: u64 = 64 << 10;
/// Bytes that are read at a time if the system cannot send them.
#[cfg(feature = "computer")]
const READ_AHEAD_BYTES: u64 = 1 << 20;

/// Lets the executor run other tasks.
#[cfg(feature = "computer")]
async fn yield_once() {
    let mut has_yielded = false;
    poll_fn(|context| match core::mem::replace(&mut has_yielded, true) {
        true => Poll::Ready(()),
        false => {
            context.waker().wake_by_ref();
            Poll::Pending
        }
    })
    .await;
}

/// Page of a folder that replaces the server's own.
const INDEX: &str = "index.htm";

/// Writes the fields that describe a file.
async fn describe<C: Read + Write, T: Timer>(
    wire: &mut Wire<'_, C, T>,
    stat: &Stat,
    name: &str,
    is_download: bool,
) -> Result<(), Closed> {
    let kind = match is_download {
        true => "application/octet-stream",
        false => media_type(name),
    };
    media_fields(wire, kind).await?;
    if let Some(modified_s) = stat.modified_s {
        wire.text(format_args!("Last-Modified: {}\r\n", HttpDate(modified_s)))
            .await?;
    }
    if is_download {
        attachment(wire, name, "").await?;
    }
    Ok(())
}

/// Writes type and policy of a file. A page on the card may be anybody's upload, so it gets no scripts and no access to
/// this server.
pub(crate) async fn media_fields<C: Read + Write, T: Timer>(
    wire: &mut Wire<'_, C, T>,
    kind: &str,
) -> Result<(), Closed> {
    wire.text(format_args!(
        "Content-Type: {kind}\r\nContent-Security-Policy: sandbox\r\nCache-Control: no-cache\r\n"
    ))
    .await
}

/// Writes the field that makes a browser save the response under a name.
pub(crate) async fn attachment<C: Read + Write, T: Timer>(
    wire: &mut Wire<'_, C, T>,
    name: &str,
    extension: &str,
) -> Result<(), Closed> {
    wire.bytes(b"Content-Disposition: attachment; filename*=UTF-8''")
        .await?;
    url(wire, name).await?;
    wire.text(format_args!("{extension}\r\n")).await
}

/// Responds that a range is not in the file.
pub(crate) async fn not_satisfiable<C: Read + Write, T: Timer>(
    wire: &mut Wire<'_, C, T>,
    bytes: u64,
) -> Result<(), Fault> {
    wire.start(Status::RangeNotSatisfiable).await?;
    wire.text(format_args!("Content-Range: bytes */{bytes}\r\n"))
        .await?;
    Ok(wire.short("the range is not in the file").await?)
}
