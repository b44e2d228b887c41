//! Uploads: to a temporary name, renamed when complete.

use super::condition::Target;
use crate::body::Body;
use crate::guard::Content;
use crate::head::Head;
use crate::limits::OUT_BYTES;
use crate::multipart::{delimiter_bytes, file_name, find, find_delimiter};
use crate::path::{Path, append, check, parent};
use crate::route::{is_reserved, names_file, upload_folder};
use crate::status::{Fault, Refused, Status};
use crate::wire::{Length, Wire};
use crate::{Error, Instrument, Kind, Server, Storage, Timer};
use embedded_io_async::{Read, Write};

impl<S: Storage, I: Instrument, T: Timer> Server<'_, S, I, T> {
    /// Receives a file.
    pub(crate) async fn put<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        head: &Head<'_>,
        body: &mut Body<'_>,
        path: &str,
    ) -> Result<(), Fault> {
        let bytes = match head.content {
            Content::Length(bytes) => Some(bytes),
            _ => None,
        };
        let modified_s = modified_s(head)?;
        let mut upload = self.begin_upload(head, path, bytes).await?;
        let received = loop {
            match body.read(wire, 0).await {
                Ok(0) => break Ok(()),
                Ok(read) => match self.storage.append(&mut upload, &wire.out[..read]).await {
                    Ok(()) => (),
                    Err(error) => break Err(error.into()),
                },
                Err(fault) => break Err(fault),
            }
        };
        if let Err(fault) = received {
            self.storage.discard(upload).await;
            return Err(fault);
        }
        let status = match self.commit_upload(head, path, upload).await? {
            true => Status::Created,
            false => Status::NoContent,
        };
        let is_dated = match modified_s {
            Some(modified_s) => self.storage.set_modified(path, modified_s.into()).await,
            None => Ok(false),
        };
        wire.start(status).await?;
        if is_dated == Ok(true) {
            wire.bytes(b"X-OC-Mtime: accepted\r\n").await?;
        }
        end(wire, status).await
    }

    /// Begins an upload if its conditions are met; the folder has to exist.
    pub(crate) async fn begin_upload(
        &self,
        head: &Head<'_>,
        path: &str,
        bytes: Option<u64>,
    ) -> Result<S::Upload, Fault> {
        let upload = match self.storage.create(path, bytes).await {
            Ok(upload) => upload,
            Err(Error::NotFound) => return Err(NO_FOLDER.into()),
            Err(error) => return Err(error.into()),
        };
        match self.check_conditions(head, path, Target::Any).await {
            Ok(()) => Ok(upload),
            Err(fault) => {
                self.storage.discard(upload).await;
                Err(fault)
            }
        }
    }

    /// Gives an upload its name if its conditions are still met. Returns true if there was no old file.
    pub(crate) async fn commit_upload(
        &self,
        head: &Head<'_>,
        path: &str,
        upload: S::Upload,
    ) -> Result<bool, Fault> {
        match self.turn(head, path, Target::Any).await {
            Ok(_turn) => Ok(self.storage.commit(upload, path).await?),
            Err(fault) => {
                self.storage.discard(upload).await;
                Err(fault)
            }
        }
    }

    /// Receives the files of a form. Each is complete on its own: an interrupted form leaves the files before the
    /// interruption.
    pub(crate) async fn upload<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        head: &Head<'_>,
        body: &mut Body<'_>,
        boundary: &str,
        path: &mut Path,
    ) -> Result<(), Fault> {
        // With a line end before it, the first delimiter is like the others.
        wire.out[..2].copy_from_slice(b"\r\n");
        let mut form = Form {
            body,
            boundary,
            len: 2,
        };
        while !form.skip_part(wire).await? {}
        let place = match self.is_file_name(path).await? {
            true => Place::File,
            false => Place::Folder,
        };
        let mut files = 0;
        while let Some(is_file) = form.next_part(wire, head, place, path).await? {
            if !is_file {
                while !form.skip_part(wire).await? {}
                continue;
            }
            if files > 0 && place == Place::File {
                return Err(ONE_FILE.into());
            }
            let mut upload = self.begin_upload(head, path, None).await?;
            if let Err(fault) = self.receive_part(wire, &mut form, &mut upload).await {
                self.storage.discard(upload).await;
                return Err(fault);
            }
            self.commit_upload(head, path, upload).await?;
            files += 1;
        }
        // The epilogue has no meaning.
        while form.body.read(wire, 0).await? > 0 {}
        match (files, head.fields.origin) {
            (0, _) => Err(Refused::bad("the form contains no file").into()),
            (_, Some(_)) => {
                *path = upload_folder(head)?;
                let folder = match place {
                    Place::Folder => path,
                    Place::File => parent(path),
                };
                see(wire, folder).await
            }
            (_, None) => done(wire, Status::Created).await,
        }
    }

    /// Returns true if the argument `dir` of a form names its file, as clients of the web server of study 1 send it.
    async fn is_file_name(&self, path: &str) -> Result<bool, Error> {
        if !names_file(path) {
            return Ok(false);
        }
        match self.storage.open(path).await {
            Ok(file) => Ok(self.storage.stat(&file).kind == Kind::File),
            Err(Error::NotFound) => Ok(true),
            Err(error) => Err(error),
        }
    }

    async fn receive_part<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        form: &mut Form<'_, '_>,
        upload: &mut S::Upload,
    ) -> Result<(), Fault> {
        loop {
            let (bytes, is_end) = form.data(wire).await?;
            self.storage.append(upload, &wire.out[..bytes]).await?;
            form.consume(wire, bytes, is_end);
            if is_end {
                return Ok(());
            }
        }
    }
}

