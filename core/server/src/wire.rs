//! A connection: heads and bodies in, framed answers out, with a limit for slow clients.

use crate::ROW_BYTES_MAX;
use crate::chunk::ChunkLine;
use crate::guard::Content;
use crate::head::{self, Head, Scan};
use crate::limits::{
    FORM_BYTES_MAX, HEAD_BYTES_MAX, HEAD_MS, IDLE_MS, OUT_BYTES, RETRY_AFTER_S, SLOW_BYTES_MIN,
    SLOW_MS, TAIL_BYTES_MIN,
};
use crate::path::Query;
use crate::server::{Counters, METHODS, add};
use crate::status::{Closed, Fault, Refused, Status};
use crate::timer::{Timer, within};
use core::fmt::{self, Write as _};
use core::ops::Range;
use core::pin::pin;
use embedded_io_async::{Read, Write};

/// Room for a chunk's size ahead of its bytes: three digits and a line end.
const CHUNK_HEAD_BYTES: usize = 5;
const _: () = assert!(OUT_BYTES < 1 << 12);
/// Longest line of an event: prefix, number, values and line end.
const LINE_BYTES_MAX: usize = 32 + ROW_BYTES_MAX;
const LINE_END: &[u8; 2] = b"\r\n";

/// Framing of the bytes in the output buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    /// Bytes are sent as they are.
    Plain,
    /// Bytes become a chunk.
    Chunked,
    /// Bytes are dropped: the answer to HEAD.
    Silent,
}

/// Length of an answer's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    /// Known beforehand.
    Known(u64),
    /// Known at its end.
    Unknown,
    /// An answer that never has a body, such as 304.
    None,
}

/// One side of a connection, for one request.
pub(crate) struct Wire<'c, C, T> {
    socket: &'c mut C,
    pub(crate) timer: &'c T,
    /// Buffer for generated text; before the answer, operations use it for the request's body.
    pub(crate) out: &'c mut [u8; OUT_BYTES],
    /// Bytes of the buffer in use, with the room for a chunk's size.
    len: usize,
    framing: Framing,
    counters: &'c Counters,
    pace: Pace,
    /// The answer to HTTP/1.0 cannot be chunked.
    minor: u8,
    is_head: bool,
    /// The connection ends with this answer.
    pub(crate) closes: bool,
    /// The same, once the body was read.
    closes_after_body: bool,
    /// The head of the answer was begun: no other answer is possible.
    pub(crate) has_begun: bool,
}

/// Progress of the other side while this side waited for it.
#[derive(Clone, Copy, Default)]
struct Pace {
    waited_ms: u64,
    bytes: u64,
}

impl Pace {
    /// Returns an error if the other side is too slow.
    fn note(&mut self, waited_ms: u64, bytes: usize) -> Result<(), Closed> {
        self.waited_ms += waited_ms;
        self.bytes += bytes as u64;
        if self.waited_ms < SLOW_MS {
            return Ok(());
        }
        let is_slow = self.bytes < SLOW_BYTES_MIN;
        *self = Pace::default();
        if is_slow { Err(Closed) } else { Ok(()) }
    }

    fn left_ms(&self) -> u32 {
        SLOW_MS.saturating_sub(self.waited_ms).max(1) as u32
    }
}

/// Result of waiting for a head.
pub(crate) enum Received {
    /// The buffer begins with a head of this many bytes.
    Head(usize),
    /// The client closed the connection, or sent nothing for too long.
    Closed,
    /// The bytes are not a head.
    Refused(Refused),
}

impl<'c, C: Read + Write, T: Timer> Wire<'c, C, T> {
    pub(crate) fn new(
        socket: &'c mut C,
        timer: &'c T,
        out: &'c mut [u8; OUT_BYTES],
        counters: &'c Counters,
    ) -> Self {
        Wire {
            socket,
            timer,
            out,
            len: 0,
            framing: Framing::Plain,
            counters,
            pace: Pace::default(),
            minor: 1,
            is_head: false,
            closes: true,
            closes_after_body: true,
            has_begun: false,
        }
    }

