//! Every message about a file that a user may see, in one place.

use super::Problem;
use crate::read::lines::LINE_BYTES_MAX;
use crate::read::remedy::ANALYZE;
use crate::shell::quoted;
use std::{fmt, io};

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Open(error) if error.kind() == io::ErrorKind::NotFound => {
                write!(f, "no such file; check the name and the directory")
            }
            Problem::Open(error) => {
                write!(f, "cannot be opened ({error}); check its permissions")
            }
            Problem::Read(error) => {
                write!(
                    f,
                    "read error ({error}); copy the file to another disk first"
                )
            }
            Problem::Directory => write!(f, "is a directory; name the files in it"),
            Problem::Empty => write!(f, "the file is empty; measure or record again"),
            Problem::NoRows => write!(f, "contains no reads or writes; record the trace again"),
            Problem::OneSample => write!(
                f,
                "fewer than two samples, so there is no interval between samples; record for longer"
            ),
            Problem::Unknown => write!(f, "{UNKNOWN_FORMAT}"),
            Problem::UnknownTable { columns, time, latency } => {
                write!(f, "unknown format; its columns, each with its first value, are {columns}; ")?;
                match (time, latency) {
                    (Some(time), None) => write!(
                        f,
                        "if it is a recording, name the column with the times of its samples: cardiograph analyze FILE --time-column {time} \
                         (with --time-unit us if the name of the column has no unit)"
                    ),
                    (Some(time), Some(latency)) => write!(
                        f,
                        "if it is a recording, name the column with the times of its samples: cardiograph analyze FILE --time-column {time} \
                         (with --time-unit us if the name of the column has no unit); if each row is a write, also name the column with \
                         its latency: --latency-column {latency}"
                    ),
                    (None, Some(latency)) => write!(
                        f,
                        "if each row is a write, name the column with its latency: cardiograph analyze FILE --latency-column {latency} \
                         (with --time-unit us if the name of the column has no unit)"
                    ),
                    (None, None) => write!(
                        f,
                        "if one of them contains the latency of each write, name it and its unit: --latency-column NAME --time-unit us"
                    ),
                }
            }
            Problem::NotText => write!(f, "binary data in an unknown format, neither Parquet nor ULog; `cardiograph analyze --help` lists the formats"),
            Problem::Encoding { name } => write!(
                f,
                "the text is {name}; save it as UTF-8, or run iconv -f {name} -t UTF-8 FILE | {ANALYZE}"
            ),
            Problem::Nul { bytes_before: 0 } => f.write_str(
                "the file begins with NUL bytes, typical of a preallocated file after a power loss, so nothing can be \
                 read; record it again"
            ),
            Problem::Nul { bytes_before } => write!(
                f,
                "NUL bytes, typical of a preallocated file after a power loss; to read the data before them, keep only \
                 the first {bytes_before} bytes: head -c {bytes_before} FILE"
            ),
            Problem::LongLine => write!(
                f,
                "longer than {LINE_BYTES_MAX} bytes, too long for a row of a trace; check that \
                 this is the right file"
            ),
            Problem::Fields { expected, found } => write!(
                f,
                "expected {expected} {}, found {found}; correct the row, or split the file here if two \
         were joined",
                fields(*expected),
            ),
            Problem::Truncated { expected, found } => write!(
                f,
                "the last row is truncated ({found} of {expected} fields); delete this row to \
                 read the rows before it"
            ),
            Problem::AmbiguousDate { column, text } => write!(
                f,
                "{column} is \"{text}\", whose day, month and year can be read in more than one order; run \
                 cardiograph analyze FILE --date-order dmy (day first), mdy or ymd"
            ),
            Problem::NotANumber { column, text } if text.is_empty() || text == "-" => write!(
                f,
                "{column} is \"{text}\", a missing value; to leave out such rows, run \
                 sed -E '1!{{/(^|[,;]) *-? *([,;]|$)/d}}' FILE > complete.csv"
            ),
            Problem::NotANumber { column, text } if is_missing(text) => write!(
                f,
                "{column} is \"{text}\", a missing value; to leave out such rows, run \
                 grep -viw '{}' FILE > complete.csv",
                text.trim_start_matches(['+', '-'])
            ),
            Problem::NotANumber { column, text } => write!(
                f,
                "{column} is \"{text}\", not a number; correct the row, or split the file here if two \
                 were joined"
            ),
            Problem::Negative { column, text } => {
                write!(f, "{column} is negative ({text}); correct or delete the row")
            }
            Problem::NegativeLatency { column, text } => write!(
                f,
                "{column} is negative ({text}), so the clock went back during the write; delete the row"
            ),
            Problem::NegativeTime {
                column,
                text,
                cause,
                command,
            } => write!(f, "{column} is negative ({text}); {cause}: {command}"),
            Problem::ManySources { column } => write!(
                f,
                "the column \"{column}\" has more than 1000 different texts, too many for sources of samples; name another \
                 column with --group-by"
            ),
            Problem::OddRows { rows, reason } => write!(
                f,
                "{reason}, and {rows} rows of the file are no samples for this or another reason; name the column of the times \
                 with --time-column, or correct the rows"
            ),
            Problem::HeaderAgain { column, rows } => write!(
                f,
                "the header with the column {column} appears again, so two tables were joined here; to read the first one, run \
                 head -n {rows} FILE | {ANALYZE}"
            ),
            Problem::Length { text } => write!(
                f,
                "the length is {text}, not a whole number of bytes; name its unit in the header (size_KiB, size_MB)"
            ),
            Problem::Label { text } => write!(
                f,
                "the first column is \"{text}\" instead of a number; delete the row if it is a total, or correct it"
            ),
            Problem::LastIsTotal => write!(
                f,
                "the last latency is the sum of all others, so it seems to be a total; remove it: sed '$d' FILE | \
                 {ANALYZE}"
            ),
            Problem::Rising { column, difference } => write!(
                f,
                "every \"{column}\" is greater than the previous one, as in running totals and histograms; for running totals, \
                 run {difference}, and for a histogram, name its column of counts \"count\""
            ),
            Problem::RisingCounts { column, difference } => write!(
                f,
                "the counts in column \"{column}\" only rise, as running totals do; run {difference}"
            ),
            Problem::RisingList { difference, is_strict } => write!(
                f,
                "{}; if these are times of samples, add --time-column 1, and if they \
                 are running totals, run {difference}",
                match is_strict {
                    true => "every number is greater than the previous one",
                    false => "hardly any number is less than the previous one, as in readings of a clock",
                }
            ),
            Problem::ForeignUnit { column, convert } => write!(
                f,
                "the unit of the column \"{column}\" has no known length in seconds; if it is 1 ms, 1 us or 1 ns, add \
                 --time-unit ms, us or ns to analyze; if there are, for example, 48 per us, run {convert} --time-unit us"
            ),
            Problem::UnknownOperations {
                column,
                names,
                keep,
                rename,
            } => write!(
                f,
                "the column \"{column}\" does not say which rows are writes ({names}); choose them, for example with {keep}; if \
                 all rows are writes, run {rename}"
            ),
            Problem::Shares { column, scale } => write!(
                f,
                "the column \"{column}\" contains shares instead of numbers of writes; multiply them by the number of writes, \
                 for example by 1000: {scale}"
            ),
            Problem::CountUnknown { column, rename } => write!(
                f,
                "the column \"{column}\" may be the number of writes of each latency, but latencies occur in more than \
                 one row; if each row is one write, run {rename}"
            ),
            Problem::Prose { what, command } => write!(f, "{what} cannot be read directly; run {command}"),
            Problem::Container { what, remedy } => write!(f, "{what}; {remedy}"),
            Problem::Rates { column } => write!(
                f,
                "the column \"{column}\" contains rates instead of the latency of each write, so stalls cannot be located; log \
                 one row of time_us,latency_us,bytes per write"
            ),
            Problem::Disorder { name, falls, rows, may_be_latency, sort } => {
                write!(f, "the times in column \"{name}\" are earlier than those of the previous row in {falls} of {rows} rows, so they are not those of a clock; ")?;
                if *may_be_latency {
                    let name = quoted(name.as_ref());
                    write!(f, "if they are the latencies of writes, run cardiograph analyze FILE --latency-column {name}; ")?;
                }
                write!(f, "if the rows are out of order, sort them: {sort}")
            }
            Problem::Overlap { start, end, difference } => write!(
                f,
                "the write starts at {start} ns, before the previous one ends ({end} ns), but overlapping writes are not \
                 supported; measure with one write at a time, or pass only the durations (their sum then exceeds the \
                 elapsed time): {difference}"
            ),
            Problem::NotAboveZero { column, text } => write!(
                f,
                "{column} is {text} but must be above 0; correct the row, or delete it if the \
                 write failed"
            ),
            Problem::MinAboveMax => {
                f.write_str("MinLatency(ms) is above MaxLatency(ms); correct the row, or delete it")
            }
            Problem::TakesTooLong => f.write_str(
                "at this WriteSpeed(MB/s) the file would take over 292 years; correct the row, or \
                 delete it",
            ),
            Problem::Above32Bits { column, text } => write!(
                f,
                "{column} is {text}, which does not fit in 32 bits; correct the row"
            ),
            Problem::TooLarge { column, text } => write!(
                f,
                "{column} is {text}, which is out of range (the limit is 2^63 - 1, for times in \
                 ns); correct the row"
            ),
            Problem::Operation { text } => write!(
                f,
                "unknown operation \"{text}\"; use one of those in docs/formats.md"
            ),
            Problem::Backward { time, before } => write!(
                f,
                "the time {time} is earlier than the previous time ({before}); if the counter \
                 wrapped or two runs were joined, split the file here"
            ),
            Problem::BackwardNs { time, before } => write!(
                f,
                "the time {time} ns is earlier than the previous time ({before} ns); if the counter \
                 wrapped or two runs were joined, split the file here"
            ),
            Problem::EndBeforeStart { start, end } => write!(
                f,
                "the end time {end} is earlier than the start time {start} of the same operation; \
                 correct the row, or delete it if it is incomplete"
            ),
            Problem::TotalTooLarge => write!(
                f,
                "the offsets and lengths add up to more than 2^63 - 1 bytes; correct them"
            ),
            Problem::SizesTooLarge => write!(
                f,
                "the file sizes up to this row add up to more than 2^63 - 1 bytes; correct the row"
            ),
            Problem::Averages => write!(
                f,
                "a block size of 0 marks an average over several operations; record again \
                 without log_avg_msec"
            ),
            Problem::NoResults => write!(
                f,
                "the file contains test information, but no results; run the test again"
            ),
            Problem::ResultsHeader => write!(
                f,
                "the results header is not \"File 0  start,File 0  end,...\"; copy the \
                 file again"
            ),
            Problem::FilesDiffer { declared, found } => write!(
                f,
                "the results header names {found} {}, but \"Amount of files\" is {declared}; copy the \
                 file again, or correct \"Amount of files\"",
                if *found == 1 { "file" } else { "files" },
            ),
            Problem::LinesMissing { declared, found } => write!(
                f,
                "the results contain {found} of the {declared} lines that \"Lines per file\" declares; copy \
                 the file again, or correct \"Lines per file\" to read the lines present"
            ),
            Problem::LinesBeyond { declared } => write!(
                f,
                "the results contain more than the {declared} lines that \"Lines per file\" declares; split \
                 the file here if two were joined, or correct \"Lines per file\""
            ),
            Problem::ParquetTruncated => write!(
                f,
                "the Parquet file is truncated (no footer); copy it again"
            ),
            Problem::ParquetDamaged(why) => {
                write!(f, "the Parquet file is damaged ({why}); copy it again")
            }
            Problem::ParquetColumns { found, .. } => write!(
                f,
                "the columns are {found}, but a trace has operation, file, offset, length, \
                 start_ns, end_ns (see docs/formats.md); convert it, or export it as CSV"
            ),
            Problem::ParquetTable { text } => write!(
                f,
                "{}; to get this file, run python3 -c 'import pandas, sys; \
                 pandas.read_parquet(sys.argv[1]).to_csv(\"table.csv\", index=False)' FILE",
                text.replace(" FILE", " table.csv")
            ),
            Problem::ParquetCompressed { name } => write!(
                f,
                "Parquet compressed with {name} is not supported; write it with snappy or zstd, or uncompressed"
            ),
            Problem::ParquetEncoded { name } => write!(
                f,
                "the Parquet encoding {name} is not supported; write the file with the default encodings \
                 (use_byte_stream_split=False)"
            ),
            Problem::ParquetTypes => f.write_str(
                "operation and file must be 32-bit integers, 0 for a write and 1 for a read; in pandas, write \
                 df.astype({'operation': 'int32', 'file': 'int32'})"
            ),
            Problem::ParquetNull { column } => write!(
                f,
                "the column {column} has a missing value (null); drop the incomplete rows, then write the file again"
            ),
            Problem::ParquetRows { rows, bytes } => write!(
                f,
                "the Parquet file is damaged (its {bytes} bytes cannot hold {rows} rows); copy \
                 it again"
            ),
            Problem::LargeInMemory => write!(
                f,
                "more than 1 GiB of ULog, or of Parquet through a pipe; pass the file name of the Parquet file, or split the ULog"
            ),
            Problem::NoSamples => write!(
                f,
                "contains no rows of time, V1 and V2; export the time and both channels of the \
                 scope as CSV"
            ),
            Problem::ScopeColumns { found } => write!(
                f,
                "cannot identify the columns of the time and of the voltages before and after the \
                 shunt in \"{found}\"; name them time,V1,V2"
            ),
            Problem::SameTime { time } => write!(
                f,
                "the time {time} is the same as in the previous row; export the time with more digits"
            ),
            Problem::TimeTooFar { time } => write!(
                f,
                "the time is {time}, more than 292 years from the scope's time 0; correct the row"
            ),
            Problem::UnitUnknown {
                what,
                readings,
                options,
            } => write!(
                f,
                "{what} have no unit, and it cannot be inferred ({readings}); add \
                 {options} to analyze, or name the unit in the header (such as latency_us or time_ms)"
            ),
            Problem::UnitNamed { names } => write!(
                f,
                "the file names the unit of its times ({names}); remove --time-unit, or correct the header"
            ),
            Problem::NoColumn { wanted, found } => write!(
                f,
                "there is no column \"{wanted}\"; the columns are {found}; pass the name or the \
                 number of one of them"
            ),
            Problem::BoardDamaged => f.write_str(
                "every line of the board's trace is damaged: its checksum does not match; set the serial monitor to the \
                 baud rate of the board, and record the trace again",
            ),
            Problem::Stopped { reason, cores } => {
                write!(
                    f,
                    "the board stopped the test before the first write ({reason}); remove the cause, and measure again"
                )?;
                cores.iter().try_for_each(|cores| write!(f, ". {cores}"))
            }
            Problem::CoresOnly { cores } => write!(
                f,
                "the board measured no card; check the card, and that the sketch calls cardiographStream. {cores}"
            ),
            Problem::NoTopic { wanted, found } => write!(
                f,
                "there is no topic \"{wanted}\"; the topics are {found}; pass one of these names"
            ),
            Problem::SeveralColumns { names, option } => write!(
                f,
                "more than one column is possible ({names}); choose one with {option}"
            ),
            Problem::Statistics { column } => write!(
                f,
                "the column \"{column}\" contains statistics instead of the latency of each write, so \
                 stalls and sustained rates cannot be computed; log one row per write (time_us,latency_us), \
                 or run cardiograph bench on the card"
            ),
            Problem::FixedFormat { format, option } => write!(
                f,
                "this is a {format}, whose columns and units are fixed; remove {option}"
            ),
            Problem::OfRecordings { option } => write!(
                f,
                "these are latencies of writes, but {option} is for recordings; remove it, or name the column of the samples' \
                 times with --time-column"
            ),
            Problem::Summary { tool, remedy } => write!(
                f,
                "{tool} does not list individual writes, so stalls and sustained rates cannot be computed; \
                 {remedy}"
            ),
            Problem::NotLatencies { kind } => write!(
                f,
                "{kind}, which does not contain the latency of each write; run fio with --write_lat_log=NAME, and \
                 pass NAME_lat.1.log"
            ),
            Problem::JsonDamaged => f.write_str(
                "the JSON is truncated or damaged; copy the file again, or run fio again with --output-format=json+"
            ),
            Problem::BinsDiffer { stated, found } => write!(
                f,
                "the bins contain {found} writes, but fio states {stated} (N); copy the file again, or run fio again with \
                 --output-format=json+"
            ),
            Problem::NoWrites => f.write_str(
                "fio only read, so there are no writes; run fio with --rw=write or --rw=randwrite and \
                 --output-format=json+"
            ),
            Problem::HistogramCut => f.write_str(
                "the last line with the total count is missing or does not match the rows, so the histogram is \
                 incomplete; copy the file again"
            ),
            Problem::HdrDamaged => f.write_str(
                "the compressed histogram cannot be decoded; delete the line, or copy the file again (version 2 of the \
                 encoding is supported)"
            ),
            Problem::SeveralTags => write!(
                f,
                "contains intervals with different tags; choose those of the writes, for example with grep '^Tag=write,' FILE | \
                 {ANALYZE}, or those without a tag with grep -v '^Tag=' FILE | {ANALYZE}"
            ),
            Problem::CountBackward { count, before } => write!(
                f,
                "TotalCount is {count}, less than in the previous row ({before}); split the file here if two were joined"
            ),
            Problem::SeveralDevices { names, first } => write!(
                f,
                "contains operations of more than one device ({names}); keep the lines of one, such as grep -w '{first}', with \
                 the header if there is one"
            ),
            Problem::DecimalComma { text } => write!(
                f,
                "the comma in \"{text}\" seems to be a decimal comma; replace the commas with points (tr , . < FILE | \
                 {ANALYZE}), or add a header if these are two columns"
            ),
            Problem::Comma { text } => write!(
                f,
                "the comma in \"{text}\" may separate decimals, thousands or columns; run tr , . < FILE | {ANALYZE} for \
                 decimals, tr -d , < FILE | {ANALYZE} for thousands, or add a header for columns"
            ),
            Problem::Thousands { mark, text } => write!(
                f,
                "the {} in {text} seems to separate thousands, because numbers below 1000 have none; remove it from all \
                 numbers, for example with tr -d '{mark}' < FILE | {ANALYZE} if it has no other meaning in the file",
                if *mark == '.' { "point" } else { "comma" }
            ),
            Problem::Underflow { text } => write!(
                f,
                "the latency {text} is a negative difference of 32-bit times: the end was read before the start; \
                 delete the row"
            ),
            Problem::Coarse { samples, times } => write!(
                f,
                "the times are too coarse: {samples} samples have only {times} distinct {}; log fractions of a \
                 second, or a counter such as micros()",
                if *times == 1 { "time" } else { "times" }
            ),
            Problem::FioUnit { ns, us } => write!(
                f,
                "a fio log whose unit depends on the version of fio: as ns (fio 3) the median is {ns}, as us (fio 2) \
                 {us}; add --time-unit ns or --time-unit us to analyze, unless it is a bandwidth log or \
                 an IOPS log (_bw.log, _iops.log), which contains no latencies"
            ),
            Problem::FioOrTable => write!(
                f,
                "rows of numbers without a header, which may be those of a fio log; name the column: --latency-column 2 \
                 --time-unit us, or, if fio wrote it, put a space after each comma as fio does"
            ),
            Problem::NoVoltage { column, text } => write!(
                f,
                "{column} is {text}, beyond 1000 V; scopes write such numbers for samples out of range, \
                 so record again with a larger range, or delete the rows"
            ),
        }
    }
}

/// Returns true for the text of a missing or impossible number.
fn is_missing(text: &str) -> bool {
    const TEXTS: &[&str] = &["nan", "null", "na", "n/a", "none", "inf", "infinity"];
    let text = text.trim_start_matches(['+', '-']).to_lowercase();
    TEXTS.contains(&text.as_str())
}

fn fields(count: usize) -> &'static str {
    if count == 1 { "field" } else { "fields" }
}

const UNKNOWN_FORMAT: &str = "unknown format; if it is a table, name the column of the latencies and their unit, as in \
 cardiograph analyze FILE --latency-column 2 --time-unit us; `cardiograph analyze --help` lists the formats";
