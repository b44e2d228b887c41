//! Lists, files, ranges and entity tags.

mod memory;

use memory::Memory;
use memory::client::{CONFIG, answers, get, raw, request};
use memory::socket::End;

fn numbers(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 7 / 3) as u8).collect()
}

#[test]
fn a_file_arrives_whole() {
    let memory = Memory::default();
    let bytes = numbers(5000);
    memory.file("/a.bin", &bytes);
    let answer = get(&memory, "/a.bin");
    assert_eq!((answer.status, answer.is_whole), (200, true));
    assert_eq!(answer.body, bytes);
    assert_eq!(answer.field("Content-Length"), Some("5000"));
    assert_eq!(answer.field("Accept-Ranges"), Some("bytes"));
    assert_eq!(
        answer.field("Content-Type"),
        Some("application/octet-stream")
    );
    assert_eq!(answer.field("Content-Security-Policy"), Some("sandbox"));
    assert_eq!(answer.field("X-Content-Type-Options"), Some("nosniff"));
    assert_eq!(
        answer.field("Last-Modified"),
        Some("Sun, 09 Sep 2001 01:46:40 GMT")
    );
    let head = request(&memory, "HEAD /a.bin", "");
    assert_eq!(head.fields, answer.fields);
    assert!(head.body.is_empty());
}

#[test]
fn a_list_has_the_fields_of_the_stock_server_and_more() {
    let memory = Memory::default();
    memory.directory("/LOG00000");
    memory.file("/a \"b\".csv", b"12345");
    memory.growing("/c.csv", b"1", 7);
    memory.file("/.hidden", b"1");
    memory.file("/x.PART", b"1");
    memory.file("/CARDIOGR.JNL", b"1");
    let answer = get(&memory, "/list?dir=/");
    assert_eq!(answer.status, 200);
    assert_eq!(
        answer.text(),
        "[{\"type\":\"dir\",\"name\":\"LOG00000\"},\n\
         {\"type\":\"file\",\"name\":\"a \\\"b\\\".csv\",\"size\":5,\"time\":1000000000},\n\
         {\"type\":\"file\",\"name\":\"c.csv\",\"size\":1,\"time\":1000000000,\"growing\":true}]\n"
    );
    assert_eq!(get(&memory, "/list?dir=/LOG00000").text(), "[]\n");
    assert_eq!(get(&memory, "/list?dir=/none").status, 404);
    assert_eq!(get(&memory, "/list?dir=/c.csv").status, 409);
    assert_eq!(get(&memory, "/list").status, 400);
}

#[test]
fn two_requests_on_one_connection() {
    let memory = Memory::default();
    memory.file("/a.txt", b"first");
    memory.file("/b.txt", b"second");
    let requests = b"GET /a.txt HTTP/1.1\r\nHost: localhost\r\n\r\nGET /b.txt HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let sent = raw(&memory, CONFIG, vec![requests.to_vec()], End::Close);
    let answers = answers(&sent, &["GET", "GET"]);
    assert_eq!(answers[0].body, b"first");
    assert_eq!(answers[1].body, b"second");
}