    /// Takes the properties of the answer from the request. An answer that is sent before the body was read ends
    /// the connection.
    pub(crate) fn answer_to(&mut self, head: &Head, body: &Body) {
        self.minor = head.minor;
        self.is_head = head.method == head::Method::Head;
        self.closes_after_body = head.closes;
        self.closes = head.closes || !body.is_read();
    }

    /// Returns true if the body of the answer is not sent.
    pub(crate) fn is_head(&self) -> bool {
        self.is_head
    }

    /// Returns true if the client knows no chunks, so that an answer of unknown length ends the connection.
    pub(crate) fn is_old(&self) -> bool {
        self.minor == 0
    }

    /// Begins an answer in JSON of unknown length.
    pub(crate) async fn start_json(&mut self) -> Result<(), Closed> {
        self.closes |= self.is_old();
        self.start(Status::Ok).await?;
        self.text(format_args!(
            "Content-Type: application/json\r\nCache-Control: no-store\r\n"
        ))
        .await?;
        self.body(Length::Unknown).await
    }

    /// Receives bytes until the buffer, of which `filled` bytes are in use, begins with a whole head.
    pub(crate) async fn receive_head(
        &mut self,
        bytes: &mut [u8; HEAD_BYTES_MAX],
        filled: &mut usize,
        is_first: bool,
    ) -> Received {
        let mut start_ms = self.timer.now_ms();
        let mut has_bytes = *filled > 0;
        loop {
            match head::scan(&bytes[..*filled]) {
                Scan::Bad(refused) => return Received::Refused(refused),
                Scan::Whole(len) if len <= HEAD_BYTES_MAX - TAIL_BYTES_MIN => {
                    return Received::Head(len);
                }
                Scan::Part if *filled < HEAD_BYTES_MAX - TAIL_BYTES_MIN => (),
                _ => return Received::Refused(TOO_LARGE),
            }
            let limit_ms = match has_bytes || is_first {
                true => HEAD_MS,
                false => IDLE_MS,
            };
            let waited_ms = self.timer.now_ms().saturating_sub(start_ms);
            let left_ms = limit_ms.saturating_sub(waited_ms) as u32;
            // Bytes past the largest head belong to a head that is refused anyway.
            let room = &mut bytes[*filled..HEAD_BYTES_MAX - TAIL_BYTES_MIN];
            match within(self.timer, left_ms, pin!(self.socket.read(room))).await {
                Some(Ok(0) | Err(_)) => return Received::Closed,
                Some(Ok(more)) => *filled += more,
                None if has_bytes => return Received::Refused(TOO_LATE),
                None => return Received::Closed,
            }
            if !has_bytes {
                has_bytes = true;
                start_ms = match is_first {
                    true => start_ms,
                    false => self.timer.now_ms(),
                };
            }
        }
    }

    /// Receives bytes of a body; 0 at the end of the connection.
    pub(crate) async fn receive(&mut self, bytes: &mut [u8]) -> Result<usize, Closed> {
        receive(self.socket, self.timer, &mut self.pace, bytes).await
    }

    /// Receives bytes of a body into the output buffer, from `from` to at most `to`.
    pub(crate) async fn receive_out(&mut self, from: usize, to: usize) -> Result<usize, Closed> {
        let room = self.out.get_mut(from..to).ok_or(Closed)?;
        receive(self.socket, self.timer, &mut self.pace, room).await
    }

    /// Waits, or fails as soon as the client closes the connection.
    pub(crate) async fn pause(&mut self, ms: u32) -> Result<(), Closed> {
        let mut byte = [0];
        match within(self.timer, ms, pin!(self.socket.read(&mut byte))).await {
            None => Ok(()),
            Some(Ok(0) | Err(_)) => Err(Closed),
            // The byte of a next request is lost with it: the connection has to end.
            Some(Ok(_)) => {
                self.closes = true;
                self.timer.sleep_ms(ms).await;
                Ok(())
            }
        }
    }

