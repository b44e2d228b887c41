//! Malformed files, and the error message of each.

use cardiograph_trace::{
    About, Operation, OperationKind, ReadOptions, Trace, read, read_from, write_parquet,
};
use parquet::data_type::{Int32Type, Int64Type};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::path::Path;
use std::sync::Arc;

fn sentence(bytes: &[u8]) -> String {
    match read_from("run7.csv", bytes, &ReadOptions::default()) {
        Ok(_) => panic!("read: {}", String::from_utf8_lossy(bytes)),
        Err(error) => error.to_string(),
    }
}

const UNKNOWN_FORMAT: &str = "unknown format; if it is a table, name the column of the latencies and their unit, as in \
 cardiograph analyze run7.csv --latency-column 2 --time-unit us; `cardiograph analyze --help` lists the formats";

const MAGOD2: &str = "Test information:\nBytes per line,100\nLines per file,2\n\
    Amount of files,1\n,\nTest results (us):\nFile 0  start,File 0  end, \n";

/// Contents of a file, and the expected message after the file name `run7.csv`.
const CASES: &[(&str, &str)] = &[
    ("", ": the file is empty; measure or record again"),
    (" \n\n", ": the file is empty; measure or record again"),
    (
        "index,start_us,end_us\n",
        ": contains no reads or writes; record the trace again",
    ),
    (
        "index,start_us,end_us\n0,0,5\nwrite,0,0,512,5,9\n",
        ", line 3: expected 3 fields, found 6; correct the row, or split the file here if two \
         were joined",
    ),
    (
        "index,start_us,end_us\n0,0,5\nindex,start_us,end_us\n",
        ", line 3: the header with the column index appears again, so two tables were joined here; to read the first one, run \
         head -n 2 run7.csv | cardiograph analyze -",
    ),
    (
        "index,start_us,end_us\n0,0,5\n\0\0\0\0",
        ", line 3: NUL bytes, typical of a preallocated file after a power loss; to read the \
         data before them, keep only the first 28 bytes: head -c 28 run7.csv",
    ),
    (
        "\0\0\0\0",
        ", line 1: the file begins with NUL bytes, typical of a preallocated file after a power loss, so nothing can \
         be read; record it again",
    ),
    (
        "index,start_us,end_us\n0,-4,5\n",
        ", line 2: start_us is negative (-4); if the clock started below 0, add a constant: \
         awk -F, -v OFS=, 'NR > 1 { $2 += 4 } 1' run7.csv | cardiograph analyze -",
    ),
    (
        "index,start_us,end_us\n0,5,1203\n1,991,1300\n",
        ", line 3: the time 991 is earlier than the previous time (1203); if the counter wrapped \
         or two runs were joined, split the file here",
    ),
    (
        "index,start_us,end_us\n0,5,3\n",
        ", line 2: the end time 3 is earlier than the start time 5 of the same operation; correct \
         the row, or delete it if it is incomplete",
    ),
    (
        "index,start_us,end_us\n0,0,9223372036854775808\n",
        ", line 2: end_us is 9223372036854775808, which is out of range (the limit is 2^63 - 1, \
         for times in ns); correct the row",
    ),
    (
        "index,start_us,end_us\n0,0,9223372036854776\n",
        ", line 2: end_us is 9223372036854776, which is out of range (the limit is 2^63 - 1, for \
         times in ns); correct the row",
    ),
    (
        "operation,file,offset,length,start_ns,end_ns\nwrite,4294967296,0,512,0,9\n",
        ", line 2: file is 4294967296, which does not fit in 32 bits; correct the row",
    ),
    (
        "operation,file,offset,length,start_ns,end_ns\nerase,0,0,512,0,9\n",
        ", line 2: unknown operation \"erase\"; use one of those in docs/formats.md",
    ),
    (
        "operation,file,offset,length,start_ns,end_ns\nwrite,0,9223372036854775807,1,0,9\n",
        ": the offsets and lengths add up to more than 2^63 - 1 bytes; correct them",
    ),
    (
        "operation,file,offset,length,start_ns,end_ns\nwrite,0,9223372036854775806,1,0,9\n\
         write,1,9223372036854775806,1,9,9\nwrite,0,9223372036854775807,1,9,9\n",
        ": the offsets and lengths add up to more than 2^63 - 1 bytes; correct them",
    ),
    (
        "0.5\n130\nx\n",
        ", line 3: the latency is \"x\", not a number; correct the row, or split the file here if \
         two were joined",
    ),
    (
        "0.5\n-1\n",
        ", line 2: the latency is negative (-1), so the clock went back during the write; delete the row",
    ),
    (
        "0, 50, 1, 512, 0\n5, 60, 1, 512\n",
        ", line 2: expected 5 fields, found 4; correct the row, or split the file here if two \
         were joined",
    ),
    (
        "5, 50, 1, 512, 0\n3, 60, 1, 512, 0\n",
        ", line 2: the time 3 is earlier than the previous time (5); if the counter wrapped or two \
         runs were joined, split the file here",
    ),
    (
        "2, 3845, 1, 0, 0\n",
        ", line 1: a block size of 0 marks an average over several operations; record again \
         without log_avg_msec",
    ),
    (
        "0, 50, 2, 512, 0\n",
        ": contains no reads or writes; record the trace again",
    ),
    (
        "Iteration,FileSize(KB),BlockSize(B),WriteSpeed(MB/s),Latency(ms),MinLatency(ms),\
         MaxLatency(ms),IOPS\n1,64,512,fast,1,1,1,1\n",
        ", line 2: WriteSpeed(MB/s) is \"fast\", not a number; correct the row, or split the file \
          here if two were joined",
    ),
    (
        "Iteration,FileSize(KB),BlockSize(B),WriteSpeed(MB/s),Latency(ms),MinLatency(ms),\
         MaxLatency(ms),IOPS\n1,64,512,0,1,1,1,1\n",
        ", line 2: WriteSpeed(MB/s) is 0 but must be above 0; correct the row, or delete it if \
          the write failed",
    ),
    (
        "Iteration,FileSize(KB),BlockSize(B),WriteSpeed(MB/s),Latency(ms),MinLatency(ms),\
         MaxLatency(ms),IOPS\n1,64,512,-3.9,1,1,1,1\n",
        ", line 2: WriteSpeed(MB/s) is -3.9 but must be above 0; correct the row, or delete it if \
          the write failed",
    ),
    (
        "Iteration,FileSize(KB),BlockSize(B),WriteSpeed(MB/s),Latency(ms),MinLatency(ms),\
         MaxLatency(ms),IOPS\n1,64,512,1e300,1,1,1,1\n",
        ", line 2: WriteSpeed(MB/s) is 1e300, which is out of range (the limit is 2^63 - 1, for \
          times in ns); correct the row",
    ),
    (
        "Iteration,FileSize(KB),BlockSize(B),WriteSpeed(MB/s),Latency(ms),MinLatency(ms),\
         MaxLatency(ms),IOPS\n1,5000000000000000,1,1e9,1,1,1,1\n\
         2,5000000000000000,1,1e9,1,1,1,1\n",
        ", line 3: the file sizes up to this row add up to more than 2^63 - 1 bytes; correct the \
          row",
    ),
    (
        "Iteration,FileSize(KB),BlockSize(B),WriteSpeed(MB/s),Latency(ms),MinLatency(ms),\
         MaxLatency(ms),IOPS\n1,64,512,3.9,1,705,2.5,1\n",
        ", line 2: MinLatency(ms) is above MaxLatency(ms); correct the row, or delete it",
    ),
    (
        "Iteration,FileSize(KB),BlockSize(B),WriteSpeed(MB/s),Latency(ms),MinLatency(ms),\
         MaxLatency(ms),IOPS\n1,64,512,1e-320,1,1,1,1\n",
        ", line 2: at this WriteSpeed(MB/s) the file would take over 292 years; correct the row, \
          or delete it",
    ),
    (
        "Time[ms],U[V]\n10,1.0\n",
        ": fewer than two samples, so there is no interval between samples; record for longer",
    ),
    (
        "Time[ms],U[V]\n10,1.0\nx,1.0\ny,1.0\n",
        ", line 3: the time is \"x\", not a number; correct the row, or split the file here if two were joined",
    ),
    (
        "Time[ms],U[V]\n10,1.0\n20,1.0\n3\n4\n5\n",
        ", line 4: expected 2 fields, found 1, and 3 rows of the file are no samples for this or another reason; name the \
         column of the times with --time-column, or correct the rows",
    ),
    (
        "Time[ms],U[V]\n10,1.0\n20",
        ": fewer than two samples, so there is no interval between samples; record for longer",
    ),
    (
        "Time[ms],U[V]\n10,1.0\n20,\0\0\n",
        ", line 3: NUL bytes, typical of a preallocated file after a power loss; to read the \
         data before them, keep only the first 24 bytes: head -c 24 run7.csv",
    ),
];

