//! Folders: as JSON, and as a page that needs no scripts.

use crate::path::{parent, unavailable};
use crate::status::{Closed, Fault, Status};
use crate::storage::EMPTY_NAME;
use crate::text::{Html, Json, ShortDate, Url, pieces};
use crate::wire::{Length, Wire};
use crate::{Entry, Instrument, Kind, Server, Storage, Timer};
use cardiograph_recorder::is_protected;
use embedded_io_async::{Read, Write};

/// Policy of the server's own pages: no scripts, no frames.
pub(crate) const PAGE_FIELDS: &str = "Content-Type: text/html; charset=utf-8\r\n\
    Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; \
    frame-ancestors 'none'; base-uri 'none'\r\n\
    Referrer-Policy: same-origin\r\nCache-Control: no-store\r\n";

/// Policy of a folder's page: the scripts of this server only.
#[cfg(feature = "page")]
const FOLDER_FIELDS: &str = "Content-Type: text/html; charset=utf-8\r\n\
    Content-Security-Policy: default-src 'none'; script-src 'self'; connect-src 'self'; \
    style-src 'self' 'unsafe-inline'; form-action 'self'; \
    frame-ancestors 'none'; base-uri 'none'\r\n\
    Referrer-Policy: same-origin\r\nCache-Control: no-store\r\n";
#[cfg(not(feature = "page"))]
const FOLDER_FIELDS: &str = PAGE_FIELDS;

/// Links to the style and the script of the page, at the end of a title.
const TITLE_END: &str = match cfg!(feature = "page") {
    true => {
        "</title><link rel=\"stylesheet\" href=\"/page/page.css\">\
        <script src=\"/page/live.js\" defer></script>\
        <script src=\"/page/page.js\" defer></script><h1>"
    }
    false => "</title><h1>",
};

/// Beginning of a page, up to its title.
pub(crate) const PAGE_START: &str = "<!DOCTYPE html><html lang=\"en\"><meta charset=\"utf-8\">\
    <meta name=\"viewport\" content=\"width=device-width\">\
    <style>body{font:16px sans-serif;margin:1em}td{padding:.2em .8em}td form,div form{display:inline}\
    td:nth-child(2){text-align:right}</style><title>";

impl<S: Storage, I: Instrument, T: Timer> Server<'_, S, I, T> {
    /// Sends a folder as JSON: the fields of the web server of study 1, and length, time and state.
    pub(crate) async fn list<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        path: &str,
    ) -> Result<(), Fault> {
        let mut listing = self.storage.list(path).await?;
        let mut name = EMPTY_NAME;
        wire.start_json().await?;
        wire.bytes(b"[").await?;
        let mut separator = "";
        while let Some(entry) = self.storage.next(&mut listing, &mut name).await? {
            if is_protected(entry.name) {
                continue;
            }
            wire.text(format_args!("{separator}")).await?;
            json_entry(wire, &entry, path).await?;
            separator = ",\n";
            if wire.is_head() {
                break;
            }
        }
        wire.bytes(b"]\n").await?;
        Ok(wire.finish().await?)
    }

    /// Sends the page of a folder.
    pub(crate) async fn page<C: Read + Write>(
        &self,
        wire: &mut Wire<'_, C, T>,
        path: &str,
    ) -> Result<(), Fault> {
        let mut listing = self.storage.list(path).await?;
        let mut name = EMPTY_NAME;
        wire.closes |= wire.is_old();
        wire.start(Status::Ok).await?;
        wire.bytes(FOLDER_FIELDS.as_bytes()).await?;
        wire.body(Length::Unknown).await?;
        wire.bytes(PAGE_START.as_bytes()).await?;
        html(wire, path).await?;
        wire.bytes(TITLE_END.as_bytes()).await?;
        html(wire, path).await?;
        wire.bytes(b"</h1><div>").await?;
        if path != "/" {
            wire.bytes(b"<a href=\"").await?;
            url(wire, parent(path)).await?;
            wire.bytes(b"\">Parent folder</a> | ").await?;
        }
        wire.bytes(
            b"<form><button name=\"tar\" value=\"1\">All files as tar</button></form> | \
            <a href=\"/sessions\">Sessions</a> | <a href=\"/days\">Days</a> | \
            <a href=\"/status\">Status</a></div><table>",
        )
        .await?;
        while let Some(entry) = self.storage.next(&mut listing, &mut name).await? {
            if is_protected(entry.name) || wire.is_head() {
                continue;
            }
            html_entry(wire, &entry, path, self.config.is_read_only).await?;
        }
        wire.bytes(b"</table>").await?;
        if !self.config.is_read_only {
            wire.bytes(
                b"<form method=\"post\" enctype=\"multipart/form-data\" action=\"/edit?dir=",
            )
            .await?;
            url(wire, path).await?;
            wire.bytes(b"\"><p><input type=\"file\" name=\"data\" multiple> <button>Upload</button></p></form>")
                .await?;
        }
        wire.bytes(b"</html>\n").await?;
        Ok(wire.finish().await?)
    }
}

