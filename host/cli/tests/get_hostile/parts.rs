//! Answers to a request for the rest of a file.

use super::Before::{Nothing, Old, Same};
use super::End::{Refused, Right};
use super::{BYTES, Case, FILE, KEPT, OLD_TAG, TAG, part, rest, to_rest, whole, with_range};
use crate::common::hostile::{answer, chunked, raw};

/// Answers that do not fit the request for the rest of the file.
pub(super) const PARTS: &[Case] = &[
    ("rest", Same, |r| r.start().map_or_else(whole, rest), Right),
    (
        "416, plain",
        Nothing,
        |_| answer("416 No", "Content-Range: bytes */0\r\n", b""),
        Refused("status 416"),
    ),
    (
        "416, plain, no length",
        Nothing,
        |_| answer("416 No", "", b""),
        Refused("status 416"),
    ),
    (
        "416, always",
        Same,
        |_| answer("416 No", "Content-Range: bytes */5\r\n", b""),
        Refused("status 416"),
    ),
    (
        "416, same length, other file",
        Old,
        |r| {
            to_rest(
                r,
                "416 No",
                &format!("Content-Range: bytes */{KEPT}\r\n"),
                b"",
            )
        },
        Right,
    ),
    (
        "416, same length, longer file",
        Same,
        |r| {
            to_rest(
                r,
                "416 No",
                &format!("Content-Range: bytes */{KEPT}\r\n"),
                b"",
            )
        },
        Right,
    ),
    (
        "416, same length, no tag",
        Same,
        |r| match r.head.starts_with("HEAD") {
            true => answer("200 OK", "", &FILE[..KEPT]),
            false => to_rest(
                r,
                "416 No",
                &format!("Content-Range: bytes */{KEPT}\r\n"),
                b"",
            ),
        },
        Right,
    ),
    (
        "416, shorter",
        Same,
        |r| to_rest(r, "416 No", "Content-Range: bytes */10\r\n", b""),
        Right,
    ),
    (
        "416, no range",
        Same,
        |r| to_rest(r, "416 No", "", b""),
        Right,
    ),
    (
        "416, nonsense",
        Same,
        |r| to_rest(r, "416 No", "Content-Range: bytes 0-1/100000\r\n", b""),
        Right,
    ),
    (
        "206, other tag",
        Old,
        |r| r.start().map_or_else(whole, rest),
        Right,
    ),
    (
        "206, other tag again",
        Same,
        |r| match r.start() {
            Some(start) => part(start, BYTES - 1, OLD_TAG),
            None => whole(),
        },
        Right,
    ),
    (
        "206, no tag",
        Same,
        |r| match r.start() {
            Some(start) => part(start, BYTES - 1, ""),
            None => whole(),
        },
        Right,
    ),
    (
        "206, weak tag",
        Same,
        |r| match r.start() {
            Some(start) => part(start, BYTES - 1, "ETag: W/\"new\"\r\n"),
            None => whole(),
        },
        Right,
    ),
    (
        "206, two tags",
        Same,
        |r| match r.start() {
            Some(start) => part(start, BYTES - 1, &format!("{TAG}{OLD_TAG}")),
            None => whole(),
        },
        Right,
    ),
    (
        "206, 10 bytes",
        Same,
        |r| match (r.start(), r.number) {
            (Some(start), 0) => part(start, start + 9, TAG),
            (Some(start), _) => rest(start),
            _ => whole(),
        },
        Right,
    ),
    (
        "206, 10 bytes, always",
        Same,
        |r| {
            r.start()
                .map_or_else(whole, |start| part(start, start + 9, TAG))
        },
        Refused("ended before the end"),
    ),
    (
        "206, plain",
        Nothing,
        |_| part(0, 9, TAG),
        Refused("not requested"),
    ),
    (
        "206, plain, whole",
        Nothing,
        |_| part(0, BYTES - 1, TAG),
        Refused("not requested"),
    ),
    (
        "206, from the start",
        Same,
        |r| with_range(r, "bytes 0-9/200000", &FILE[..10]),
        Refused("another part"),
    ),
    (
        "206, further",
        Same,
        |r| with_range(r, "bytes 100001-199999/200000", &FILE[KEPT + 1..]),
        Refused("another part"),
    ),
    (
        "206, backwards",
        Same,
        |r| with_range(r, "bytes 100000-5/200000", b""),
        Refused("another part"),
    ),
    (
        "206, beyond the end",
        Same,
        |r| with_range(r, "bytes 100000-199999/150000", &FILE[KEPT..]),
        Refused("another part"),
    ),
    (
        "206, unknown length",
        Same,
        |r| with_range(r, "bytes 100000-199999/*", &FILE[KEPT..]),
        Refused("another part"),
    ),
    (
        "206, huge",
        Same,
        |r| {
            with_range(
                r,
                "bytes 100000-18446744073709551614/18446744073709551615",
                b"x",
            )
        },
        Refused("another part"),
    ),
    (
        "206, beyond 64 bits",
        Same,
        |r| with_range(r, "bytes 100000-199999/99999999999999999999", &FILE[KEPT..]),
        Refused("another part"),
    ),
    (
        "206, other unit",
        Same,
        |r| with_range(r, "lines 100000-199999/200000", &FILE[KEPT..]),
        Refused("another part"),
    ),
    (
        "206, nonsense",
        Same,
        |r| with_range(r, "\u{e9}", &FILE[KEPT..]),
        Refused("unreadable Content-Range"),
    ),
    (
        "206, no range",
        Same,
        |r| to_rest(r, "206 Partial Content", TAG, &FILE[KEPT..]),
        Refused("not requested"),
    ),
    (
        "206, two ranges",
        Same,
        |r| {
            let range = "bytes 100000-199999/200000\r\nContent-Range: bytes 0-9/200000";
            with_range(r, range, &FILE[KEPT..])
        },
        Refused("contradictory"),
    ),
    (
        "206, multipart",
        Same,
        |r| {
            let fields = format!("{TAG}Content-Type: multipart/byteranges; boundary=b\r\n");
            to_rest(r, "206 Partial Content", &fields, b"--b\r\n\r\nx\r\n--b--")
        },
        Refused("not requested"),
    ),
    (
        "206, shorter than announced",
        Same,
        |r| with_range(r, "bytes 100000-199999/200000", &FILE[KEPT + 1..]),
        Refused("another part"),
    ),
    (
        "206, longer than announced",
        Same,
        |r| with_range(r, "bytes 100000-199999/200000", &FILE[KEPT - 1..]),
        Refused("another part"),
    ),
    (
        "206, chunks",
        Same,
        |r| match r.start() {
            Some(start) => {
                let fields = format!("{TAG}Content-Range: bytes {start}-199999/200000\r\n");
                chunked(
                    "206 Partial Content",
                    &fields,
                    &[&FILE[start..]],
                    "0\r\n\r\n",
                )
            }
            None => whole(),
        },
        Right,
    ),
    (
        "206, too many chunks",
        Same,
        |r| match r.start() {
            Some(start) => {
                let fields = format!("{TAG}Content-Range: bytes {start}-199999/200000\r\n");
                chunked(
                    "206 Partial Content",
                    &fields,
                    &[&FILE[start..], b"x"],
                    "0\r\n\r\n",
                )
            }
            None => whole(),
        },
        Refused("more bytes than it announced"),
    ),
    (
        "206, too few chunks",
        Same,
        |r| match (r.start(), r.number) {
            (Some(start), 0) => {
                let fields = format!("{TAG}Content-Range: bytes {start}-199999/200000\r\n");
                chunked(
                    "206 Partial Content",
                    &fields,
                    &[&FILE[start..start + 5000]],
                    "0\r\n\r\n",
                )
            }
            (Some(start), _) => rest(start),
            _ => whole(),
        },
        Right,
    ),
    (
        "206, compressed",
        Same,
        |r| {
            let fields = format!(
                "{TAG}Content-Encoding: gzip\r\nContent-Range: bytes 100000-199999/200000\r\n"
            );
            to_rest(r, "206 Partial Content", &fields, &FILE[KEPT..])
        },
        Refused("encoded"),
    ),
    ("200 for a range", Same, |_| whole(), Right),
    ("200 for a range, other file", Old, |_| whole(), Right),
    (
        "200 with a range",
        Nothing,
        |_| {
            answer(
                "200 OK",
                &format!("{TAG}Content-Range: bytes 0-199999/200000\r\n"),
                &FILE,
            )
        },
        Refused("not requested"),
    ),
    (
        "another file after each break",
        Nothing,
        |r| {
            let tag = format!("ETag: \"{}\"\r\n", r.number);
            raw(
                &format!("HTTP/1.1 200 OK\r\n{tag}Content-Length: 200000\r\n\r\n"),
                &FILE[..5000 * (r.number + 1)],
            )
        },
        Refused("started over 5 times"),
    ),
];
