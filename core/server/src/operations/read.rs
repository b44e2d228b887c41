//! Files: whole, in part, or as they grow.

use crate::head::Head;
use crate::limits::FOLLOW_MS;
use crate::path::{join, name};
use crate::range::{Selection, is_unchanged, selection, tag_of};
use crate::route::Reading;
use crate::status::{Closed, Fault, Status};
use crate::text::{HttpDate, Url, media_type};
use crate::wire::{Length, Wire};
use crate::{Error, Instrument, Kind, Server, Stat, Storage, Timer};
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;
use embedded_io_async::{Read, Write};

impl<S: Storage, I: Instrument, T: Timer> Server<'_, S, I, T> {
    /// Sends a file, the `index.htm` of a folder, or the page of a folder.
    pub(crate) async fn read<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        head: &Head<'_>,
        path: &str,
        reading: &Reading,
    ) -> Result<(), Fault> {
        let mut file = self.storage.open(path).await?;
        let mut name = name(path);
        if self.storage.stat(&file).kind == Kind::Directory {
            name = INDEX;
            let index = join(path, INDEX).ok_or(Error::TooLong)?;
            file = match self.storage.open(&index).await {
                Ok(index) if self.storage.stat(&index).kind == Kind::File => index,
                Ok(_) | Err(Error::NotFound) => return self.page(wire, path).await,
                Err(error) => return Err(error.into()),
            };
        }
        if reading.follows {
            return self.follow(wire, &mut file, name, reading).await;
        }
        let stat = self.storage.stat(&file);
        let tag = tag_of(&stat);
        if is_unchanged(&head.fields, &tag) {
            wire.start(Status::NotModified).await?;
            wire.text(format_args!("ETag: {tag}\r\n")).await?;
            wire.body(Length::None).await?;
            return Ok(wire.finish().await?);
        }
        let (start, end) = match selection(&head.fields, &stat, &tag) {
            Selection::Nothing => return not_satisfiable(wire, stat.bytes).await,
            Selection::Whole => {
                wire.start(Status::Ok).await?;
                (0, stat.bytes)
            }
            Selection::Part(start, end) => {
                wire.start(Status::PartialContent).await?;
                let (last, bytes) = (end - 1, stat.bytes);
                wire.text(format_args!(
                    "Content-Range: bytes {start}-{last}/{bytes}\r\n"
                ))
                .await?;
                (start, end)
            }
        };
        wire.text(format_args!("Accept-Ranges: bytes\r\nETag: {tag}\r\n"))
            .await?;
        describe(wire, &stat, name, reading.is_download).await?;
        wire.body(Length::Known(end - start)).await?;
        if !wire.is_head() {
            self.send(wire, &file, start, end).await?;
        }
        Ok(wire.finish().await?)
    }

    /// Sends bytes of a file. While a piece is sent, the next one is read.
    pub(crate) async fn send<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        file: &S::File,
        start: u64,
        end: u64,
    ) -> Result<(), Fault> {
        let mut offset = start;
        let mut piece = None;
        loop {
            offset += piece
                .as_ref()
                .map_or(0, |piece: &S::Bytes<'_>| piece.len() as u64);
            if offset >= end {
                break;
            }
            let bytes_max = usize::try_from(end - offset).unwrap_or(usize::MAX);
            let mut read = pin!(self.storage.read(file, offset, bytes_max));
            let mut ahead = None;
            if let Some(piece) = piece.take() {
                let mut send = pin!(wire.lend(&piece));
                poll_fn(|context| {
                    if ahead.is_none()
                        && let Poll::Ready(read) = read.as_mut().poll(context)
                    {
                        ahead = Some(read);
                    }
                    send.as_mut().poll(context)
                })
                .await?;
                // The piece goes back to the storage here, so that a storage that has no other buffer can read
                // the next one.
            }
            let next = match ahead {
                Some(next) => next?,
                None => read.await?,
            };
            if next.is_empty() || next.len() > bytes_max {
                return Err(Error::Changed.into());
            }
            piece = Some(next);
        }
        match piece {
            Some(piece) => Ok(wire.lend(&piece).await?),
            None => Ok(()),
        }
    }

    /// Sends a file, and what is appended to it until the recorder closes it.
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
    // A page on the card is somebody's upload: it gets no scripts and no access to this server.
    wire.text(format_args!(
        "Content-Type: {kind}\r\nContent-Security-Policy: sandbox\r\nCache-Control: no-cache\r\n"
    ))
    .await?;
    if let Some(modified_s) = stat.modified_s {
        wire.text(format_args!("Last-Modified: {}\r\n", HttpDate(modified_s)))
            .await?;
    }
    if is_download {
        attachment(wire, name, "").await?;
    }
    Ok(())
}

/// Writes the field that makes a browser save the answer under a name.
pub(crate) async fn attachment<C: Read + Write, T: Timer>(
    wire: &mut Wire<'_, C, T>,
    name: &str,
    extension: &str,
) -> Result<(), Closed> {
    wire.text(format_args!(
        "Content-Disposition: attachment; filename*=UTF-8''{}{extension}\r\n",
        Url(name)
    ))
    .await
}

/// Answers that a range is not in the file.
pub(crate) async fn not_satisfiable<C: Read + Write, T: Timer>(
    wire: &mut Wire<'_, C, T>,
    bytes: u64,
) -> Result<(), Fault> {
    wire.start(Status::RangeNotSatisfiable).await?;
    wire.text(format_args!("Content-Range: bytes */{bytes}\r\n"))
        .await?;
    Ok(wire.short("the range is not in the file").await?)
}
