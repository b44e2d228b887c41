//! The page that enhances the list of files: sources in `web/`, compressed by `gzip -9n`.

use crate::head::Head;
use crate::range::{Tag, is_unchanged};
use crate::status::{Fault, Status};
use crate::wire::{Length, Wire};
use crate::{Instrument, Server, Storage, Timer};
use core::fmt::Write as _;
use embedded_io_async::{Read, Write};

/// A file of the page.
#[derive(Debug, PartialEq)]
pub struct Asset {
    path: &'static str,
    kind: &'static str,
    /// Contents, compressed with gzip.
    bytes: &'static [u8],
    hash: u64,
}

static ASSETS: [Asset; 3] = [
    Asset::new(
        "/page/page.js",
        "text/javascript",
        include_bytes!("page/page.js.gz"),
    ),
    Asset::new(
        "/page/live.js",
        "text/javascript",
        include_bytes!("page/live.js.gz"),
    ),
    Asset::new(
        "/page/page.css",
        "text/css",
        include_bytes!("page/page.css.gz"),
    ),
];

impl Asset {
    const fn new(path: &'static str, kind: &'static str, bytes: &'static [u8]) -> Asset {
        let hash = fnv1a(bytes);
        Asset {
            path,
            kind,
            bytes,
            hash,
        }
    }
}

/// Returns a hash (FNV-1a) of bytes, computed by the compiler.
const fn fnv1a(bytes: &[u8]) -> u64 {
    let (mut hash, mut at) = (0xCBF2_9CE4_8422_2325, 0);
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u64).wrapping_mul(0x0100_0000_01B3);
        at += 1;
    }
    hash
}

/// Returns the file of the page with this path.
pub(crate) fn find(path: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.path == path)
}

impl<S: Storage, I: Instrument, T: Timer> Server<'_, S, I, T> {
    /// Sends a file of the page.
    pub(crate) async fn asset<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        head: &Head<'_>,
        asset: &'static Asset,
    ) -> Result<(), Fault> {
        let mut tag = Tag::new();
        // A tag has room for 64 bits.
        let _ = write!(tag, "\"{:x}\"", asset.hash);
        let is_unchanged = is_unchanged(&head.fields, &tag);
        wire.start(match is_unchanged {
            true => Status::NotModified,
            false => Status::Ok,
        })
        .await?;
        wire.text(format_args!("ETag: {tag}\r\nCache-Control: no-cache\r\n"))
            .await?;
        if is_unchanged {
            wire.body(Length::None).await?;
            return Ok(wire.finish().await?);
        }
        wire.text(format_args!(
            "Content-Type: {}; charset=utf-8\r\nContent-Encoding: gzip\r\n",
            asset.kind
        ))
        .await?;
        wire.body(Length::Known(asset.bytes.len() as u64)).await?;
        if !wire.is_head() {
            wire.lend(asset.bytes).await?;
        }
        Ok(wire.finish().await?)
    }
}
