//! Answers to any request, and answers that take too long.

use super::Before::{Nothing, Same};
use super::End::{Refused, Right};
use super::{BYTES, Case, FILE, TAG, announced, redirect, rest, whole};
use crate::common::hostile::{Reply, answer, chunked, raw};
use std::time::Duration;

/// Answers that are wrong for any request.
pub(super) const ANSWERS: &[Case] = &[
    ("whole", Nothing, |_| whole(), Right),
    (
        "nothing",
        Nothing,
        |_| raw("", b""),
        Refused("check the address"),
    ),
    (
        "another protocol",
        Nothing,
        |_| raw("SSH-2.0-OpenSSH_9.2\r\n", b""),
        Refused("check the address"),
    ),
    (
        "binary",
        Nothing,
        |_| raw("", &FILE),
        Refused("check the address"),
    ),
    (
        "no content",
        Nothing,
        |_| answer("204 No Content", TAG, b""),
        Refused("status 204"),
    ),
    (
        "not modified",
        Same,
        |_| answer("304 Not Modified", TAG, b""),
        Refused("status 304"),
    ),
    (
        "partial status",
        Nothing,
        |_| answer("299 Odd", TAG, &FILE),
        Refused("status 299"),
    ),
    (
        "redirect to itself",
        Nothing,
        |r| redirect("302 Found", r.target()),
        Refused("redirects to another address (/file)"),
    ),
    (
        "redirect to another server",
        Nothing,
        |_| redirect("301 Moved", "http://192.0.2.1/x"),
        Refused("(http://192.0.2.1/x)"),
    ),
    (
        "redirect of the rest",
        Same,
        |_| redirect("307 Temporary", "//192.0.2.1/x"),
        Refused("which is not followed"),
    ),
    (
        "redirect to a file",
        Nothing,
        |_| redirect("308 Moved", "file:///etc/passwd"),
        Refused("which is not followed"),
    ),
    (
        "redirect without a place",
        Nothing,
        |_| answer("303 See Other", "", b""),
        Refused("not stated"),
    ),
    (
        "redirect with escapes",
        Nothing,
        |_| redirect("302 Found", "\u{1b}[31m"),
        Refused(""),
    ),
    (
        "error with escapes",
        Nothing,
        |_| answer("500 Error", "", b"\x1b]0;x\x07\x1b[31mred\xc2\x9b2J\n"),
        Refused("\\u{1b}[31mred"),
    ),
    (
        "status with escapes",
        Nothing,
        |_| raw("HTTP/1.1 500 \x1b[31m\r\nContent-Length: 0\r\n\r\n", b""),
        Refused(""),
    ),
    (
        "endless error",
        Nothing,
        |_| {
            Reply::Endless(
                b"HTTP/1.1 500 No\r\n\r\n".to_vec(),
                vec![b'x'; 10_000],
                Duration::ZERO,
            )
        },
        Refused("status 500"),
    ),
    (
        "long error",
        Nothing,
        |_| answer("500 No", "", &[b'x'; 3000]),
        Refused("xxx... (status 500)"),
    ),
    (
        "unauthorised",
        Nothing,
        |_| answer("401 No", "", b""),
        Refused("--auth"),
    ),
    (
        "busy forever",
        Nothing,
        |_| answer("503 Busy", "Retry-After: 0\r\n", b""),
        Refused("busy"),
    ),
    (
        "busy once",
        Nothing,
        |r| match r.number {
            0 => answer("503 Busy", "Retry-After: -1\r\n", b""),
            _ => whole(),
        },
        Right,
    ),
    (
        "no length",
        Nothing,
        |_| announced(""),
        Refused("does not state the length"),
    ),
    (
        "no length, truncated",
        Same,
        |_| raw("HTTP/1.1 200 OK\r\n\r\n", &FILE[..9]),
        Refused("does not state the length"),
    ),
    (
        "HTTP/1.0",
        Nothing,
        |_| raw("HTTP/1.0 200 OK\r\nContent-Length: 200000\r\n\r\n", &FILE),
        Right,
    ),
    (
        "HTTP/1.0, no length",
        Nothing,
        |_| raw("HTTP/1.0 200 OK\r\n\r\n", &FILE),
        Refused("does not state the length"),
    ),
    (
        "HTTP/1.0, chunks",
        Nothing,
        |_| {
            raw(
                "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                b"1\r\nx\r\n0\r\n\r\n",
            )
        },
        Refused("does not state the length"),
    ),
    (
        "two lengths",
        Nothing,
        |_| announced("Content-Length: 200000\r\nContent-Length: 10\r\n"),
        Refused(""),
    ),
    (
        "negative length",
        Nothing,
        |_| announced("Content-Length: -1\r\n"),
        Refused(""),
    ),
    (
        "length with a sign",
        Nothing,
        |_| announced("Content-Length: +200000\r\n"),
        Refused(""),
    ),
    (
        "length in hexadecimal",
        Nothing,
        |_| announced("Content-Length: 0x30d40\r\n"),
        Refused(""),
    ),
    (
        "length beyond 64 bits",
        Nothing,
        |_| announced("Content-Length: 99999999999999999999\r\n"),
        Refused(""),
    ),
    (
        "length beyond the disk",
        Nothing,
        |_| announced("Content-Length: 18446744073709551615\r\n"),
        Refused("are free"),
    ),
    (
        "length beyond the disk, rest",
        Same,
        |_| announced("Content-Length: 18446744073709551615\r\n"),
        Refused("are free"),
    ),
    (
        "more than announced",
        Nothing,
        |_| {
            let body = [
                &FILE[..],
                b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
            ]
            .concat();
            raw(
                &format!("HTTP/1.1 200 OK\r\n{TAG}Content-Length: 200000\r\n\r\n"),
                &body,
            )
        },
        Right,
    ),
    (
        "less than announced, once",
        Nothing,
        |r| match r.start() {
            Some(start) => rest(start),
            None => raw(
                &format!("HTTP/1.1 200 OK\r\n{TAG}Content-Length: 200000\r\n\r\n"),
                &FILE[..77_777],
            ),
        },
        Right,
    ),
    (
        "less than announced",
        Nothing,
        |_| raw("HTTP/1.1 200 OK\r\nContent-Length: 200001\r\n\r\n", &FILE),
        Refused(""),
    ),
    (
        "length and chunks",
        Nothing,
        |_| {
            chunked(
                "200 OK",
                "Content-Length: 200000\r\n",
                &[&FILE],
                "0\r\n\r\n",
            )
        },
        Refused("does not state the length"),
    ),
    (
        "chunks",
        Nothing,
        |_| {
            chunked(
                "200 OK",
                TAG,
                &[&FILE[..1], &FILE[1..70_000], &FILE[70_000..]],
                "0\r\n\r\n",
            )
        },
        Right,
    ),
    (
        "chunks with a trailer",
        Nothing,
        |_| chunked("200 OK", TAG, &[&FILE], "0\r\nX-Sum: 1\r\n\r\n"),
        Right,
    ),
    (
        "chunks without an end",
        Nothing,
        |_| chunked("200 OK", "", &[&FILE], ""),
        Refused(""),
    ),
    (
        "chunks that end early",
        Nothing,
        |_| chunked("200 OK", "", &[&FILE], "100\r\nhalf"),
        Refused(""),
    ),
    (
        "chunk without a number",
        Nothing,
        |_| chunked("200 OK", TAG, &[], "zz\r\n"),
        Refused("check the address"),
    ),
    (
        "huge chunk",
        Nothing,
        |_| chunked("200 OK", TAG, &[], "fffffffffffffffff\r\nx"),
        Refused("check the address"),
    ),
    (
        "long chunk line",
        Nothing,
        |_| {
            let line = format!("5;{}\r\nhello\r\n0\r\n\r\n", "x".repeat(100_000));
            chunked("200 OK", TAG, &[], &line)
        },
        Refused("check the address"),
    ),
    (
        "compressed",
        Nothing,
        |_| answer("200 OK", "Content-Encoding: gzip\r\n", &FILE),
        Refused("encoded the file (gzip)"),
    ),
    (
        "compressed chunks",
        Nothing,
        |_| {
            raw(
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
                b"5\r\nhello\r\n0\r\n\r\n",
            )
        },
        Refused("does not state the length"),
    ),
    (
        "endless fields",
        Nothing,
        |_| {
            Reply::Endless(
                b"HTTP/1.1 200 OK\r\n".to_vec(),
                b"X: y\r\n".repeat(1000),
                Duration::ZERO,
            )
        },
        Refused("check the address"),
    ),
    (
        "time without sense",
        Nothing,
        |_| {
            answer(
                "200 OK",
                "Last-Modified: Fri, 99 Nov 99999 25:00:00 GMT\r\n",
                &FILE,
            )
        },
        Right,
    ),
    (
        "time in the far future",
        Nothing,
        |_| {
            answer(
                "200 OK",
                "Last-Modified: Fri, 31 Dec 9999 23:59:59 GMT\r\n",
                &FILE,
            )
        },
        Right,
    ),
    (
        "long tag",
        Nothing,
        |_| {
            answer(
                "200 OK",
                &format!("ETag: \"{}\"\r\n", "x".repeat(9000)),
                &FILE,
            )
        },
        Right,
    ),
];

