//! A binary recording of two streams, built from docs/formats.md: its CSV files and its ULog file have the same
//! contents. pyulog, which `cargo xtask test` installs, reads the ULog file.

use cardiograph_record::{export_csv, export_ulog};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, Cursor, Write};
use std::path::Path;
use std::process::Command;
use std::rc::Rc;
use std::{fs, iter};

const EPOCH: u32 = 77;
const BEGUN_US: u64 = 5_000_000;

fn crc32(bytes: &[u8]) -> u32 {
    let bit = |sum: u32, _| (sum >> 1) ^ ((sum & 1) * 0xEDB8_8320);
    let byte = |sum: u32, byte: &u8| (0..8).fold(sum ^ u32::from(*byte), bit);
    !bytes.iter().fold(u32::MAX, byte)
}

/// Blocks of a file under construction.
#[derive(Default)]
struct Builder {
    blocks: Vec<u8>,
    gaps: BTreeMap<u8, (u16, u32)>,
}

impl Builder {
    fn block(
        &mut self,
        kind: u8,
        stream: u8,
        first: u16,
        sample: u64,
        age_ms: u32,
        payload: &[u8],
    ) {
        let index = (self.blocks.len() / 512) as u32;
        let (gaps, lost) = self.gaps.get(&stream).copied().unwrap_or_default();
        let mut block = vec![];
        block.extend(EPOCH.to_le_bytes());
        block.extend(index.to_le_bytes());
        block.extend(if index == 0 { 12_u32 } else { 0 }.to_le_bytes());
        block.extend([kind, stream]);
        block.extend((payload.len() as u16).to_le_bytes());
        block.extend(first.to_le_bytes());
        block.extend(gaps.to_le_bytes());
        block.extend(sample.to_le_bytes());
        block.extend(lost.to_le_bytes());
        block.extend(age_ms.to_le_bytes());
        block.extend(payload);
        block.resize(508, 0);
        block.extend(crc32(&block).to_le_bytes());
        self.blocks.extend(block);
    }

    fn header(&mut self, stream: u8, sample_bytes: usize, columns: &[&str]) {
        let text = format!(
            "cardiograph recording 2\nprefix LOG\nnumber 12\nstreams 2\nfirst 0\nat_us {BEGUN_US}\n\
             sample_bytes {sample_bytes}\nsession run-3\nsettings a=1, b=2\ncolumns {}\n{}\n",
            columns.len(),
            columns.join("\n")
        );
        self.block(0, stream, 0, 0, 0, text.as_bytes());
    }

    fn gap(&mut self, stream: u8, gap: [u64; 4], age_ms: u32) {
        let (gaps, lost) = self.gaps.entry(stream).or_default();
        (*gaps, *lost) = (*gaps + 1, *lost + gap[1] as u32);
        let numbers = gap.iter().flat_map(|number| number.to_le_bytes());
        let payload: Vec<u8> = numbers.chain([0]).collect();
        self.block(2, stream, 0, gap[0], age_ms, &payload);
    }
}

/// Builds a recording. Stream 0 has a time column, stream 1 does not. The gaps of the two streams overlap,
/// and are longer than one ULog dropout can express.
fn recording() -> Vec<u8> {
    let mut file = Builder::default();
    file.header(
        0,
        20,
        &[
            "time_ms u32",
            "volts f64.3",
            "state u8",
            "level i16",
            "gain f32.2",
            "odd name! u8",
        ],
    );
    file.header(1, 4, &["timestamp u16", "value i16"]);
    let sample = |index: u32| {
        let time = (u32::MAX - 3_000).wrapping_add(index * 100);
        let mut sample = time.to_le_bytes().to_vec();
        sample.extend((f64::from(index) * 1.234_567 - 20.0).to_le_bytes());
        sample.push(index as u8);
        sample.extend((index as i16 * -300).to_le_bytes());
        sample.extend((index as f32 / 3.0).to_le_bytes());
        sample.push(7);
        sample
    };
    // The block contains 23 whole samples, and 12 bytes of the next sample.
    let bytes: Vec<u8> = (0..50).flat_map(sample).collect();
    file.block(1, 0, 0, 0, 100, &bytes[..472]);
    let other: Vec<u8> = (0..100_i16)
        .flat_map(|at| [at as u8, 0, at as u8, 0xFF])
        .collect();
    file.block(1, 1, 0, 0, 200, &other);
    file.block(1, 0, 8, 24, 300, &bytes[472..944]);
    file.gap(0, [47, 5, 6_000_000, 140_000_500], 135_000);
    file.gap(1, [100, 1, 6_500_000, 7_000_000], 135_001);
    file.gap(1, [101, 2, 150_000_000, 150_000_000], 146_000);
    file.block(1, 1, 0, 103, 147_000, &other[..40]);
    // A sample interrupted by a gap is never completed: a new sample begins after the gap.
    file.block(1, 0, 0, 52, 148_000, &sample(0));
    file.blocks
}

