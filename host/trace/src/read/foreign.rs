//! Tables inside other files: compressed, in a binary container, drawn with lines, or in the log of a tracer.
//! They are refused with a command that extracts the table.

use super::error::{Fault, Problem};
use super::remedy::ANALYZE;

/// First bytes of a file, its format, and the command that prints its table.
const CONTAINERS: &[(&[u8], &str, &str)] = &[
    (b"\x1f\x8b", "a gzip-compressed file", "gzip -dc FILE"),
    (
        b"\x28\xb5\x2f\xfd",
        "a zstd-compressed file",
        "zstd -dc FILE",
    ),
    (b"\xfd7zXZ\0", "an xz-compressed file", "xz -dc FILE"),
    (b"BZh", "a bzip2-compressed file", "bzip2 -dc FILE"),
    (b"\x93NUMPY", "a NumPy array", NUMPY),
    (b"ARROW1", "an Arrow file", ARROW),
];

const NUMPY: &str =
    "python3 -c 'import numpy, sys; numpy.savetxt(sys.stdout, numpy.load(sys.argv[1]))' FILE";
const ARROW: &str = "python3 -c 'import pandas, sys; pandas.read_feather(sys.argv[1]).to_csv(sys.stdout, index=False)' \
                     FILE";

/// First bytes of a file whose table has to be extracted with another program, its format, and the remedy.
const PROGRAMS: &[(&[u8], &str, &str)] = &[
    (
        b"PK\x03\x04",
        "this is a ZIP archive or a spreadsheet",
        "unpack it, or save the sheet as CSV",
    ),
    (
        b"\xd0\xcf\x11\xe0",
        "this is a spreadsheet (.xls)",
        "save the sheet as CSV",
    ),
    (
        b"SQLite format 3\0",
        "this is an SQLite database",
        "sqlite3 FILE .tables lists its tables; run sqlite3 -header -csv FILE 'select * from TABLE' | cardiograph analyze -",
    ),
    (
        b"\x89HDF\r\n\x1a\n",
        "this is an HDF5 file",
        "export the dataset as CSV",
    ),
    (
        b"H Product:Blackbox",
        "this is a Betaflight blackbox log",
        "decode it with blackbox_decode FILE (of blackbox-tools), and pass the CSV file that it writes",
    ),
    (
        b"\xa3\x95\x80\x80",
        "this is an ArduPilot DataFlash log",
        DATAFLASH,
    ),
    (
        b"FMT, 128",
        "this is an ArduPilot DataFlash log in text form",
        DATAFLASH,
    ),
    (
        b"\x89MCAP0\r\n",
        "this is an MCAP file",
        "mcap info FILE lists its topics; write the times of one with the mcap Python package, and pass them as CSV",
    ),
    (
        b"#ROSBAG V",
        "this is a rosbag",
        "rosbag info FILE lists its topics; run rostopic echo -p -b FILE /TOPIC > topic.csv, and pass topic.csv",
    ),
    (b"MDF     ", "this is an MDF measurement (.mf4)", ASAMMDF),
    (
        b"UnFinMF ",
        "this is an unfinished MDF measurement (.mf4)",
        ASAMMDF,
    ),
    (
        b"TDSm",
        "this is a LabVIEW TDMS file",
        "tdmsinfo FILE (of the Python package npTDMS) lists its channels; write one with its time_track() as CSV",
    ),
    (
        b"LOGG",
        "this is a Vector BLF log of a CAN bus",
        "run can_logconvert FILE log.csv (of the Python package python-can), and pass log.csv with --group-by \
         arbitration_id",
    ),
    (
        b"RIFF",
        "this is a RIFF file, such as WAV",
        "its samples have no times, so it does not show which are missing; soxi FILE prints its length, to compare with \
         the time of recording",
    ),
    (
        b"MATLAB 5.0 MAT-file",
        "this is a MATLAB file",
        "load it with scipy.io.loadmat, and write its times as CSV",
    ),
];

const DATAFLASH: &str = "run mavlogdump.py --format csv --types IMU FILE > imu.csv (of the Python package pymavlink), and pass \
                         imu.csv";
const ASAMMDF: &str = "run asammdf FILE, or python3 -c 'import asammdf, sys; asammdf.MDF(sys.argv[1]).to_dataframe().to_csv(\
                       \"table.csv\")' FILE, and pass table.csv with --time-column 1 --time-unit s";

/// Refuses binary files with a known table inside.
pub(super) fn refuse_binary(head: &[u8]) -> Result<(), Fault> {
    let starts = |(magic, ..): &&(&[u8], &str, &str)| head.starts_with(magic);
    if let Some(&(_, what, command)) = CONTAINERS.iter().find(starts) {
        let command = format!("{command} | {ANALYZE}");
        return Err(Problem::Prose { what, command }.in_file());
    }
    let found = PROGRAMS.iter().find(starts);
    match found
        .map(|(_, what, remedy)| (*what, *remedy))
        .or_else(|| own(head))
    {
        Some((what, remedy)) => Err(Problem::Container { what, remedy }.in_file()),
        None => Ok(()),
    }
}