    /// Begins an answer: status line and the fields that all answers have.
    pub(crate) async fn start(&mut self, status: Status) -> Result<(), Closed> {
        (self.len, self.framing, self.has_begun) = (0, Framing::Plain, true);
        let (code, phrase) = (status.code(), status.phrase());
        self.text(format_args!("HTTP/1.1 {code} {phrase}\r\n"))
            .await?;
        self.text(format_args!("X-Content-Type-Options: nosniff\r\n"))
            .await?;
        match (self.closes, self.minor) {
            (true, _) => self.text(format_args!("Connection: close\r\n")).await,
            (false, 0) => self.text(format_args!("Connection: keep-alive\r\n")).await,
            _ => Ok(()),
        }
    }

    /// Ends the head of an answer.
    pub(crate) async fn body(&mut self, length: Length) -> Result<(), Closed> {
        match length {
            Length::Known(bytes) => {
                self.text(format_args!("Content-Length: {bytes}\r\n\r\n"))
                    .await?;
            }
            Length::Unknown if self.minor > 0 => {
                self.text(format_args!("Transfer-Encoding: chunked\r\n\r\n"))
                    .await?;
            }
            Length::Unknown if !self.closes => return Err(Closed),
            _ => self.text(format_args!("\r\n")).await?,
        }
        if self.is_head || length == Length::None {
            self.flush().await?;
            self.framing = Framing::Silent;
        } else if length == Length::Unknown && self.minor > 0 {
            self.flush().await?;
            self.framing = Framing::Chunked;
            self.len = CHUNK_HEAD_BYTES;
        }
        Ok(())
    }

    /// Adds formatted text to the answer; it has to fit into the buffer.
    pub(crate) async fn text(&mut self, text: fmt::Arguments<'_>) -> Result<(), Closed> {
        if self.try_text(text).is_err() {
            self.flush().await?;
            self.try_text(text).map_err(|_| Closed)?;
        }
        Ok(())
    }

    fn try_text(&mut self, text: fmt::Arguments<'_>) -> fmt::Result {
        if self.framing == Framing::Silent {
            return Ok(());
        }
        let end = self.end();
        let mut room = Room {
            bytes: &mut self.out[self.len..end],
            len: 0,
        };
        room.write_fmt(text)?;
        self.len += room.len;
        Ok(())
    }

    /// Adds bytes to the answer.
    pub(crate) async fn bytes(&mut self, mut bytes: &[u8]) -> Result<(), Closed> {
        while !bytes.is_empty() && self.framing != Framing::Silent {
            let room = self.end() - self.len;
            if room == 0 {
                self.flush().await?;
                continue;
            }
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.out[self.len..][..now.len()].copy_from_slice(now);
            self.len += now.len();
            bytes = later;
        }
        Ok(())
    }

    /// Adds a line: a prefix, and what `fill` writes and returns the length of. Returns false and adds nothing if
    /// `fill` returns `None`.
    pub(crate) async fn line(
        &mut self,
        prefix: fmt::Arguments<'_>,
        fill: impl FnOnce(&mut [u8; ROW_BYTES_MAX]) -> Option<usize>,
    ) -> Result<bool, Closed> {
        if self.end() - self.len < LINE_BYTES_MAX {
            self.flush().await?;
        }
        let start = self.len;
        self.try_text(prefix).map_err(|_| Closed)?;
        let room = self
            .out
            .get_mut(self.len..)
            .and_then(|room| room.first_chunk_mut());
        match fill(room.ok_or(Closed)?) {
            Some(bytes) => {
                self.len += bytes.min(ROW_BYTES_MAX);
                self.bytes(b"\n").await?;
                Ok(true)
            }
            None => {
                self.len = start;
                Ok(false)
            }
        }
    }

    /// Adds text that `fill` writes and returns the length of.
    pub(crate) async fn fill(
        &mut self,
        fill: impl FnOnce(&mut [u8; ROW_BYTES_MAX]) -> usize,
    ) -> Result<(), Closed> {
        if self.end() - self.len < ROW_BYTES_MAX {
            self.flush().await?;
        }
        let room = self
            .out
            .get_mut(self.len..)
            .and_then(|room| room.first_chunk_mut());
        self.len += fill(room.ok_or(Closed)?).min(ROW_BYTES_MAX);
        Ok(())
    }

