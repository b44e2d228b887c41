//! COPY and MOVE (RFC 4918, sections 9.8 and 9.9).

use super::condition::Target;
use super::permission::LOCKED;
use super::upload::{NO_FOLDER, done};
use crate::dav::Depth;
use crate::dav::locks::{Extent, Permission};
use crate::head::Head;
use crate::path::{Path, decode_path};
use crate::route::target_path;
use crate::status::{Fault, Refused, Status};
use crate::wire::Wire;
use crate::{Error, Instrument, Kind, Server, Storage, Timer};
use cardiograph_recorder::is_same_name;
use embedded_io_async::{Read, Write};

#[cfg(feature = "webdav")]
const NO_COPY: Refused = Refused::new(
    Status::Forbidden,
    "a card does not copy: download the file and upload it again",
);
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
        *path = target_path(head)?;
        let mut renamed = self.rename_to(path, to).await?;
        // The old file is removed only once it is certain that the new one may take its place.
        if existing.is_some() && renamed == Err(Error::Exists) {
            // A second path beside the future of a removal would be too large for a connection.
            *path = decode_path(to)?;
            self.storage.remove(path, true).await?;
            self.locks().forget(path);
            *path = target_path(head)?;
            renamed = self.rename_to(path, to).await?;
        }
        drop(turn);
        finish(wire, renamed, existing.is_some()).await
    }

    async fn rename_to(&self, from: &str, to: &str) -> Result<Result<(), Error>, Refused> {
        let to = decode_path(to)?;
        let renamed = self.storage.rename(from, &to).await;
        if renamed.is_ok() {
            self.locks().forget(from);
        }
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
        let file = self.storage.open(path).await?;
        let kind = self.storage.stat(&file).kind;
        drop(file);
        let is_shallow = match (kind, Depth::of(head)?) {
            (Kind::Directory, Depth::One) => {
                return Err(Refused::bad("a folder is copied with depth 0 or infinity").into());
            }
            (Kind::Directory, depth) => depth == Depth::Zero,
            (Kind::File, _) => false,
        };
        if !is_shallow && !self.storage.copies() {
            return Err(NO_COPY.into());
        }
        let (source, existing) = self.compare(head, path, to, false).await?;
        // A copied file replaces another one in one step, at its end.
        if existing.is_some() && (existing, source) != (Some(Kind::File), Kind::File) {
            self.storage.remove(path, true).await?;
            self.locks().forget(path);
        }
        let copied = match is_shallow {
            true => self.storage.make_directory(path).await,
            false => self.copy_to(head, path).await?,
        };
        finish(wire, copied, existing.is_some()).await
    }

    #[cfg(feature = "webdav")]
    async fn copy_to(&self, head: &Head<'_>, to: &str) -> Result<Result<(), Error>, Refused> {
        let from = target_path(head)?;
        Ok(self.storage.copy(&from, to).await)
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
        let is_whole = source.kind == Kind::File || Depth::of(head)? == Depth::Infinity;
        if is_move && !is_whole {
            return Err(Refused::bad("a folder is moved with depth infinity").into());
        }
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
        // On FAT, names that differ in case are the same, and each long name has a short one: without this check, the
        // source would be removed before it is moved.
        if existing.kind == source.kind && existing.version == source.version {
            let changes_case = is_move && is_same_name(&target_path(head)?, path);
            return match changes_case {
                true => Ok((source.kind, None)),
                false => Err(SAME.into()),
            };
        }
        let overwrite = head.field("Overwrite")?;
        if overwrite.is_some_and(|word| word.eq_ignore_ascii_case("F")) {
            return Err(EXISTS.into());
        }
        match existing.is_growing || is_move && source.is_growing {
            true => Err(Error::Recording.into()),
            false => Ok((source.kind, existing_kind)),
        }
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
