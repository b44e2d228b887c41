//! A connection: heads and bodies in, framed responses out, with a limit for slow clients.

use crate::ROW_BYTES_MAX;
use crate::body::Body;
#[cfg(feature = "computer")]
use crate::direct::{Direct, Sent};
use crate::head::{self, Head, Scan};
use crate::limits::{
    HEAD_BYTES_MAX, HEAD_MS, IDLE_MS, OUT_BYTES, RETRY_AFTER_S, SLOW_BYTES_MIN, SLOW_MS,
    TAIL_BYTES_MIN,
};
use crate::server::{Counters, METHODS, add};
use crate::status::{Closed, Refused, Status};
use crate::timer::{Timer, within};
#[cfg(feature = "computer")]
use core::any::Any;
use core::fmt::{self, Write as _};
#[cfg(feature = "computer")]
use core::future::poll_fn;
use core::ops::Range;
use core::pin::pin;
use embedded_io_async::{Read, Write};

/// Room for a chunk's size ahead of its bytes: three digits and a line end.
const CHUNK_HEAD_BYTES: usize = 5;
const _: () = assert!(OUT_BYTES < 1 << 12);
/// Longest line of an event: prefix, number, values and line end.
const LINE_BYTES_MAX: usize = 32 + ROW_BYTES_MAX;
/// Interval at which sending a file is tried again: a system may report room only after a large part of its buffer has
/// drained.
#[cfg(feature = "computer")]
const FILE_RETRY_MS: u32 = 250;
const LINE_END: &[u8; 2] = b"\r\n";
const LAST_CHUNK: &[u8; 5] = b"0\r\n\r\n";

/// Framing of the bytes in the output buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    /// Bytes are sent as they are.
    Plain,
    /// Bytes become a chunk, whose size is at this offset; the head of the response may be ahead of it.
    Chunked { at: u16 },
    /// Bytes are dropped: the response to HEAD.
    Silent,
}

/// Length of a response's body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    /// Known beforehand.
    Known(u64),
    /// Known at its end.
    Unknown,
    /// A response that never has a body, such as 304.
    None,
}

/// One side of a connection, for one request.
pub(crate) struct Wire<'c, C, T> {
    socket: &'c mut C,
    pub(crate) timer: &'c T,
    /// Buffer for generated text; before the response, operations use it for the request's body.
    pub(crate) out: &'c mut [u8; OUT_BYTES],
    /// Bytes of the buffer in use, with the room for a chunk's size.
    len: usize,
    framing: Framing,
    counters: &'c Counters,
    pace: Pace,
    /// Minor version of HTTP/1: a response to HTTP/1.0 cannot be chunked.
    minor: u8,
    is_head: bool,
    /// The connection ends with this response.
    pub(crate) closes: bool,
    /// Value of `closes` once the body has been read.
    closes_after_body: bool,
    /// A part of the response was sent: no other response is possible.
    has_sent: bool,
    /// The same socket, if it sends files without copying them.
    #[cfg(feature = "computer")]
    direct: Option<&'c dyn Direct>,
}

/// Progress of the other side while this side waited for it.
#[derive(Clone, Copy, Default)]
struct Pace {
    waited_ms: u32,
    /// Time waited since the last byte, in ms.
    idle_ms: u32,
    bytes: u32,
}

impl Pace {
    /// Returns an error if the other side transfers too little in a period, or nothing.
    fn note(&mut self, waited_ms: u64, bytes: usize, period_ms: u32) -> Result<(), Closed> {
        let waited_ms = u32::try_from(waited_ms).unwrap_or(u32::MAX);
        self.waited_ms = self.waited_ms.saturating_add(waited_ms);
        self.bytes = self
            .bytes
            .saturating_add(u32::try_from(bytes).unwrap_or(u32::MAX));
        self.idle_ms = match bytes {
            0 => self.idle_ms.saturating_add(waited_ms),
            _ => 0,
        };
        if self.idle_ms >= period_ms {
            return Err(Closed);
        }
        if self.waited_ms < period_ms {
            return Ok(());
        }
        let is_slow = self.bytes < SLOW_BYTES_MIN;
        (self.waited_ms, self.bytes) = (0, 0);
        if is_slow { Err(Closed) } else { Ok(()) }
    }