    /// Adds a part of a block of 512 bytes, which `fill` writes directly to the buffer.
    pub(crate) async fn block(
        &mut self,
        part: Range<usize>,
        fill: impl FnOnce(&mut [u8; 512]),
    ) -> Result<(), Closed> {
        if part.is_empty() || self.framing == Framing::Silent {
            return Ok(());
        }
        if self.end() - self.len < 512 {
            self.flush().await?;
        }
        let block = self
            .out
            .get_mut(self.len..)
            .and_then(|room| room.first_chunk_mut());
        fill(block.ok_or(Closed)?);
        let bytes = part.len();
        self.out
            .copy_within(self.len + part.start..self.len + part.end, self.len);
        self.len += bytes;
        Ok(())
    }

    /// Sends bytes from where they are, after those in the buffer.
    pub(crate) async fn lend(&mut self, bytes: &[u8]) -> Result<(), Closed> {
        if bytes.is_empty() || self.framing == Framing::Silent {
            return Ok(());
        }
        // A small file travels with its head.
        if bytes.len() <= self.end() - self.len {
            return self.bytes(bytes).await;
        }
        if self.framing == Framing::Plain {
            self.flush().await?;
            return self.send(bytes).await;
        }
        self.flush().await?;
        let mut size = heapless::String::<18>::new();
        write!(size, "{:X}\r\n", bytes.len()).map_err(|_| Closed)?;
        self.send(size.as_bytes()).await?;
        self.send(bytes).await?;
        self.send(LINE_END).await
    }

    /// Returns the end of the room for text.
    fn end(&self) -> usize {
        match self.framing {
            Framing::Chunked => OUT_BYTES - LINE_END.len(),
            _ => OUT_BYTES,
        }
    }

    /// Sends the text in the buffer.
    pub(crate) async fn flush(&mut self) -> Result<(), Closed> {
        let (mut start, mut end) = (0, self.len);
        if self.framing == Framing::Chunked {
            let bytes = self.len - CHUNK_HEAD_BYTES;
            if bytes == 0 {
                return Ok(());
            }
            let mut size = heapless::String::<CHUNK_HEAD_BYTES>::new();
            write!(size, "{bytes:X}\r\n").map_err(|_| Closed)?;
            start = CHUNK_HEAD_BYTES - size.len();
            self.out[start..CHUNK_HEAD_BYTES].copy_from_slice(size.as_bytes());
            self.out[end..][..LINE_END.len()].copy_from_slice(LINE_END);
            end += LINE_END.len();
            self.len = CHUNK_HEAD_BYTES;
        } else {
            self.len = 0;
        }
        let text = &self.out[start..end];
        let result = send(self.socket, self.timer, &mut self.pace, text).await;
        add(&self.counters.sent_bytes, text.len() as u64);
        result
    }

    async fn send(&mut self, bytes: &[u8]) -> Result<(), Closed> {
        let result = send(self.socket, self.timer, &mut self.pace, bytes).await;
        add(&self.counters.sent_bytes, bytes.len() as u64);
        result
    }

    /// Ends an answer.
    pub(crate) async fn finish(&mut self) -> Result<(), Closed> {
        self.flush().await?;
        if self.framing == Framing::Chunked {
            self.send(b"0\r\n\r\n").await?;
        }
        self.framing = Framing::Plain;
        self.len = 0;
        // A connection that does not flush would keep the client waiting.
        match self.socket.flush().await {
            Ok(()) => Ok(()),
            Err(_) => Err(Closed),
        }
    }

