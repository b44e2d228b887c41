//! Bodies of requests: bytes of known length, or chunks.

use crate::chunk::ChunkLine;
use crate::guard::Content;
use crate::head::Head;
use crate::limits::{FORM_BYTES_MAX, OUT_BYTES};
use crate::path::Query;
use crate::status::{Fault, Refused, Status};
use crate::timer::Timer;
use crate::wire::Wire;
use core::ops::Range;
use embedded_io_async::{Read, Write};

const TOO_LONG_FORM: Refused =
    Refused::new(Status::ContentTooLarge, "the form is longer than 512 bytes");

#[cfg(feature = "webdav")]
const TOO_LONG_TEXT: Refused =
    Refused::new(Status::ContentTooLarge, "the body is longer than 768 bytes");

#[cfg(feature = "webdav")]
const TOO_LONG_WITH_HEAD: Refused = Refused::new(
    Status::ContentTooLarge,
    "head and body together are longer than 1504 bytes",
);

/// Position in a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// Bytes left of a body of known length, or of a chunk.
    Bytes(u64),
    /// The line end after a chunk.
    ChunkEnd,
    /// A chunk's size.
    ChunkHead,
    /// Fields after the last chunk.
    Trailer,
    End,
}

/// The body of a request.
pub(crate) struct Body<'h> {
    /// Buffer after the head; `at..end` was received with the head and has not been used.
    tail: &'h mut [u8],
    at: usize,
    end: usize,
    is_chunked: bool,
    expects_continue: bool,
    part: Part,
}