    fn left_ms(&self, period_ms: u32) -> u32 {
        let waited_ms = self.waited_ms.max(self.idle_ms);
        period_ms.saturating_sub(waited_ms).max(1)
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
            has_sent: false,
            #[cfg(feature = "computer")]
            direct: None,
        }
    }

    /// Sets the same socket as one that sends files without copying them.
    #[cfg(feature = "computer")]
    pub(crate) fn set_direct(&mut self, direct: Option<&'c dyn Direct>) {
        self.direct = direct;
    }

    /// Returns true if files can be sent without copying them, because nothing is between their bytes.
    #[cfg(feature = "computer")]
    pub(crate) fn is_direct(&self) -> bool {
        self.direct.is_some() && self.framing == Framing::Plain
    }

    /// Sends a part of a file without copying it; returns its length, which is 0 if these bytes have to be read.
    #[cfg(feature = "computer")]
    pub(crate) async fn send_file(
        &mut self,
        file: &dyn Any,
        offset: u64,
        bytes: u64,
    ) -> Result<u64, Closed> {
        let direct = self.direct.ok_or(Closed)?;
        let period_ms = self.timer.patience_ms();
        loop {
            let sent = match direct.send_file(file, offset, bytes) {
                Sent::Unsupported => return Ok(0),
                Sent::Bytes(sent) => sent,
                Sent::Blocked => 0,
            };
            add(&self.counters.sent_bytes, sent);
            if sent > 0 {
                self.pace.note(0, sent as usize, period_ms)?;
                return Ok(sent);
            }
            let start_ms = self.timer.now_ms();
            let ready = pin!(poll_fn(|context| direct.poll_ready(context)));
            within(self.timer, FILE_RETRY_MS, ready).await;
            let waited_ms = self.timer.now_ms().saturating_sub(start_ms);
            self.pace.note(waited_ms, 0, period_ms)?;
        }
    }

    /// Takes the properties of the response from the request. A response that is sent before the body was read ends
    /// the connection.
    pub(crate) fn respond_to(&mut self, head: &Head, body: &Body) {
        self.minor = head.minor;
        self.is_head = head.method == head::Method::Head;
        self.closes_after_body = head.closes;
        self.closes = head.closes || !body.is_read();
    }

    /// Notes that the body of the request was read: the connection may stay open.
    pub(crate) fn note_body(&mut self) {
        self.closes = self.closes_after_body;
    }

    /// Returns true if the body of the response is not sent.
    pub(crate) fn is_head(&self) -> bool {
        self.is_head
    }

    /// Returns true if the client does not support chunks. A response of unknown length then ends the connection.
    pub(crate) fn is_old(&self) -> bool {
        self.minor == 0
    }

    /// Begins a response in JSON of unknown length.
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
            // There is no need to read past the largest head: a longer one is refused.
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
            // This byte of the next request is lost, so the connection has to end.
            Some(Ok(_)) => {
                self.closes = true;
                self.timer.sleep_ms(ms).await;
                Ok(())
            }
        }
    }

    /// Begins a response: status line and the fields that all responses have.
    pub(crate) async fn start(&mut self, status: Status) -> Result<(), Closed> {
        (self.len, self.framing) = (0, Framing::Plain);
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

    /// Ends the head of a response.
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
            // The first chunk travels with the head.
            if self.len + CHUNK_HEAD_BYTES > OUT_BYTES / 2 {
                self.flush().await?;
            }
            self.framing = Framing::Chunked {
                at: self.len as u16,
            };
            self.len += CHUNK_HEAD_BYTES;
        }
        Ok(())
    }

    /// Adds formatted text to the response; it has to fit into the buffer.
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
        let mut room = Room::new(&mut self.out[self.len..end]);
        room.write_fmt(text)?;
        self.len += room.len;
        Ok(())
    }

    /// Adds bytes to the response.
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

    /// Adds a line: a prefix, and the text that `fill` writes; `fill` returns its length. Returns false and adds
    /// nothing if `fill` returns `None`.
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

    /// Begins a line that is written in parts, and that may be dropped at its end.
    pub(crate) async fn begin_line(&mut self, prefix: fmt::Arguments<'_>) -> Result<Line, Closed> {
        if self.end() - self.len < LINE_BYTES_MAX {
            self.flush().await?;
        }
        let start = self.len as u16;
        self.try_text(prefix).map_err(|_| Closed)?;
        let text = self.len as u16;
        Ok(Line { start, text })
    }

    /// Adds to the line; drops bytes beyond the maximum length.
    pub(crate) fn extend_line(&mut self, bytes: &[u8]) {
        let room = self.end() - self.len - LINE_END.len();
        let bytes = &bytes[..bytes.len().min(room)];
        self.out[self.len..][..bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    pub(crate) fn line_text(&self, line: &Line) -> &[u8] {
        &self.out[line.text.into()..self.len]
    }

    /// Adds the output of `write` to the line; drops it if there is no room.
    pub(crate) fn extend_line_with(&mut self, write: impl FnOnce(&mut Room) -> fmt::Result) {
        let end = self.end();
        let mut room = Room::new(&mut self.out[self.len..end - LINE_END.len()]);
        if write(&mut room).is_ok() {
            self.len += room.len;
        }
    }

    /// Keeps only the beginning of the text of the line.
    pub(crate) fn truncate_line(&mut self, line: &Line, bytes: usize) {
        self.len = self.len.min(usize::from(line.text) + bytes);
    }

    pub(crate) fn drop_line(&mut self, line: &Line) {
        self.len = line.start.into();
    }

    /// Adds the text that `fill` writes; `fill` returns its length.
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

    /// Sends bytes after those in the buffer; copies them only if they fit into it.
    pub(crate) async fn lend(&mut self, bytes: &[u8]) -> Result<(), Closed> {
        if bytes.is_empty() || self.framing == Framing::Silent {
            return Ok(());
        }
        // A small file travels with its head.
        if bytes.len() <= self.end() - self.len {
            self.out[self.len..][..bytes.len()].copy_from_slice(bytes);
            self.len += bytes.len();
            return Ok(());
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
            Framing::Chunked { .. } => OUT_BYTES - LINE_END.len() - LAST_CHUNK.len(),
            _ => OUT_BYTES,
        }
    }

    /// Sends the text in the buffer.
    pub(crate) fn flush(&mut self) -> impl Future<Output = Result<(), Closed>> {
        self.end_chunk(b"")
    }

    /// Sends the text in the buffer, and `after`, which is at most the end of a chunked body.
    async fn end_chunk(&mut self, after: &[u8]) -> Result<(), Closed> {
        match &mut self.framing {
            Framing::Silent => self.len = 0,
            Framing::Plain => (),
            Framing::Chunked { at } => {
                let begin = usize::from(*at);
                let start = begin + CHUNK_HEAD_BYTES;
                match self.len - start {
                    0 => self.len = begin,
                    bytes => {
                        let mut size = Room::new(&mut self.out[begin..start]);
                        write!(size, "{bytes:03X}\r\n").map_err(|_| Closed)?;
                        self.out[self.len..][..2].copy_from_slice(LINE_END);
                        self.len += LINE_END.len();
                    }
                }
                *at = 0;
            }
        }
        self.out[self.len..][..after.len()].copy_from_slice(after);
        let text = &self.out[..self.len + after.len()];
        self.has_sent |= !text.is_empty();
        let result = send(self.socket, self.timer, &mut self.pace, text).await;
        add(&self.counters.sent_bytes, text.len() as u64);
        self.len = match self.framing {
            Framing::Chunked { .. } => CHUNK_HEAD_BYTES,
            _ => 0,
        };
        result
    }

    async fn send(&mut self, bytes: &[u8]) -> Result<(), Closed> {
        let result = send(self.socket, self.timer, &mut self.pace, bytes).await;
        add(&self.counters.sent_bytes, bytes.len() as u64);
        result
    }

    /// Ends a response.
    pub(crate) async fn finish(&mut self) -> Result<(), Closed> {
        match self.framing {
            Framing::Chunked { .. } => self.end_chunk(LAST_CHUNK).await?,
            _ => self.flush().await?,
        }
        self.framing = Framing::Plain;
        self.len = 0;
        self.flush_socket().await
    }

    /// Lets the socket send what it holds back. Some sockets wait until the client has received all of it.
    async fn flush_socket(&mut self) -> Result<(), Closed> {
        match within(self.timer, SLOW_MS, pin!(self.socket.flush())).await {
            Some(Ok(())) => Ok(()),
            Some(Err(_)) | None => Err(Closed),
        }
    }

    /// Tells the client to send the body.
    pub(crate) async fn send_continue(&mut self) -> Result<(), Closed> {
        self.send(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        self.flush_socket().await
    }

    /// Responds with a short text, or ends the connection if a part of another response was sent.
    pub(crate) async fn refuse(&mut self, refused: &Refused) -> Result<(), Closed> {
        if self.has_sent {
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

    /// Ends a response with one line of text.
    pub(crate) async fn short(&mut self, line: &str) -> Result<(), Closed> {
        self.text(format_args!("Content-Type: text/plain; charset=utf-8\r\n"))
            .await?;
        self.body(Length::Known(line.len() as u64 + 1)).await?;
        self.bytes(line.as_bytes()).await?;
        self.bytes(b"\n").await?;
        self.finish().await
    }

    /// Reads and drops bytes for a limited time, so that a client that is still sending receives its response.
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
        let read = within(timer, pace.left_ms(SLOW_MS), pin!(socket.read(bytes))).await;
        let waited_ms = timer.now_ms().saturating_sub(start_ms);
        match read {
            Some(Ok(read)) => {
                pace.note(waited_ms, read, SLOW_MS)?;
                return Ok(read);
            }
            Some(Err(_)) => return Err(Closed),
            None => pace.note(waited_ms.max(1), 0, SLOW_MS)?,
        }
    }
}

async fn send<C: Write, T: Timer>(
    socket: &mut C,
    timer: &T,
    pace: &mut Pace,
    mut bytes: &[u8],
) -> Result<(), Closed> {
    let period_ms = timer.patience_ms();
    while !bytes.is_empty() {
        let start_ms = timer.now_ms();
        let sent = match within(timer, pace.left_ms(period_ms), pin!(socket.write(bytes))).await {
            Some(Ok(0) | Err(_)) => return Err(Closed),
            Some(Ok(sent)) => sent,
            None => 0,
        };
        let waited_ms = timer.now_ms().saturating_sub(start_ms);
        pace.note(waited_ms, sent, period_ms)?;
        bytes = &bytes[sent.min(bytes.len())..];
    }
    Ok(())
}

/// Free bytes of a buffer.
pub(crate) struct Room<'a> {
    bytes: &'a mut [u8],
    len: usize,
}

impl<'a> Room<'a> {
    pub(crate) fn new(bytes: &'a mut [u8]) -> Room<'a> {
        Room { bytes, len: 0 }
    }

    /// Returns the number of bytes in use.
    #[cfg(feature = "webdav")]
    pub(crate) fn len(&self) -> usize {
        self.len
    }
}

/// A line that is being written to the output buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    /// Beginning of the prefix.
    start: u16,
    /// Beginning of the text.
    text: u16,
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
    "the request head is longer than 1440 bytes",
);
const TOO_LATE: Refused = Refused::new(
    Status::RequestTimeout,
    "the request head was not complete in time",
);