/// Returns the time of the last change that a client of ownCloud sends, in s since 1970.
fn modified_s(head: &Head) -> Result<Option<u32>, Refused> {
    let text = head.field("X-OC-Mtime")?;
    let is_number = text.is_none_or(|text| text.bytes().all(|digit| digit.is_ascii_digit()));
    let time = text.map(str::parse).transpose();
    match time {
        Ok(time) if is_number => Ok(time),
        _ => Err(Refused::bad(
            "X-OC-Mtime is not a time from 1970 to 2106 in whole seconds",
        )),
    }
}

/// Meaning of the argument `dir` of a form.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Folder of the files.
    Folder,
    /// Path of the only file.
    File,
}

/// A form whose unread bytes are in the output buffer.
struct Form<'f, 'h> {
    body: &'f mut Body<'h>,
    boundary: &'f str,
    /// Bytes in the buffer.
    len: usize,
}

const DAMAGED: Fault = Fault::Refused(Refused::bad("the form is damaged or incomplete"));
const ONE_FILE: Refused =
    Refused::bad("the argument dir is the path of a file, and the form contains several");
pub(crate) const NO_FOLDER: Refused = Refused::new(Status::Conflict, "the folder does not exist");

impl Form<'_, '_> {
    /// Reads more bytes into the buffer.
    async fn fill<C: Read + Write, T: Timer>(
        &mut self,
        wire: &mut Wire<'_, C, T>,
    ) -> Result<(), Fault> {
        match self.body.read(wire, self.len).await? {
            0 => Err(DAMAGED),
            read => {
                self.len += read;
                Ok(())
            }
        }
    }

    /// Returns the number of bytes at the beginning of the buffer that belong to the part, and true if the
    /// delimiter follows.
    async fn data<C: Read + Write, T: Timer>(
        &mut self,
        wire: &mut Wire<'_, C, T>,
    ) -> Result<(usize, bool), Fault> {
        loop {
            if let Some(at) = find_delimiter(&wire.out[..self.len], self.boundary) {
                return Ok((at, true));
            }
            // The last bytes may be the beginning of the delimiter.
            if self.len >= delimiter_bytes(self.boundary) && self.len > OUT_BYTES / 2 {
                return Ok((self.len + 1 - delimiter_bytes(self.boundary), false));
            }
            self.fill(wire).await?;
        }
    }

    /// Removes bytes from the beginning of the buffer, and the delimiter if it follows.
    fn consume<C, T>(&mut self, wire: &mut Wire<'_, C, T>, bytes: usize, is_end: bool) {
        let used = match is_end {
            true => bytes + delimiter_bytes(self.boundary),
            false => bytes,
        };
        wire.out.copy_within(used..self.len, 0);
        self.len -= used;
    }

    /// Drops bytes of a part. Returns true at its end.
    async fn skip_part<C: Read + Write, T: Timer>(
        &mut self,
        wire: &mut Wire<'_, C, T>,
    ) -> Result<bool, Fault> {
        let (bytes, is_end) = self.data(wire).await?;
        self.consume(wire, bytes, is_end);
        Ok(is_end)
    }

    /// Reads the head of the next part. Returns true and sets the path if it is a file, and returns `None` after
    /// the last part.
    async fn next_part<C: Read + Write, T: Timer>(
        &mut self,
        wire: &mut Wire<'_, C, T>,
        head: &Head<'_>,
        at: Place,
        path: &mut Path,
    ) -> Result<Option<bool>, Fault> {
        while self.len < 2 {
            self.fill(wire).await?;
        }
        if wire.out[..2] == *b"--" {
            return Ok(None);
        }
        let end = loop {
            match find(&wire.out[..self.len], b"\r\n\r\n") {
                Some(end) => break end + 4,
                None if self.len == OUT_BYTES => return Err(DAMAGED),
                None => self.fill(wire).await?,
            }
        };
        let name = file_name(&wire.out[..end]).ok_or(DAMAGED)?;
        let is_file = !name.is_empty();
        if is_file {
            *path = place(head, at, name)?;
        }
        wire.out.copy_within(end..self.len, 0);
        self.len -= end;
        Ok(Some(is_file))
    }
}

/// Returns the path of an uploaded file. Its name may be a path, as in the web server of study 1.
fn place(head: &Head, at: Place, name: &str) -> Result<Path, Refused> {
    let path = match name.starts_with('/') {
        true => Path::try_from(name).map_err(|_| Error::TooLong)?,
        false => {
            let mut path = upload_folder(head)?;
            if at == Place::Folder {
                append(&mut path, name)?;
            }
            path
        }
    };
    check(&path)?;
    match is_reserved(&path) {
        true => Err(Error::Forbidden.into()),
        false => Ok(path),
    }
}

/// Responds without a body.
pub(crate) async fn done<C: Read + Write, T: Timer>(
    wire: &mut Wire<'_, C, T>,
    status: Status,
) -> Result<(), Fault> {
    wire.start(status).await?;
    end(wire, status).await
}

/// Ends a response without a body.
async fn end<C: Read + Write, T: Timer>(
    wire: &mut Wire<'_, C, T>,
    status: Status,
) -> Result<(), Fault> {
    wire.body(match status {
        Status::NoContent => Length::None,
        _ => Length::Known(0),
    })
    .await?;
    Ok(wire.finish().await?)
}

/// Sends a browser back to a folder.
pub(crate) async fn see<C: Read + Write, T: Timer>(
    wire: &mut Wire<'_, C, T>,
    folder: &str,
) -> Result<(), Fault> {
    wire.start(Status::SeeOther).await?;
    wire.bytes(b"Location: ").await?;
    super::list::url(wire, folder).await?;
    wire.bytes(b"\r\n").await?;
    wire.body(Length::Known(0)).await?;
    Ok(wire.finish().await?)
}
