//! A web server that reads a file piece by piece and sends each over the network.

use cardiograph_workload::{Clock, Store};
use std::fmt;
use std::num::NonZeroU32;

/// In the root; 8.3, for libraries without long names.
const FILE_NAME: &str = "DOWNLOAD.BIN";
/// The file is read over and over, so its size shows in its cluster chain only.
const FILE_BYTES: u64 = 1_000_000;
const MAKE_BYTES: u64 = 4096;
/// Prime, so that no two sectors near each other are alike.
const PATTERN: u64 = 251;

/// A download that goes on for as long as a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(non_snake_case, reason = "Bps is bytes per second")]
pub struct Download {
    /// What the server reads at once, in bytes.
    pub piece_bytes: NonZeroU32,
    /// What the network takes, in B/s.
    pub network_Bps: NonZeroU32,
}

impl Download {
    /// Time from a piece read to the next one wanted, in ns.
    fn send_ns(&self, bytes: u64) -> u64 {
        // At least 1: the server may not hold the card for ever.
        (bytes * 1_000_000_000 / u64::from(self.network_Bps.get())).max(1)
    }
}

/// What was downloaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Downloaded {
    /// Bytes read, and found to be those of the file.
    pub bytes: u64,
    /// How long it took, in ns.
    pub duration_ns: u64,
}

/// Why a download failed.
#[derive(Debug)]
pub enum DownloadError<E> {
    /// The store failed.
    Store(E),
    /// What was read is not what was written.
    Differs {
        /// Where in the file the piece begins.
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
                "downloading {FILE_NAME}: what was read at byte {offset_bytes} is not what was written"
            ),
        }
    }
}

/// The web server.
pub(crate) struct Server<S: Store> {
    download: Download,
    file: S::File,
    piece: Vec<u8>,
    offset_bytes: u64,
    began_ns: u64,
    /// When the next piece is wanted; never once it failed, and the workload goes on alone.
    pub(crate) due_ns: Option<u64>,
    bytes: u64,
    failed: Option<DownloadError<S::Error>>,
}

impl<S: Store> Server<S> {
    /// Makes the file; the first piece is wanted at once.
    pub(crate) fn start(
        store: &mut S,
        clock: &mut impl Clock,
        download: Download,
    ) -> Result<Server<S>, S::Error> {
        make_file(store)?;
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

    /// Reads a piece if one is wanted by now.
    pub(crate) fn read_if_due(&mut self, store: &mut S, clock: &mut impl Clock) {
        if self.due_ns.is_none_or(|due_ns| due_ns > clock.now_ns()) {
            return;
        }
        match self.read(store) {
            Ok(bytes) => self.due_ns = Some(clock.now_ns() + self.download.send_ns(bytes)),
            Err(error) => (self.due_ns, self.failed) = (None, Some(error)),
        }
    }

    /// Reads a piece, at the end of the file what is left; returns its bytes.
    fn read(&mut self, store: &mut S) -> Result<u64, DownloadError<S::Error>> {
        let offset_bytes = self.offset_bytes;
        let wanted = (self.piece.len() as u64).min(FILE_BYTES - offset_bytes);
        let piece = &mut self.piece[..wanted as usize];
        let read = store.read(&mut self.file, offset_bytes, piece);
        let read = read.map_err(DownloadError::Store)? as u64;
        let right = (offset_bytes..).map(byte_at);
        if read != wanted || piece.iter().zip(right).any(|(is, right)| *is != right) {
            return Err(DownloadError::Differs { offset_bytes });
        }
        self.offset_bytes = (offset_bytes + wanted) % FILE_BYTES;
        self.bytes += wanted;
        Ok(wanted)
    }

    /// Closes the file.
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

fn make_file<S: Store>(store: &mut S) -> Result<(), S::Error> {
    let mut file = store.create(FILE_NAME)?;
    let mut at = 0;
    let mut result = Ok(());
    while at < FILE_BYTES && result.is_ok() {
        let end = FILE_BYTES.min(at + MAKE_BYTES);
        let data: Vec<u8> = (at..end).map(byte_at).collect();
        result = store.write(&mut file, at, &data);
        at = end;
    }
    result.and(store.close(file))
}

fn byte_at(offset_bytes: u64) -> u8 {
    (offset_bytes % PATTERN) as u8
}