    /// Answers that the body may come.
    pub(crate) async fn send_continue(&mut self) -> Result<(), Closed> {
        self.send(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        self.socket.flush().await.map_err(|_| Closed)
    }

    /// Answers with a short text, or ends the connection if another answer was begun.
    pub(crate) async fn refuse(&mut self, refused: &Refused) -> Result<(), Closed> {
        if self.has_begun {
            return Err(Closed);
        }
        add(&self.counters.refused, 1);
        self.start(refused.status).await?;
        match refused.status {
            Status::Unauthorized => {
                self.text(format_args!(
                    "WWW-Authenticate: Basic realm=\"cardiograph\", charset=\"UTF-8\"\r\n"
                ))
                .await?;
            }
            Status::ServiceUnavailable => {
                self.text(format_args!("Retry-After: {RETRY_AFTER_S}\r\n"))
                    .await?;
            }
            Status::MethodNotAllowed => {
                self.text(format_args!("Allow: {METHODS}\r\n")).await?;
            }
            _ => (),
        }
        self.short(refused.reason).await
    }

    /// Ends an answer with one line of text.
    pub(crate) async fn short(&mut self, line: &str) -> Result<(), Closed> {
        self.text(format_args!("Content-Type: text/plain; charset=utf-8\r\n"))
            .await?;
        self.body(Length::Known(line.len() as u64 + 1)).await?;
        self.bytes(line.as_bytes()).await?;
        self.bytes(b"\n").await?;
        self.finish().await
    }

    /// Reads and drops bytes for a moment, so that a client that is still sending receives its answer.
    pub(crate) async fn drain(&mut self, bytes_max: u64, ms: u32) {
        let (start_ms, mut bytes) = (self.timer.now_ms(), 0);
        while bytes < bytes_max {
            let waited_ms = self.timer.now_ms().saturating_sub(start_ms);
            let left_ms = u64::from(ms).saturating_sub(waited_ms) as u32;
            let read = pin!(self.socket.read(&mut self.out[..]));
            match within(self.timer, left_ms, read).await {
                Some(Ok(more)) if more > 0 => bytes += more as u64,
                _ => return,
            }
        }
    }

    /// Notes received bytes of a body.
    pub(crate) fn note_received(&self, bytes: usize) {
        add(&self.counters.received_bytes, bytes as u64);
    }
}

async fn receive<C: Read, T: Timer>(
    socket: &mut C,
    timer: &T,
    pace: &mut Pace,
    bytes: &mut [u8],
) -> Result<usize, Closed> {
    loop {
        let start_ms = timer.now_ms();
        let read = within(timer, pace.left_ms(), pin!(socket.read(bytes))).await;
        let waited_ms = timer.now_ms().saturating_sub(start_ms);
        match read {
            Some(Ok(read)) => {
                pace.note(waited_ms, read)?;
                return Ok(read);
            }
            Some(Err(_)) => return Err(Closed),
            None => pace.note(waited_ms.max(1), 0)?,
        }
    }
}

async fn send<C: Write, T: Timer>(
    socket: &mut C,
    timer: &T,
    pace: &mut Pace,
    mut bytes: &[u8],
) -> Result<(), Closed> {
    while !bytes.is_empty() {
        let start_ms = timer.now_ms();
        let sent = match within(timer, pace.left_ms(), pin!(socket.write(bytes))).await {
            Some(Ok(0) | Err(_)) => return Err(Closed),
            Some(Ok(sent)) => sent,
            None => 0,
        };
        pace.note(timer.now_ms().saturating_sub(start_ms), sent)?;
        bytes = &bytes[sent.min(bytes.len())..];
    }
    Ok(())
}

/// Free bytes of a buffer.
struct Room<'a> {
    bytes: &'a mut [u8],
    len: usize,
}

impl fmt::Write for Room<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes.get_mut(self.len..).ok_or(fmt::Error)?;
        let room = room.get_mut(..text.len()).ok_or(fmt::Error)?;
        room.copy_from_slice(text.as_bytes());
        self.len += text.len();
        Ok(())
    }
}

const TOO_LARGE: Refused = Refused::new(
    Status::RequestHeadTooLarge,
    "the request head is longer than 1472 bytes",
);
const TOO_LATE: Refused = Refused::new(
    Status::RequestTimeout,
    "the request head was not complete in time",
);

const TOO_LONG_FORM: Refused =
    Refused::new(Status::ContentTooLarge, "the form is longer than 512 bytes");

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
    /// The end.
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

    fn note_end<C, T>(&self, wire: &mut Wire<'_, C, T>) {
        if self.is_read() {
            wire.closes = wire.closes_after_body;
        }
    }

    /// Passes the framing between two chunks.
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