#[derive(Clone, Default)]
struct Shared(Rc<RefCell<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn csv_files(bytes: &[u8]) -> BTreeMap<u8, String> {
    let files = RefCell::new(BTreeMap::new());
    let open = |stream, streams| {
        assert_eq!(streams, 2);
        let file = Shared::default();
        files.borrow_mut().insert(stream, file.clone());
        Ok(file)
    };
    let exported = export_csv(bytes, open, |_| panic!("nothing is damaged")).unwrap();
    assert_eq!(
        (exported.streams, exported.samples, exported.lost),
        (2, 158, 8)
    );
    let files = files.into_inner().into_iter();
    files
        .map(|(stream, file)| (stream, String::from_utf8(file.0.take()).unwrap()))
        .collect()
}

#[test]
fn each_stream_has_a_csv_file() {
    let files = csv_files(&recording());
    let lines: Vec<&str> = files[&1].lines().collect();
    assert_eq!(lines[0], "timestamp,value,note");
    assert_eq!(
        lines[1],
        ",,\"#file number=12 first=0 at_us=5000000 session=run-3 settings=a=1, b=2\""
    );
    assert_eq!((lines[2], lines[3]), ("0,-256", "1,-255"));
    assert_eq!(
        lines[102],
        ",,#gap first=100 count=1 at_us=6500000 last_us=7000000 cause=busy"
    );
    assert_eq!(
        files[&0].lines().filter(|line| !line.contains('#')).count(),
        1 + 48
    );
}

/// Returns the rows of a CSV file without those that the recorder adds.
fn rows(text: &str) -> Vec<Vec<String>> {
    let rows = text.lines().skip(1).filter(|row| !row.contains('#'));
    rows.map(|row| row.split(',').map(str::to_string).collect())
        .collect()
}

fn python(directory: &Path, program: &str, args: &[&str]) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = root.join("target/python/bin").join(program);
    assert!(
        path.exists(),
        "pyulog is missing; run `cargo xtask test`, which installs it"
    );
    let output = Command::new(path)
        .args(args)
        .current_dir(directory)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

#[test]
#[ignore = "needs python3 and pyulog"]
fn pyulog_reads_the_contents_of_the_csv_files() {
    let bytes = recording();
    let csv = csv_files(&bytes);
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut log = vec![];
    export_ulog(Cursor::new(&bytes), &mut log, |_| ()).unwrap();
    fs::write(directory.path().join("log.ulg"), log).unwrap();
    python(directory.path(), "ulog2csv", &["log.ulg"]);
    let read =
        |topic: &str| fs::read_to_string(directory.path().join(format!("log_{topic}_0.csv")));
    let mut compared = 0;
    for (stream, kinds) in [(0, &["u", "3", "u", "u", "f2", "u"][..]), (1, &["u", "u"])] {
        let text = read(&format!("log_{stream}")).unwrap();
        let (ours, theirs) = (rows(&csv[&stream]), rows(&text));
        assert_eq!(ours.len(), theirs.len());
        for (ours, theirs) in iter::zip(ours, theirs) {
            for ((ours, theirs), kind) in iter::zip(iter::zip(&ours, &theirs[1..]), kinds) {
                let text = match *kind {
                    "3" => format!("{:.3}", theirs.parse::<f64>().unwrap()),
                    "f2" => format!("{:.2}", theirs.parse::<f32>().unwrap()),
                    _ => theirs.clone(),
                };
                assert_eq!(*ours, text);
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 48 * 6 + 110 * 2);
    let header = read("log_1").unwrap().lines().next().unwrap().to_string();
    assert_eq!(header, "timestamp,timestamp_,value");
    assert_eq!(
        rows(&read("gap").unwrap()),
        [
            ["6000000", "47", "5", "140000500", "0", "0"],
            ["6500000", "100", "1", "7000000", "1", "0"],
            ["150000000", "101", "2", "150000000", "1", "0"],
        ]
    );
    let times = |topic: &str| {
        let times = rows(&read(topic).unwrap()).into_iter();
        times
            .map(|row| row[0].parse().unwrap())
            .collect::<Vec<u64>>()
    };
    // The time column wraps around after 31 samples.
    let from = u64::from(u32::MAX) - 3_000;
    let due: Vec<u64> = (0..47).map(|at| (from + at * 100) * 1000).collect();
    assert_eq!(times("log_0")[..47], due);
    // 100 samples in 200 ms, and ten between 147 s and the gap at 150 s: times never decrease.
    let times = times("log_1");
    assert_eq!(
        (times[0], times[99]),
        (BEGUN_US + 2_000, BEGUN_US + 200_000)
    );
    assert_eq!((times[100], times[109]), (150_200_000, 152_000_000));
    let script = "import pyulog; l = pyulog.ULog('log.ulg'); \
                  print([d.duration for d in l.dropouts], l.msg_info_dict['recording'], l.msg_info_dict['session'])";
    // The dropouts are one interval of 134,000.5 ms, and a single instant.
    let output = python(directory.path(), "python3", &["-c", script]);
    assert_eq!(output.trim(), "[65535, 65535, 2931, 1] LOG 12 run-3");
}
