//! Changes other than uploads: create, remove, rename.

use super::condition::Target;
use super::list::{PAGE_FIELDS, PAGE_START, html, url};
use super::upload::{done, see};
use crate::body::Body;
use crate::dav::Depth;
use crate::head::Head;
use crate::path::parent;
use crate::range::tag_of;
use crate::route::names_file;
use crate::status::{Fault, Refused, Status};
use crate::wire::{Length, Wire};
use crate::{Error, Instrument, Kind, Server, Stat, Storage, Timer};
use core::hash::Hasher;
use embedded_io_async::{Read, Write};

impl<S: Storage, I: Instrument, T: Timer> Server<'_, S, I, T> {
    /// Creates an empty file or a folder, depending on the name.
    pub(crate) async fn create<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        head: &Head<'_>,
        path: &str,
    ) -> Result<(), Fault> {
        if !names_file(path) {
            self.new_directory(head, path, Status::Conflict).await?;
            return done(wire, Status::Created).await;
        }
        match self.storage.open(path).await {
            Ok(_) => return Err(Error::Exists.into()),
            Err(Error::NotFound) => (),
            Err(error) => return Err(error.into()),
        }
        let upload = self.begin_upload(head, path, Some(0)).await?;
        self.commit_upload(head, path, upload).await?;
        done(wire, Status::Created).await
    }

    /// Creates a folder for MKCOL.
    pub(crate) async fn make_directory<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        head: &Head<'_>,
        path: &str,
    ) -> Result<(), Fault> {
        self.new_directory(head, path, Status::MethodNotAllowed)
            .await?;
        done(wire, Status::Created).await
    }

    async fn new_directory(
        &self,
        head: &Head<'_>,
        path: &str,
        if_exists: Status,
    ) -> Result<(), Fault> {
        let _turn = self.turn(head, path, Target::Any).await?;
        match self.storage.make_directory(path).await {
            Ok(()) => Ok(()),
            Err(error @ Error::Exists) => Err(Refused::new(if_exists, error.reason()).into()),
            Err(error @ Error::NotFound) => {
                Err(Refused::new(Status::Conflict, error.reason()).into())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Removes a file, or a folder with its contents. With depth 0, a folder must be empty.
    pub(crate) async fn remove<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        head: &Head<'_>,
        path: &str,
    ) -> Result<(), Fault> {
        let is_recursive = Depth::of(head)? == Depth::Infinity;
        self.remove_path(head, path, is_recursive).await?;
        done(wire, Status::NoContent).await
    }

    async fn remove_path(
        &self,
        head: &Head<'_>,
        path: &str,
        is_recursive: bool,
    ) -> Result<(), Fault> {
        let _turn = self.turn(head, path, Target::Existing).await?;
        self.storage.remove(path, is_recursive).await?;
        self.locks().forget(path);
        Ok(())
    }

    /// Sends a page that asks whether to remove a path.
    pub(crate) async fn confirm_removal<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        path: &str,
    ) -> Result<(), Fault> {
        let file = self.storage.open(path).await?;
        let stat = self.storage.stat(&file);
        if stat.is_growing {
            return Err(Error::Recording.into());
        }
        let key = self.key(path, &stat);
        wire.closes |= wire.is_old();
        wire.start(Status::Ok).await?;
        wire.bytes(PAGE_FIELDS.as_bytes()).await?;
        wire.body(Length::Unknown).await?;
        wire.bytes(PAGE_START.as_bytes()).await?;
        wire.bytes(b"Delete</title><h1>Delete ").await?;
        html(wire, path).await?;
        wire.bytes(match stat.kind {
            Kind::File => b"?</h1>".as_slice(),
            Kind::Directory => b" and everything in it?</h1>",
        })
        .await?;
        wire.bytes(b"<form method=\"post\" action=\"").await?;
        url(wire, path).await?;
        wire.text(format_args!(
            "?delete=1\"><input type=\"hidden\" name=\"key\" value=\"{key:016x}\">\
             <button>Delete</button> <a href=\""
        ))
        .await?;
        url(wire, parent(path)).await?;
        wire.bytes(b"\">Cancel</a></form></html>\n").await?;
        Ok(wire.finish().await?)
    }

    /// Removes a path if the form has the key from the page that asked.
    pub(crate) async fn remove_with_key<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        head: &Head<'_>,
        body: &mut Body<'_>,
        path: &str,
    ) -> Result<(), Fault> {
        let form = body.form(wire).await?;
        let given = form.text::<16>("key")?;
        let given = given.and_then(|key| u64::from_str_radix(&key, 16).ok());
        let kind = self.check_key(path, given).await?;
        self.remove_path(head, path, kind == Kind::Directory)
            .await?;
        match head.fields.origin {
            Some(_) => see(wire, parent(path)).await,
            None => done(wire, Status::NoContent).await,
        }
    }

    /// Checks the key for removing a path; returns its kind.
    async fn check_key(&self, path: &str, given: Option<u64>) -> Result<Kind, Fault> {
        let file = self.storage.open(path).await?;
        let stat = self.storage.stat(&file);
        if given != Some(self.key(path, &stat)) {
            return Err(Refused::new(
                Status::Forbidden,
                "the page is out of date; open it again and confirm",
            )
            .into());
        }
        Ok(stat.kind)
    }

    /// Returns the key for removing a path in its present state.
    #[expect(
        deprecated,
        reason = "the only keyed hash of the core library, and its algorithm does not matter to anyone else"
    )]
    fn key(&self, path: &str, stat: &Stat) -> u64 {
        let secret = self.config.secret;
        let mut hasher = core::hash::SipHasher::new_with_keys(secret, !secret.rotate_left(17));
        hasher.write(path.as_bytes());
        hasher.write(tag_of(stat).as_bytes());
        hasher.finish()
    }
}
