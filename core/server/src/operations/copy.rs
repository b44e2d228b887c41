//! COPY and MOVE (RFC 4918, sections 9.8 and 9.9).

use super::condition::Target;
use super::permission::LOCKED;
use super::upload::{NO_FOLDER, done};
#[cfg(feature = "webdav")]
use crate::Stat;
#[cfg(feature = "webdav")]
use crate::dav::Depth;
use crate::dav::locks::{Extent, Permission};
use crate::head::Head;
use crate::path::{Path, decode_path};
use crate::route::target_path;
use crate::status::{Fault, Refused, Status};
use crate::wire::Wire;
use crate::{Error, Instrument, Kind, Server, Storage, Timer};
use embedded_io_async::{Read, Write};

const EXISTS: Refused = Refused::new(
    Status::PreconditionFailed,
    "the new path exists, and Overwrite: F forbids to replace it",
);
const SAME: Refused = Refused::new(Status::Forbidden, "both paths name the same file");

impl<S: Storage, I: Instrument, T: Timer> Server<'_, S, I, T> {
    /// Renames a file or folder.
    pub(crate) async fn rename<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        head: &Head<'_>,
        path: &mut Path,
        to: &str,
    ) -> Result<(), Fault> {
        self.storage.open(path).await?;
        let turn = self.turn(head, path, Target::Existing).await?;
        let (_, existing) = self.compare(head, path, to, true).await?;
        // A second path beside the future of a removal would be too large for a connection.
        if existing.is_some() {
            self.storage.remove(path, true).await?;
            self.locks().forget(path);
        }
        *path = target_path(head)?;
        let renamed = self.rename_to(path, to).await?;
        drop(turn);
        finish(wire, renamed, existing.is_some()).await
    }

    async fn rename_to(&self, from: &str, to: &str) -> Result<Result<(), Error>, Refused> {
        let to = decode_path(to)?;
        let renamed = self.storage.rename(from, &to).await;
        self.locks().forget(from);
        Ok(renamed)
    }

    /// Copies a file or folder.
    #[cfg(feature = "webdav")]
    pub(crate) async fn copy<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        head: &Head<'_>,
        path: &mut Path,
        to: &str,
    ) -> Result<(), Fault> {
        self.check_conditions(head, path, Target::Source).await?;
        let (source, existing) = self.compare(head, path, to, false).await?;
        // A copied file replaces another one in one step, at its end.
        if existing.is_some() && (existing, source) != (Some(Kind::File), Kind::File) {
            self.storage.remove(path, true).await?;
            self.locks().forget(path);
        }
        *path = target_path(head)?;
        let file = self.storage.open(path).await?;
        let Stat { kind, bytes, .. } = self.storage.stat(&file);
        *path = decode_path(to)?;
        let copied = match kind {
            Kind::File => self.copy_file(&file, bytes, path).await,
            Kind::Directory if Depth::of(head)? == Depth::Zero => {
                self.storage.make_directory(path).await
            }
            Kind::Directory => {
                let from = target_path(head)?;
                self.storage.copy_directory(&from, path).await
            }
        };
        finish(wire, copied, existing.is_some()).await
    }

    /// Checks that a path may be replaced by another one. Returns the kinds of both, and sets `path` to the new path.
    async fn compare(
        &self,
        head: &Head<'_>,
        path: &mut Path,
        to: &str,
        is_move: bool,
    ) -> Result<(Kind, Option<Kind>), Fault> {
        let file = self.storage.open(path).await?;
        let source = self.storage.stat(&file);
        drop(file);
        *path = decode_path(to)?;
        let existing = match self.storage.open(path).await {
            Ok(file) => Some(self.storage.stat(&file)),
            Err(Error::NotFound) => None,
            Err(error) => return Err(error.into()),
        };
        let existing_kind = existing.map(|stat| stat.kind);
        let extent = match (existing_kind, source.kind) {
            (Some(Kind::File), Kind::File) => Extent::File,
            _ => Extent::Tree,
        };
        if self.permission(head, path, extent)? == Permission::Refused {
            return Err(LOCKED.into());
        }
        let Some(existing) = existing else {
            return Ok((source.kind, None));
        };
        let overwrite = head.field("Overwrite")?;
        if overwrite.is_some_and(|word| word.eq_ignore_ascii_case("F")) {
            return Err(EXISTS.into());
        }
        // On FAT, names that differ in case are the same, and each long name has a short one: without this check, the
        // source would be removed before it is moved.
        if existing.kind == source.kind && existing.version == source.version {
            return Err(SAME.into());
        }
        match existing.is_growing || is_move && source.is_growing {
            true => Err(Error::Recording.into()),
            false => Ok((source.kind, existing_kind)),
        }
    }

    /// Copies the first bytes of a file.
    #[cfg(feature = "webdav")]
    async fn copy_file(&self, file: &S::File, bytes: u64, to: &str) -> Result<(), Error> {
        let mut upload = self.storage.create(to, Some(bytes)).await?;
        let mut offset = 0;
        while offset < bytes {
            let bytes_max = usize::try_from(bytes - offset).unwrap_or(usize::MAX);
            let piece = self.storage.read(file, offset, bytes_max).await;
            let appended = match &piece {
                Ok(piece) if piece.is_empty() => Err(Error::Changed),
                Ok(piece) => self.storage.append(&mut upload, piece).await,
                Err(error) => Err(*error),
            };
            offset += piece.map_or(0, |piece| piece.len() as u64);
            if let Err(error) = appended {
                self.storage.discard(upload).await;
                return Err(error);
            }
        }
        self.storage.commit(upload, to).await.map(drop)
    }
}

/// Responds to COPY or MOVE.
async fn finish<C: Read + Write, T: Timer>(
    wire: &mut Wire<'_, C, T>,
    result: Result<(), Error>,
    has_replaced: bool,
) -> Result<(), Fault> {
    match (result, has_replaced) {
        (Ok(()), false) => done(wire, Status::Created).await,
        (Ok(()), true) => done(wire, Status::NoContent).await,
        // The folder of the new path is missing.
        (Err(Error::NotFound), _) => Err(NO_FOLDER.into()),
        (Err(error), _) => Err(error.into()),
    }
}
