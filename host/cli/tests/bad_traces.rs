//! Truncated, mixed-up and unrelated files as traces: one sentence with the file, the line and the remedy, exit
//! code 2, and no change in the directory.

use crate::common;

use common::{directory, done, refused};
use std::fs;

/// Name of the file, its first bytes, its remaining bytes, and words that the message must contain.
type Case<'a> = (&'a str, &'a [u8], &'a [u8], &'a [&'a str]);

#[test]
fn text_that_is_not_a_trace() {
    let own = directory();
    let row = b"index,start_us,end_us\n0,0,272\n";
    let own_csv = b"operation,file,offset,length,start_ns,end_ns\n";
    let cases: &[Case] = &[
        (
            "short-row",
            row,
            b"1,27\n",
            &["line 3", "expected 3 fields, found 2", "correct the row"],
        ),
        (
            "mixed-up",
            row,
            b"write,0,0,512,5,9\n",
            &["line 3", "split the file here"],
        ),
        ("joined", row, row, &["line 3", "again", "head -n 2"]),
        (
            "nul",
            row,
            b"\0\0\0\0\0",
            &["line 3", "NUL bytes", "head -c"],
        ),
        ("nothing-but-nul", b"", &[0; 4096], &["NUL bytes"]),
        (
            "negative",
            row,
            b"1,-5,9\n",
            &["line 3", "negative (-5)", "add a constant"],
        ),
        (
            "backward",
            row,
            b"1,300,400\n2,200,500\n",
            &["line 4", "earlier", "split the file"],
        ),
        (
            "end-first",
            row,
            b"1,300,299\n",
            &["line 3", "earlier than the start", "correct"],
        ),
        (
            "no-rows",
            b"index,start_us,end_us\n",
            b"",
            &["no reads or writes", "record the trace again"],
        ),
        ("empty", b"", b"", &["empty", "record again"]),
        (
            "2-to-63",
            row,
            b"1,272,9223372036854775808\n",
            &[
                "line 3",
                "9223372036854775808",
                "2^63 - 1",
                "correct the row",
            ],
        ),
        (
            "sum",
            own_csv,
            b"write,0,0,9223372036854775807,0,9\nwrite,0,0,9223372036854775807,9,10\n",
            &["2^63 - 1 bytes", "correct them"],
        ),
        (
            "erase",
            own_csv,
            b"erase,0,0,512,0,9\n",
            &["line 2", "\"erase\"", "use one of those"],
        ),
        (
            "one-sample",
            b"Time[ms],U[V]\n",
            b"10,1.0\n",
            &["two samples", "record for longer"],
        ),
        (
            "junk",
            b"\x7FELF\x80\x81\xFF",
            b" junk \xC0\n",
            &["unknown format, neither Parquet nor ULog"],
        ),
        (
            "prose",
            b"Dear reader,\n",
            b"this is a letter.\n",
            &["unknown format", "--latency-column 2"],
        ),
        ("escape", row, b"1,\x1B[2J,9\n", &["line 3", "not a number"]),
    ];
    for (name, head, tail, words) in cases {
        let file = format!("{name}.csv");
        fs::write(own.path().join(&file), [*head, *tail].concat()).unwrap();
        let words = [&[file.as_str()], *words].concat();
        refused(own.path(), &["analyze", &file], &words);
        // One bad file among good ones: nothing is written.
        let args = ["analyze", &file, "--json", "f.json", "--html", "f.html"];
        refused(own.path(), &args, &words);
    }
    fs::create_dir(own.path().join("folder")).unwrap();
    for (file, words) in [
        ("none.csv", ["none.csv: no such file", "check the name"]),
        ("folder", ["folder: is a directory", "name the files in it"]),
    ] {
        refused(own.path(), &["analyze", file], &words);
    }
}

#[test]
fn parquet_that_is_not_a_trace() {
    let own = directory();
    let args = ["bench", "--workload", "magod2-4.1", "--trace", "t.parquet"];
    done(own.path(), &args);
    let bytes = fs::read(own.path().join("t.parquet")).unwrap();
    let cut = "truncated (no footer); copy it again";
    for length in [4, 100, bytes.len() / 2, bytes.len() - 1] {
        fs::write(own.path().join("cut.parquet"), &bytes[..length]).unwrap();
        refused(
            own.path(),
            &["analyze", "cut.parquet"],
            &["cut.parquet", cut],
        );
    }
    // The footer is present, but part of the data that it describes is missing.
    let (head, tail) = bytes.split_at(bytes.len() / 2);
    let holed = [&head[..4], tail].concat();
    fs::write(own.path().join("holed.parquet"), holed).unwrap();
    let words = ["holed.parquet", "damaged", "copy it again"];
    refused(own.path(), &["analyze", "holed.parquet"], &words);
}