async fn json_entry<C: Read + Write, T: Timer>(
    wire: &mut Wire<'_, C, T>,
    entry: &Entry<'_>,
    folder: &str,
) -> Result<(), Closed> {
    let kind = match entry.stat.kind {
        Kind::File => "file",
        Kind::Directory => "dir",
    };
    wire.text(format_args!("{{\"type\":\"{kind}\",\"name\":\""))
        .await?;
    for piece in pieces(entry.name) {
        wire.text(format_args!("{}", Json(piece))).await?;
    }
    wire.bytes(b"\"").await?;
    if entry.stat.kind == Kind::File {
        wire.text(format_args!(",\"size\":{}", entry.stat.bytes))
            .await?;
    }
    if let Some(modified_s) = entry.stat.modified_s {
        wire.text(format_args!(",\"time\":{modified_s}")).await?;
    }
    if entry.stat.is_growing {
        wire.bytes(b",\"growing\":true").await?;
    }
    if let Some(reason) = unavailable(folder, entry) {
        wire.text(format_args!(",\"unavailable\":\"{}\"", Json(reason)))
            .await?;
    }
    wire.bytes(b"}").await
}

async fn html_entry<C: Read + Write, T: Timer>(
    wire: &mut Wire<'_, C, T>,
    entry: &Entry<'_>,
    folder: &str,
    is_read_only: bool,
) -> Result<(), Closed> {
    let is_file = entry.stat.kind == Kind::File;
    let reason = unavailable(folder, entry);
    wire.bytes(b"<tr><td>").await?;
    if reason.is_none() {
        wire.bytes(b"<a href=\"").await?;
        entry_url(wire, folder, entry).await?;
        wire.bytes(b"\">").await?;
    }
    html(wire, entry.name).await?;
    wire.bytes(if is_file { b"" } else { b"/" as &[u8] })
        .await?;
    if reason.is_none() {
        wire.bytes(b"</a>").await?;
    }
    wire.bytes(b"<td>").await?;
    if is_file {
        wire.text(format_args!("{} B", entry.stat.bytes)).await?;
    }
    wire.bytes(b"<td>").await?;
    if entry.stat.is_growing {
        wire.bytes(b"recording").await?;
    } else if let Some(modified_s) = entry.stat.modified_s {
        wire.text(format_args!("{} UTC", ShortDate(modified_s)))
            .await?;
    }
    wire.bytes(b"<td>").await?;
    match reason {
        Some(reason) => wire.text(format_args!("no link: {}", Html(reason))).await?,
        None => entry_links(wire, entry, folder, is_read_only).await?,
    }
    wire.bytes(b"\n").await
}

/// Writes the links and buttons of an entry's operations. Programs that mirror a site follow links but press no buttons, so
/// that they get each file once.
async fn entry_links<C: Read + Write, T: Timer>(
    wire: &mut Wire<'_, C, T>,
    entry: &Entry<'_>,
    folder: &str,
    is_read_only: bool,
) -> Result<(), Closed> {
    let (start, end): (&[u8], &[u8]) = match entry.stat.kind {
        Kind::File => (b"<a href=\"", b"\" download>download</a>"),
        Kind::Directory => (
            b"<form action=\"",
            b"\"><button name=\"tar\" value=\"1\">tar</button></form>",
        ),
    };
    wire.bytes(start).await?;
    entry_url(wire, folder, entry).await?;
    wire.bytes(end).await?;
    if !is_read_only && !entry.stat.is_growing {
        wire.bytes(b" <form action=\"").await?;
        entry_url(wire, folder, entry).await?;
        wire.bytes(b"\"><button name=\"delete\" value=\"1\">delete</button></form>")
            .await?;
    }
    Ok(())
}

async fn entry_url<C: Read + Write, T: Timer>(
    wire: &mut Wire<'_, C, T>,
    folder: &str,
    entry: &Entry<'_>,
) -> Result<(), Closed> {
    if folder != "/" {
        url(wire, folder).await?;
    }
    wire.bytes(b"/").await?;
    url(wire, entry.name).await
}

/// Writes text as HTML.
pub(crate) async fn html<C: Read + Write, T: Timer>(
    wire: &mut Wire<'_, C, T>,
    text: &str,
) -> Result<(), Closed> {
    for piece in pieces(text) {
        wire.text(format_args!("{}", Html(piece))).await?;
    }
    Ok(())
}

/// Writes a path as part of a URL.
pub(crate) async fn url<C: Read + Write, T: Timer>(
    wire: &mut Wire<'_, C, T>,
    path: &str,
) -> Result<(), Closed> {
    for piece in pieces(path) {
        wire.text(format_args!("{}", Url(piece))).await?;
    }
    Ok(())
}