#[test]
fn every_malformed_text_has_its_message() {
    for (text, expected) in CASES {
        assert_eq!(sentence(text.as_bytes()), format!("run7.csv{expected}"));
    }
}

/// Each case has rows below the header of MagOD2 results, or another header, and the expected message.
#[test]
fn thesis_results() {
    let cases = [
        (
            format!("{MAGOD2}10,20, \n"),
            ": the results contain 1 of the 2 lines that \"Lines per file\" declares; copy the file \
             again, or correct \"Lines per file\" to read the lines present",
        ),
        (
            format!("{MAGOD2}10,20, \n30,40, \n50,60, \n"),
            ", line 10: the results contain more than the 2 lines that \"Lines per file\" declares; split \
             the file here if two were joined, or correct \"Lines per file\"",
        ),
        (
            format!("{MAGOD2}10,20, \n30"),
            ", line 9: the last row is truncated (1 of 2 fields); delete this row to read the rows before it",
        ),
        (
            format!("{MAGOD2}10,20, \n15,40, \n"),
            ", line 9: the time 15 is earlier than the previous time (20); if the counter wrapped \
             or two runs were joined, split the file here",
        ),
        (
            format!("{MAGOD2}10,20, \n30,4294967296, \n"),
            ", line 9: the time is 4294967296, which does not fit in 32 bits; correct the row",
        ),
        (
            MAGOD2.replace("files,1", "files,1000000000"),
            ": the results header names 1 file, but \"Amount of files\" is 1000000000; copy the \
             file again, or correct \"Amount of files\"",
        ),
        (
            MAGOD2.replace("File 0  end", "File 1  end"),
            ", line 7: the results header is not \"File 0  start,File 0  end,...\"; copy \
             the file again",
        ),
        (
            "Test information:\nBytes per line,100\n".to_owned(),
            ": the file contains test information, but no results; run the test again",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(sentence(text.as_bytes()), format!("run7.csv{expected}"));
    }
}

#[test]
fn control_characters_are_escaped() {
    let times = "time_\u{1},y\n".to_owned() + &"5,1\n9,1\n2,1\n1,1\n".repeat(5);
    assert!(sentence(times.as_bytes()).contains(r"time_\u{1}"));
    let words = "tick\u{1} write took 812 us\n".repeat(3);
    assert!(sentence(words.as_bytes()).contains("s/^tick. write"));
}

#[test]
fn other_formats() {
    assert_eq!(
        sentence(b"name,value\nx,1\n"),
        format!("run7.csv: {UNKNOWN_FORMAT}")
    );
    assert_eq!(
        sentence(b"\x7FELF\x80\x81\xFF garbage \xC0\n"),
        "run7.csv: binary data in an unknown format, neither Parquet nor ULog; `cardiograph analyze --help` lists the formats"
    );
    let recording = include_bytes!("../../../tests/data/recordings/REC00002.BIN");
    assert_eq!(
        sentence(recording),
        "run7.csv: this is a binary recording; convert it first, with cardiograph export run7.csv --csv recording.csv"
    );
    assert_eq!(
        sentence(b"\xFF\xFEi\0n\0"),
        "run7.csv: the text is UTF-16; save it as UTF-8, or run iconv -f UTF-16 -t UTF-8 run7.csv | cardiograph analyze -"
    );
}

#[test]
fn an_overlong_line() {
    let mut text = b"index,start_us,end_us\n".to_vec();
    text.resize(1 << 20, b'1');
    assert_eq!(
        sentence(&text),
        "run7.csv, line 2: longer than 262144 bytes, too long for a row of a trace; check that \
         this is the right file"
    );
    // The first line may also be too long, or consist of the zeros of a preallocated file.
    assert!(sentence(&text[100..]).contains("longer than 262144 bytes"));
    assert!(sentence(&vec![0; 1 << 20]).contains("NUL bytes"));
}

#[test]
fn missing_file_and_directory() {
    let error = |name| match read(Path::new(name), &ReadOptions::default()) {
        Ok(_) => panic!("read {name}"),
        Err(error) => error.to_string(),
    };
    assert_eq!(
        error("no/such.csv"),
        "no/such.csv: no such file; check the name and the directory"
    );
    assert_eq!(error("."), ".: is a directory; name the files in it");
}

fn parquet() -> Vec<u8> {
    let mut trace = Trace::new(About::default());
    for index in 0..1000 {
        let operation = Operation {
            kind: OperationKind::Write,
            file: 0,
            offset_bytes: 512 * index,
            length_bytes: 512,
            start_ns: 1000 * index,
            end_ns: 1000 * index + 900 - index % 7,
        };
        trace.push(&operation).expect("times go forward");
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace.parquet");
    write_parquet(&trace, &path).unwrap();
    std::fs::read(path).unwrap()
}

/// Builds a Parquet file with one row of the given values, in the order of the columns.
fn parquet_row(codes: [i32; 2], numbers: [i64; 4]) -> Vec<u8> {
    let schema = "message trace { required int32 operation; required int32 file; \
        required int64 offset; required int64 length; required int64 start_ns; \
        required int64 end_ns; }";
    let schema = Arc::new(parse_message_type(schema).unwrap());
    let mut bytes = Vec::new();
    let mut file = SerializedFileWriter::new(&mut bytes, schema, Arc::default()).unwrap();
    let mut columns = file.next_row_group().unwrap();
    for value in codes {
        let mut column = columns.next_column().unwrap().unwrap();
        let writer = column.typed::<Int32Type>();
        writer.write_batch(&[value], None, None).unwrap();
        column.close().unwrap();
    }
    for value in numbers {
        let mut column = columns.next_column().unwrap().unwrap();
        let writer = column.typed::<Int64Type>();
        writer.write_batch(&[value], None, None).unwrap();
        column.close().unwrap();
    }
    columns.close().unwrap();
    file.close().unwrap();
    bytes
}

#[test]
fn parquet_rows() {
    assert_eq!(
        sentence(&parquet_row([2, 0], [0, 512, 0, 9])),
        "run7.csv, row 1: unknown operation \"2\"; use one of those in docs/formats.md"
    );
    assert_eq!(
        sentence(&parquet_row([0, 0], [0, 512, -3, 9])),
        "run7.csv, row 1: start_ns is negative (-3); correct or delete the row"
    );
    assert_eq!(
        sentence(&parquet_row([0, 0], [0, 512, 9, 3])),
        "run7.csv, row 1: the end time 3 is earlier than the start time 9 of the same operation; \
         correct the row, or delete it if it is incomplete"
    );
    assert_eq!(
        sentence(&parquet_row([0, 0], [i64::MAX, 512, 3, 9])),
        "run7.csv: the offsets and lengths add up to more than 2^63 - 1 bytes; correct them"
    );
}

#[test]
fn truncated_parquet() {
    let bytes = parquet();
    for length in [4, 11, 100, bytes.len() - 1] {
        assert_eq!(
            sentence(&bytes[..length]),
            "run7.csv: the Parquet file is truncated (no footer); copy it again"
        );
    }
}

#[test]
fn foreign_parquet() {
    // The column name appears in the schema and in the metadata of the column.
    let mut bytes = parquet();
    for at in 0..bytes.len() - 6 {
        if &bytes[at..at + 6] == b"offset" {
            bytes[at] = b'O';
        }
    }
    assert_eq!(
        sentence(&bytes),
        "run7.csv: the columns are operation (INT32), file (INT32), Offset (INT64), length \
         (INT64), start_ns (INT64), end_ns (INT64), but a trace has operation, file, offset, \
         length, start_ns, end_ns (see docs/formats.md); convert it, or export it as CSV"
    );
}

/// If any single byte is damaged, reading returns a trace or an error message.
#[test]
fn damaged_parquet_never_panics() {
    let bytes = parquet();
    for at in 4..bytes.len() - 4 {
        for change in [0x01, 0x80, 0xFF] {
            let mut damaged = bytes.clone();
            damaged[at] ^= change;
            if let Err(error) = read_from("run7.csv", &damaged[..], &ReadOptions::default()) {
                assert!(error.to_string().starts_with("run7.csv"));
            }
        }
    }
}