/// Servers that send too slowly; the commands wait for two seconds only.
pub(super) const SLOW: &[Case] = &[
    (
        "silent",
        Nothing,
        |_| Reply::Hang(Vec::new()),
        Refused("did not answer within 2s"),
    ),
    (
        "silent in the head",
        Nothing,
        |_| Reply::Hang(b"HTTP/1.1 200 OK\r\nContent-".to_vec()),
        Refused("did not answer within 2s"),
    ),
    (
        "silent before the body",
        Nothing,
        |_| Reply::Hang(b"HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n".to_vec()),
        Refused("allow more with --timeout"),
    ),
    (
        "silent in an error",
        Nothing,
        |_| Reply::Hang(b"HTTP/1.1 500 No\r\nContent-Length: 20\r\n\r\nbecause".to_vec()),
        Refused("status 500"),
    ),
    (
        "slow head",
        Nothing,
        |_| {
            Reply::Endless(
                b"HTTP/1.1 200 OK\r\nX: ".to_vec(),
                b"x".to_vec(),
                Duration::from_millis(50),
            )
        },
        Refused("did not answer within 2s"),
    ),
    (
        "slow body",
        Nothing,
        |_| {
            let head = b"HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n".to_vec();
            Reply::Endless(head, b"x".to_vec(), Duration::from_millis(50))
        },
        Refused("fewer than 1000 bytes in 2s"),
    ),
    (
        "slow chunks",
        Nothing,
        |_| {
            let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n".to_vec();
            Reply::Endless(head, b"1\r\nx\r\n".to_vec(), Duration::from_millis(50))
        },
        Refused("fewer than 1000 bytes in 2s"),
    ),
    (
        "endless 100",
        Nothing,
        |_| {
            Reply::Endless(
                Vec::new(),
                b"HTTP/1.1 100 Continue\r\n\r\n".repeat(100),
                Duration::from_millis(1),
            )
        },
        Refused("check the address"),
    ),
    (
        "slow rest",
        Same,
        |r| match r.start() {
            Some(start) => {
                let head = format!(
                    "HTTP/1.1 206 OK\r\n{TAG}Content-Range: bytes {start}-199999/200000\r\nContent-Length: {}\r\n\r\n",
                    BYTES - start
                );
                Reply::Slow(head.into_bytes(), &FILE[start..], Duration::from_millis(50))
            }
            None => whole(),
        },
        Refused("fewer than 1000 bytes in 2s"),
    ),
];