/// Cardiograph's own binary recordings: the header follows the fields of the first block, which were fewer in version
/// 0.1.
fn own(head: &[u8]) -> Option<(&'static str, &'static str)> {
    let has_header = |at: usize| {
        let header = head.get(at..);
        header.is_some_and(|header| header.starts_with(b"cardiograph recording "))
    };
    (has_header(28) || has_header(36)).then_some((
        "this is a binary recording",
        "convert it first, with cardiograph export FILE --csv recording.csv",
    ))
}

/// Refuses text whose first rows are in another notation.
pub(super) fn refuse_text(head: &[u8], line: &[u8], below: &[u8]) -> Result<(), Fault> {
    let found = str::from_utf8(line)
        .ok()
        .zip(str::from_utf8(below).ok())
        .and_then(|(line, below)| {
            drawn(line, below)
                .or_else(|| printed_by_pandas(head))
                .or_else(|| in_one_row(line, below))
        });
    match found.or_else(|| strace(head)) {
        Some((what, command)) => Err(Problem::Prose { what, command }.in_file()),
        None => Ok(()),
    }
}

type Found = Option<(&'static str, String)>;

/// Tables of Markdown, psql, mysql and others, whose columns are separated by `|`.
fn drawn(line: &str, below: &str) -> Found {
    let is_rule = |text: &str| {
        let has = |part: &str| text.contains(part);
        (has("|") || has("+"))
            && (has("--") || has("=="))
            && text.chars().all(|c| "|+-=: ".contains(c))
    };
    let is_drawn = is_rule(line) && below.starts_with('|') || line.contains('|') && is_rule(below);
    is_drawn.then(|| {
        let edits = "-e '/^[-+=|: ]*$/d' -e '/^\\([0-9]+ rows?\\)$/d' -e 's/^[| ]+//' -e 's/[| ]+$//' \
                     -e 's/ *\\| */,/g'";
        (
            "a table with drawn borders",
            format!("sed -E {edits} FILE | {ANALYZE}"),
        )
    })
}

/// A printed DataFrame: names above rows that begin with 0, 1, 2 and have one column more.
fn printed_by_pandas(head: &[u8]) -> Found {
    let mut lines = head.split(|byte| *byte == b'\n');
    let names = lines.next()?;
    let columns = words(names).count();
    let is_printed = names.starts_with(b" ")
        && !names.contains(&b',')
        && (0..3).all(|number: u8| {
            lines.next().is_some_and(|row| {
                words(row).count() == columns + 1 && words(row).next() == Some(&[b'0' + number])
            })
        });
    is_printed.then(|| {
        let command = format!("sed '1s/^/index /' FILE | {ANALYZE}");
        ("a printed DataFrame", command)
    })
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
}

/// An array in the notation of C, MATLAB or NumPy, or numbers separated by spaces.
fn in_one_row(line: &str, below: &str) -> Found {
    const NUMBERS_MIN: usize = 20;
    let start = line.rfind(['[', '{', '(']).map_or(0, |at| at + 1);
    let is_nested = line[..start].matches(['[', '{', '(']).count() > 2;
    let is_json = line.starts_with('[') && line.contains(',');
    let list = line[start..].trim_end_matches([']', '}', ')', ';', ' ']);
    let mut count = 0;
    let are_numbers = list
        .split([',', ' ', '\t'])
        .filter(|text| !text.is_empty())
        .inspect(|_| count += 1)
        .all(|text| text.parse::<f64>().is_ok_and(f64::is_finite));
    // Without a bracket, several rows are a table.
    let is_list = start > 0 && count > 1 || below.is_empty() && count >= NUMBERS_MIN;
    (are_numbers && is_list && !is_nested && !is_json).then(|| {
        (
            "a list of numbers in one row",
            format!(
                "sed 's/.*[[{{(]//' FILE | grep -oE '[0-9.]+' | {ANALYZE} with the --time-unit of the numbers"
            ),
        )
    })
}

/// The log of `strace -T`: `write(3, "..."..., 512) = 512 <0.000812>`.
fn strace(head: &[u8]) -> Found {
    const LINES_MAX: usize = 200;
    let is_write = |line: &&[u8]| {
        let line = line.trim_ascii_end();
        let Some(text) = line.strip_suffix(b">") else {
            return false;
        };
        let Some(at) = text.windows(2).rposition(|pair| pair == b" <") else {
            return false;
        };
        let is_call = |name: &[u8]| line.windows(name.len()).any(|part| part == name);
        let seconds = str::from_utf8(&text[at + 2..]).ok();
        (is_call(b"write(") || is_call(b"write64("))
            && seconds.is_some_and(|text| text.parse::<f64>().is_ok())
    };
    let mut lines = head.split(|byte| *byte == b'\n').take(LINES_MAX);
    lines.find(is_write)?;
    let rows = "s/^.*write(64)?\\(.* = ([0-9]+) <([0-9.]+)>$/\\3,\\2/p";
    Some((
        "an strace log",
        format!("(echo latency_s,bytes; sed -nE '{rows}' FILE) | {ANALYZE}"),
    ))
}