impl<'h> Body<'h> {
    /// Creates a body whose first bytes, `tail[..end]`, were received with the head. They may reach into the next
    /// request.
    pub(crate) fn new(head: &Head, tail: &'h mut [u8], end: usize) -> Body<'h> {
        let part = match head.content {
            Content::None | Content::Length(0) => Part::End,
            Content::Length(bytes) => Part::Bytes(bytes),
            Content::Chunked => Part::ChunkHead,
        };
        Body {
            tail,
            at: 0,
            end,
            is_chunked: head.content == Content::Chunked,
            expects_continue: head.expects_continue && part != Part::End,
            part,
        }
    }

    /// Returns true if the whole body was read.
    pub(crate) fn is_read(&self) -> bool {
        self.part == Part::End
    }

    /// Returns true if the client waits for permission to send the body.
    pub(crate) fn is_held_back(&self) -> bool {
        self.expects_continue
    }

    /// Returns the number of bytes of the body that have not been received yet, at most; bodies in chunks have no limit.
    pub(crate) fn missing_bytes(&self) -> u64 {
        match self.part {
            Part::End => 0,
            Part::Bytes(left) if !self.is_chunked => {
                left.saturating_sub((self.end - self.at) as u64)
            }
            _ => u64::MAX,
        }
    }

    /// Returns the range of bytes in the tail of the buffer that were received after the body.
    pub(crate) fn rest(&self) -> Range<usize> {
        self.at..self.end
    }

    /// Reads bytes into the output buffer from `from` on; 0 at the end of the body.
    pub(crate) async fn read<C: Read + Write, T: Timer>(
        &mut self,
        wire: &mut Wire<'_, C, T>,
        from: usize,
    ) -> Result<usize, Fault> {
        if self.expects_continue {
            self.expects_continue = false;
            wire.send_continue().await?;
        }
        loop {
            let left = match self.part {
                Part::End => return Ok(0),
                Part::Bytes(left) => left,
                _ => {
                    self.frame(wire).await?;
                    continue;
                }
            };
            let room = (OUT_BYTES - from).min(usize::try_from(left).unwrap_or(usize::MAX));
            let ahead = &self.tail[self.at..self.end];
            let read = if ahead.is_empty() {
                match wire.receive_out(from, from + room).await? {
                    0 => return Err(Fault::Closed),
                    read => read,
                }
            } else {
                let count = ahead.len().min(room);
                wire.out[from..][..count].copy_from_slice(&ahead[..count]);
                self.at += count;
                count
            };
            wire.note_received(read);
            self.part = match left - read as u64 {
                0 if self.is_chunked => Part::ChunkEnd,
                0 => Part::End,
                left => Part::Bytes(left),
            };
            self.note_end(wire);
            return Ok(read);
        }
    }

    /// Reads a short form into the output buffer and returns it.
    pub(crate) async fn form<'o, C: Read + Write, T: Timer>(
        &mut self,
        wire: &'o mut Wire<'_, C, T>,
    ) -> Result<Query<'o>, Fault> {
        let mut len = 0;
        loop {
            match self.read(wire, len).await? {
                0 => break,
                read => len += read,
            }
            if len > FORM_BYTES_MAX {
                return Err(TOO_LONG_FORM.into());
            }
        }
        let text = str::from_utf8(&wire.out[..len]);
        let text = text.map_err(|_| Refused::bad("the form is not UTF-8"))?;
        Ok(Query(text.trim_ascii_end()))
    }

    /// Reads a text into the output buffer and returns it.
    #[cfg(feature = "webdav")]
    pub(crate) async fn text<'o, C: Read + Write, T: Timer>(
        &mut self,
        wire: &'o mut Wire<'_, C, T>,
    ) -> Result<&'o str, Fault> {
        let mut len = 0;
        loop {
            if len == OUT_BYTES && !self.is_read() {
                return Err(TOO_LONG_TEXT.into());
            }
            match self.read(wire, len).await? {
                0 => break,
                read => len += read,
            }
        }
        let text = str::from_utf8(&wire.out[..len]);
        Ok(text.map_err(|_| Refused::bad("the body is not UTF-8"))?)
    }

    /// Reads a text into the buffer after the head, where it remains during the response; returns it.
    #[cfg(feature = "webdav")]
    pub(crate) async fn kept_text<C: Read + Write, T: Timer>(
        &mut self,
        wire: &mut Wire<'_, C, T>,
    ) -> Result<&str, Fault> {
        let bytes = self.text(wire).await?.len();
        if self.at == self.end {
            (self.at, self.end) = (0, 0);
        }
        let kept = self.tail.get_mut(self.end..self.end + bytes);
        let kept = kept.ok_or(TOO_LONG_WITH_HEAD)?;
        kept.copy_from_slice(&wire.out[..bytes]);
        str::from_utf8(kept).map_err(|_| Fault::Closed)
    }

    fn note_end<C: Read + Write, T: Timer>(&self, wire: &mut Wire<'_, C, T>) {
        if self.is_read() {
            wire.note_body();
        }
    }

    /// Reads past the framing between two chunks.
    async fn frame<C: Read + Write, T: Timer>(
        &mut self,
        wire: &mut Wire<'_, C, T>,
    ) -> Result<(), Fault> {
        const BAD: Fault = Fault::Refused(Refused::bad("the chunks of the body are damaged"));
        let mut line = ChunkLine::default();
        while !line.push(self.byte(wire).await?).ok_or(BAD)? {}
        self.part = match self.part {
            Part::ChunkEnd if line.len == 0 => Part::ChunkHead,
            Part::ChunkHead => match line.size().ok_or(BAD)? {
                0 => Part::Trailer,
                size => Part::Bytes(size),
            },
            Part::Trailer if line.len == 0 => Part::End,
            Part::Trailer => Part::Trailer,
            _ => return Err(BAD),
        };
        self.note_end(wire);
        Ok(())
    }

    async fn byte<C: Read + Write, T: Timer>(
        &mut self,
        wire: &mut Wire<'_, C, T>,
    ) -> Result<u8, Fault> {
        if self.at == self.end {
            (self.at, self.end) = (0, 0);
            self.end = match wire.receive(self.tail).await? {
                0 => return Err(Fault::Closed),
                read => read,
            };
        }
        let byte = self.tail[self.at];
        self.at += 1;
        Ok(byte)
    }
}
