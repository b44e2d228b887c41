//! A web server that reads a file in pieces and sends each piece over the network.

use cardiograph_workload::{Clock, Store};
use std::fmt;
use std::num::NonZeroU32;

/// Name of the file, in the root directory; an 8.3 name, for libraries without long names.
const FILE_NAME: &str = "DOWNLOAD.BIN";
/// Size of the file. The server reads it repeatedly, so the size affects only the length of the cluster
/// chain.
const FILE_BYTES: u64 = 1_000_000;
const CREATE_BYTES: u64 = 4096;
/// Period of the file's contents in bytes: a prime number, so that nearby sectors differ.
const PATTERN_BYTES: u64 = 251;

/// A download that continues for as long as a workload runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Download {
    /// Length of each read by the server, in bytes.
    pub piece_bytes: NonZeroU32,
    /// Throughput of the network, in B/s.
    pub network_bytes_per_s: NonZeroU32,
}

impl Download {
    /// Returns the time from the end of a read to the next read, in ns.
    fn send_ns(&self, bytes: u64) -> u64 {
        // The time is at least 1 ns, so that the server does not occupy the card all the time.
        (bytes * 1_000_000_000 / u64::from(self.network_bytes_per_s.get())).max(1)
    }
}

/// Result of a download.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Downloaded {
    /// Bytes read and verified.
    pub bytes: u64,
    /// Duration of the download, in ns.
    pub duration_ns: u64,
}

/// Error of a download.
#[derive(Debug)]
pub enum DownloadError<E> {
    /// The store failed.
    Store(E),
    /// The data read differs from the data written.
    Differs {
        /// Offset in the file of the piece that differs.
        offset_bytes: u64,
    },
}

impl<E: fmt::Debug + fmt::Display> std::error::Error for DownloadError<E> {}

impl<E: fmt::Display> fmt::Display for DownloadError<E> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            DownloadError::Store(source) => write!(f, "downloading {FILE_NAME}: {source}"),
            DownloadError::Differs { offset_bytes } => write!(
                f,
                "downloading {FILE_NAME}: data read at byte {offset_bytes} differs from data written"
            ),
        }
    }
}

/// State of the web server.
pub(crate) struct Server<S: Store> {
    download: Download,
    file: S::File,
    piece: Vec<u8>,
    offset_bytes: u64,
    began_ns: u64,
    /// Time of the next read; `None` after a failure, after which the workload continues alone.
    pub(crate) due_ns: Option<u64>,
    bytes: u64,
    failed: Option<DownloadError<S::Error>>,
}

impl<S: Store> Server<S> {
    /// Creates the file; the first read is due immediately.
    pub(crate) fn start(
        store: &mut S,
        clock: &mut impl Clock,
        download: Download,
    ) -> Result<Server<S>, S::Error> {
        create_file(store)?;
        let file = store.open(FILE_NAME, false)?;
        let now_ns = clock.now_ns();
        Ok(Server {
            download,
            file,
            piece: vec![0; u64::from(download.piece_bytes.get()).min(FILE_BYTES) as usize],
            offset_bytes: 0,
            began_ns: now_ns,
            due_ns: Some(now_ns),
            bytes: 0,
            failed: None,
        })
    }

    /// Reads a piece if a read is due.
    pub(crate) fn read_if_due(&mut self, store: &mut S, clock: &mut impl Clock) {
        if self.due_ns.is_none_or(|due_ns| due_ns > clock.now_ns()) {
            return;
        }
        match self.read(store) {
            Ok(bytes) => self.due_ns = Some(clock.now_ns() + self.download.send_ns(bytes)),
            Err(error) => (self.due_ns, self.failed) = (None, Some(error)),
        }
    }

    /// Reads the next piece, or what is left of the file if that is shorter, and verifies it; returns the
    /// number of bytes read.
    fn read(&mut self, store: &mut S) -> Result<u64, DownloadError<S::Error>> {
        let offset_bytes = self.offset_bytes;
        let wanted = (self.piece.len() as u64).min(FILE_BYTES - offset_bytes);
        let piece = &mut self.piece[..wanted as usize];
        let read = store.read(&mut self.file, offset_bytes, piece);
        let read = read.map_err(DownloadError::Store)? as u64;
        let expected = (offset_bytes..).map(byte_at);
        if read != wanted
            || piece
                .iter()
                .zip(expected)
                .any(|(actual, expected)| *actual != expected)
        {
            return Err(DownloadError::Differs { offset_bytes });
        }
        self.offset_bytes = (offset_bytes + wanted) % FILE_BYTES;
        self.bytes += wanted;
        Ok(wanted)
    }

    /// Closes the file and returns the result.
    pub(crate) fn finish(
        self,
        store: &mut S,
        clock: &mut impl Clock,
    ) -> Result<Downloaded, DownloadError<S::Error>> {
        let duration_ns = clock.now_ns() - self.began_ns;
        let closed = store.close(self.file).map_err(DownloadError::Store);
        self.failed.map_or(Ok(()), Err)?;
        closed?;
        Ok(Downloaded {
            bytes: self.bytes,
            duration_ns,
        })
    }
}

fn create_file<S: Store>(store: &mut S) -> Result<(), S::Error> {
    let mut file = store.create(FILE_NAME)?;
    let mut at = 0;
    let mut result = Ok(());
    while at < FILE_BYTES && result.is_ok() {
        let end = FILE_BYTES.min(at + CREATE_BYTES);
        let data: Vec<u8> = (at..end).map(byte_at).collect();
        result = store.write(&mut file, at, &data);
        at = end;
    }
    result.and(store.close(file))
}

fn byte_at(offset_bytes: u64) -> u8 {
    (offset_bytes % PATTERN_BYTES) as u8
}
