//! Size of a connection on a 32-bit target, checked when the crate is compiled for one.

use crate::{
    Buffers, CardRecorder, CardStorage, Entry, Error, Kind, NameBuffer, NoInstrument, Position,
    Recording, Server, Stat, Storage, Timer, Version,
};
use core::convert::Infallible;
use embedded_io_async::{ErrorType, Read, Write};

/// Maximum size of a connection without the futures of timer and socket, in bytes.
const CONNECTION_BYTES_MAX: usize = 4096;

/// A storage, timer and socket without any state.
struct Nothing;

impl Storage for Nothing {
    type File = ();
    type Listing = ();
    type Upload = ();
    type Bytes<'a> = &'a [u8];

    async fn open(&self, _: &str) -> Result<(), Error> {
        Err(Error::NoCard)
    }

    fn stat(&self, (): &()) -> Stat {
        Stat {
            kind: Kind::File,
            bytes: 0,
            modified_s: None,
            version: Version::Whole { generation: 0 },
            is_growing: false,
        }
    }

    async fn refresh(&self, (): &mut ()) -> Result<(), Error> {
        Err(Error::NoCard)
    }

    async fn read<'a>(&'a self, (): &(), _: u64, _: usize) -> Result<&'a [u8], Error> {
        Err(Error::NoCard)
    }

    async fn list(&self, _: &str) -> Result<(), Error> {
        Err(Error::NoCard)
    }

    async fn next<'n>(
        &self,
        (): &mut (),
        _: &'n mut NameBuffer,
    ) -> Result<Option<Entry<'n>>, Error> {
        Err(Error::NoCard)
    }

    async fn create(&self, _: &str, _: Option<u64>) -> Result<(), Error> {
        Err(Error::NoCard)
    }

    async fn append(&self, (): &mut (), _: &[u8]) -> Result<(), Error> {
        Err(Error::NoCard)
    }

    async fn commit(&self, (): (), _: &str) -> Result<bool, Error> {
        Err(Error::NoCard)
    }

    async fn discard(&self, (): ()) {}

    async fn rename(&self, _: &str, _: &str) -> Result<(), Error> {
        Err(Error::NoCard)
    }

    async fn remove(&self, _: &str, _: bool) -> Result<(), Error> {
        Err(Error::NoCard)
    }

    async fn make_directory(&self, _: &str) -> Result<(), Error> {
        Err(Error::NoCard)
    }

    async fn record(&self, _: &mut Position) -> Result<Option<Recording>, Error> {
        Err(Error::NoCard)
    }
}

impl Timer for Nothing {
    fn now_ms(&self) -> u64 {
        0
    }

    async fn sleep_ms(&self, _: u32) {}
}

impl ErrorType for Nothing {
    type Error = Infallible;
}

impl Read for Nothing {
    async fn read(&mut self, _: &mut [u8]) -> Result<usize, Infallible> {
        Ok(0)
    }
}

impl Write for Nothing {
    async fn write(&mut self, bytes: &[u8]) -> Result<usize, Infallible> {
        Ok(bytes.len())
    }

    async fn flush(&mut self) -> Result<(), Infallible> {
        Ok(())
    }
}

type Shared = &'static Server<'static, Nothing, NoInstrument, Nothing>;
type Arguments = (Shared, &'static mut Nothing, &'static mut Buffers);

async fn serve((server, socket, buffers): Arguments) {
    server.serve(socket, buffers).await;
}

/// Returns the size of what a function returns.
const fn bytes_of<A, F>(_: fn(A) -> F) -> usize {
    size_of::<F>()
}

/// The same server with the files of a card.
type OnCard = &'static Server<
    'static,
    CardStorage<'static, 'static>,
    CardRecorder<'static, 'static>,
    Nothing,
>;
type CardArguments = (OnCard, &'static mut Nothing, &'static mut Buffers);

async fn serve_card((server, socket, buffers): CardArguments) {
    server.serve(socket, buffers).await;
}

const CONNECTION_BYTES: usize = size_of::<Buffers>() + bytes_of(serve);
const CARD_CONNECTION_BYTES: usize = size_of::<Buffers>() + bytes_of(serve_card);

// Pointers are twice as long on a computer, where the tests run.
const fn limit(bytes: usize) -> usize {
    match usize::BITS {
        32 => bytes,
        _ => bytes * 3 / 2,
    }
}
const _: () = assert!(CONNECTION_BYTES <= limit(CONNECTION_BYTES_MAX));
const _: () = assert!(CARD_CONNECTION_BYTES <= limit(CONNECTION_BYTES_MAX));
