//! Reads recordings according to docs/formats.md, independently of the recorder's code, and compares them
//! with the samples that were pushed.

use crate::plan::{HEADER, Plan, SESSIONS, SETTINGS, session_name};
use crate::rules::merged;
use cardiograph_recorder::{Format, Schema};
use cardiograph_sim_card::BLOCK_BYTES;

/// Progress of a stream's verification across its files.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// Index of the next expected sample; unknown after a removed file.
    pub next: Option<u64>,
    /// Samples that gaps report as missing: for each gap, the index of the first sample and the count.
    pub gaps: Vec<(u64, u64)>,
    /// True if the card failed or was removed: a file may end with samples that the recorder reports as lost
    /// in the next file.
    pub may_overlap: bool,
}

impl Progress {
    /// Returns the number of samples in gaps. A gap whose note was lost with the card may lie within a later
    /// gap.
    pub fn lost(&self) -> u64 {
        let mut gaps = self.gaps.clone();
        gaps.sort_unstable();
        merged(&gaps).iter().map(|(_, count)| count).sum()
    }

    fn pass_gap(&mut self, (first, count): (u64, u64)) -> Result<(), String> {
        let is_due =
            |next| first == next || self.may_overlap && first < next && next <= first + count;
        if !self.next.is_none_or(is_due) || count == 0 {
            return Err(format!(
                "a gap of {count} samples at sample {first}, expected sample {:?}",
                self.next
            ));
        }
        self.next = Some(first + count);
        self.gaps.push((first, count));
        Ok(())
    }
}

/// Reads the samples of one stream in a file. `stream` is the number of the stream in a shared file, and
/// `streams` the number of streams that share the file. If `may_end_early` is true, power was cut, so the
/// last sample of a binary file may be incomplete.
///
/// # Errors
/// The first deviation, and its location.
pub fn read(
    plan: &Plan,
    (stream, streams): (u8, u64),
    bytes: &[u8],
    may_end_early: bool,
    progress: &mut Progress,
) -> Result<(), String> {
    match plan.config.format {
        Format::Binary(_) => read_binary(plan, (stream, streams), bytes, may_end_early, progress),
        _ => read_text(plan, bytes, progress),
    }
}

/// Returns the session that the note or the header of a file names, if such a session exists. The name is
/// verified later, when the samples are read.
fn session_of(plan: &Plan, begin: &str, word: &str) -> Option<usize> {
    let is_named = |session: &usize| begin.contains(&format!("{word}{}", session_name(*session)));
    (0..SESSIONS)
        .find(is_named)
        .filter(|session| plan.has_begun(*session))
}

fn header(plan: &Plan, session: Option<usize>) -> String {
    match plan.config.format {
        Format::Lines { header: "", .. } => String::new(),
        Format::Lines { .. } => format!("{HEADER}\r\n"),
        Format::Csv(_) | Format::Binary(_) => {
            let columns = plan.schema_of(session).map_or(&[][..], Schema::columns);
            let names = columns.iter().map(|column| column.name);
            let names: Vec<&str> = names.chain(["note"]).collect();
            format!("{}\r\n", names.join(","))
        }
    }
}

fn read_text(plan: &Plan, bytes: &[u8], progress: &mut Progress) -> Result<(), String> {
    let begin = String::from_utf8_lossy(&bytes[..bytes.len().min(2 * BLOCK_BYTES)]);
    let session = match begin.split_once("#file ") {
        Some((_, note)) => {
            let note = note.split('\n').next().unwrap_or_default();
            session_of(plan, note, " session=")
        }
        None => None,
    };
    let names = header(plan, session);
    let columns = plan.schema_of(session);
    let commas = ",".repeat(columns.map_or(0, |schema| schema.columns().len()));
    let note_prefix = format!("{commas}#");
    let mut at = names.len();
    if !bytes.starts_with(names.as_bytes()) {
        let begin = String::from_utf8_lossy(&bytes[..bytes.len().min(names.len() + 100)]);
        return Err(format!(
            "unexpected header: {} bytes, {begin:?}",
            bytes.len()
        ));
    }
    let mut marks = Marks::default();
    let mut totals = Totals::default();
    while at < bytes.len() {
        let rest = &bytes[at..];
        let next = progress.next.unwrap_or_else(|| number_at(rest));
        let sample = plan.text(next);
        let is_own = plan.session_at(next) == session;
        if marks.number.is_some() && is_own && next < plan.count && rest.starts_with(&sample) {
            progress.next = Some(next + 1);
            totals.samples += 1;
            at += sample.len();
            continue;
        }
        let end = rest.iter().position(|byte| *byte == b'\n');
        let line = &rest[..end.ok_or(format!("incomplete last line at byte {at}"))? + 1];
        let line = String::from_utf8_lossy(line);
        let wrong = || format!("expected sample {next} at byte {at}, found {line:?}");
        if let Some(note) = file_note(&line, &commas, session, plan) {
            let is_due = |next| note.1 == next || progress.may_overlap && note.1 < next;
            if marks.number.replace(note.0).is_some() || !progress.next.is_none_or(is_due) {
                return Err(format!(
                    "unexpected file note, expected sample {next}: {line:?}"
                ));
            }
            at += line.len();
            continue;
        }
        let note = line.strip_prefix(&note_prefix).ok_or_else(wrong)?;
        if let Some(gap) = note.strip_prefix("gap ") {
            let gap = gap_of(gap).ok_or_else(wrong)?;
            totals.gaps += 1;
            totals.lost += gap.1;
            progress.pass_gap(gap)?;
        } else {
            marks.check(note, bytes, at + line.len(), &totals)?;
        }
        at += line.len();
    }
    Ok(())
}

fn number_at(text: &[u8]) -> u64 {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |number, digit| number * 10 + u64::from(digit - b'0'))
}

fn gap_of(text: &str) -> Option<(u64, u64)> {
    let mut fields = text.strip_suffix("\r\n")?.split(' ');
    let mut number = |name: &str| fields.next()?.strip_prefix(name)?.parse::<u64>().ok();
    let gap = (number("first=")?, number("count=")?);
    let (at_us, last_us) = (number("at_us=")?, number("last_us=")?);
    let cause = fields.next()?.strip_prefix("cause=")?;
    let is_whole = fields.next().is_none() && cause.len() > 3 && at_us <= last_us;
    is_whole.then_some(gap)
}

/// Parses the note about a file; returns the number of the recording and the index of its first sample.
fn file_note(line: &str, commas: &str, session: Option<usize>, plan: &Plan) -> Option<(u32, u64)> {
    let line = line.strip_prefix(commas)?;
    let settings = session.map_or("", |session| SETTINGS[session]);
    let quote = match settings.contains(',') && plan.schema_of(session).is_some() {
        true => "\"",
        false => "",
    };
    let text = line.strip_prefix(quote)?.strip_prefix("#file ")?;
    let of_session = match session {
        Some(session) if settings.is_empty() => format!(" session={}", session_name(session)),
        Some(session) => format!(" session={} settings={settings}", session_name(session)),
        None => String::new(),
    };
    let text = text.strip_suffix(&format!("{of_session}{quote}\r\n"))?;
    let mut fields = text.split(' ');
    let mut number = |name: &str| fields.next()?.strip_prefix(name)?.parse::<u64>().ok();
    let note = (number("number=")?, number("first=")?);
    number("at_us=")?;
    let number = u32::try_from(note.0).ok()?;
    fields.next().is_none().then_some((number, note.1))
}

/// Totals that a file's marks or block headers contain.
#[derive(Default)]
struct Totals {
    samples: u64,
    gaps: u64,
    lost: u64,
}

/// State of checking the checkpoint marks of a text file.
#[derive(Default)]
struct Marks {
    epoch: Option<u32>,
    /// Number of the recording, from the file note.
    number: Option<u32>,
    /// Age of the file at the last checkpoint mark, in ms.
    age_ms: u32,
    /// Offset of the end of the last checkpoint mark.
    end: usize,
}

impl Marks {
    fn check(
        &mut self,
        note: &str,
        bytes: &[u8],
        end: usize,
        totals: &Totals,
    ) -> Result<(), String> {
        let wrong = || format!("invalid checkpoint mark before byte {end}: {note:?}");
        let fields = note.trim_start_matches(' ').strip_prefix('@');
        let fields = fields.and_then(|fields| fields.strip_suffix("\r\n"));
        let fields = fields.ok_or_else(wrong)?.split(' ');
        let fields = fields.map(|field| (field.len() == 8).then(|| u32::from_str_radix(field, 16)));
        let fields: Vec<u32> = fields.flatten().flatten().collect();
        let [epoch, index, durable, samples, gaps, lost, age_ms, sum] = fields[..] else {
            return Err(wrong());
        };
        let is_due = end.is_multiple_of(BLOCK_BYTES) && index as usize + 1 == end / BLOCK_BYTES;
        let is_right = sum == crc32(&bytes[self.end..end - 10]);
        let is_own = *self.epoch.get_or_insert(epoch) == epoch;
        self.end = end;
        let are_totals_right = [samples, gaps, lost].map(u64::from)
            == [totals.samples, totals.gaps, totals.lost]
            && age_ms >= self.age_ms;
        self.age_ms = age_ms;
        // The checkpoint mark in block 0 has the recording's number in place of the number of durable blocks.
        // The file note may follow this mark.
        let is_possible = match index {
            0 => self.number.is_none_or(|number| number == durable),
            _ => durable <= index,
        };
        match is_due && is_right && is_own && is_possible && are_totals_right {
            true => Ok(()),
            false => Err(wrong()),
        }
    }
}

fn get32(block: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([block[at], block[at + 1], block[at + 2], block[at + 3]])
}

fn get64(block: &[u8], at: usize) -> u64 {
    u64::from(get32(block, at)) | u64::from(get32(block, at + 4)) << 32
}

/// Header fields of a block of a binary file.
struct Head {
    kind: u8,
    gaps: u64,
    lost: u64,
    used: usize,
    first: usize,
    sample: u64,
}

/// Returns the header fields of a block that is intact and has the expected number.
fn head(blocks: &[[u8; BLOCK_BYTES]], number: usize) -> Result<Head, String> {
    let block = &blocks[number];
    let head = Head {
        kind: block[12],
        gaps: u64::from(block[18]) | u64::from(block[19]) << 8,
        lost: get32(block, 28).into(),
        used: usize::from(block[14]) | usize::from(block[15]) << 8,
        first: usize::from(block[16]) | usize::from(block[17]) << 8,
        sample: get64(block, 20),
    };
    let is_whole = get32(block, 508) == crc32(&block[..508])
        && get32(block, 0) == get32(&blocks[0], 0)
        && get32(block, 4) as usize == number
        && (number == 0 || get32(block, 8) as usize <= number)
        && (head.kind == 0 || number > 0)
        && head.used <= 472;
    match is_whole {
        true => Ok(head),
        false => Err(format!(
            "block {number} is damaged or has a wrong block number"
        )),
    }
}

fn read_binary(
    plan: &Plan,
    (stream, streams): (u8, u64),
    bytes: &[u8],
    may_end_early: bool,
    progress: &mut Progress,
) -> Result<(), String> {
    let (blocks, rest) = bytes.as_chunks::<BLOCK_BYTES>();
    if !rest.is_empty() {
        return Err("incomplete last block".into());
    }
    let mut partial: Vec<u8> = Vec::new();
    let mut totals = Totals::default();
    let mut header = Vec::new();
    let mut session = None;
    let (mut has_header, mut has_samples) = (false, false);
    for (number, block) in blocks.iter().enumerate() {
        let head = head(blocks, number)?;
        if block[13] != stream {
            continue;
        }
        let payload = &block[36..36 + head.used];
        match head.kind {
            0 if partial.is_empty() && head.first <= header.len() => {
                header.truncate(head.first);
                header.extend(payload);
                let due = progress.next.unwrap_or(head.sample);
                let text = String::from_utf8_lossy(&header);
                let named = session_of(plan, &text, "\nsession ");
                if has_header && named != session {
                    return Err(format!("block {number}: header belongs to another session"));
                }
                let is_first = !has_header && head.first == 0;
                session = named;
                let first = is_first.then_some(head.sample);
                check_header(&text, get32(&blocks[0], 8), streams, plan, session, first)
                    .map_err(|why| format!("block {number}: {why}"))?;
                // Samples that were reported as lost with the card may be present nevertheless; in this case
                // the next gap begins at this block's first sample.
                let may_overlap = !has_samples && progress.may_overlap && head.sample < due;
                if head.sample != due && !may_overlap {
                    return Err(format!(
                        "block {number} begins with sample {}, expected {due}",
                        head.sample
                    ));
                }
                has_header = true;
            }
            1 if has_header => {
                has_samples = true;
                read_samples(plan, session, &head, payload, &mut partial, progress)
                    .map_err(|why| format!("block {number}: {why}"))?;
            }
            2 if has_header && head.used == 33 && partial.is_empty() => {
                has_samples = true;
                totals.gaps += 1;
                totals.lost += get64(payload, 8);
                if get64(payload, 16) > get64(payload, 24) || payload[32] > 6 {
                    return Err(format!("block {number}: gap with an invalid time or cause"));
                }
                let gap = (get64(payload, 0), get64(payload, 8));
                if (head.first, head.sample) != (0, gap.0) {
                    return Err(format!("block {number}: gap and block header differ"));
                }
                progress.pass_gap(gap)?;
            }
            kind => return Err(format!("block {number}: unexpected block of kind {kind}")),
        }
        if (head.gaps, head.lost) != (totals.gaps, totals.lost) {
            return Err(format!("block {number}: wrong totals"));
        }
    }
    match partial.is_empty() || may_end_early {
        true => Ok(()),
        false => Err("incomplete last sample".into()),
    }
}

/// Checks the lines of a header that are present.
fn check_header(
    text: &str,
    number: u32,
    streams: u64,
    plan: &Plan,
    session: Option<usize>,
    first: Option<u64>,
) -> Result<(), String> {
    let schema = plan
        .schema_of(session)
        .ok_or("a binary stream without a schema")?;
    let mut lines = text.split_inclusive('\n');
    let mut next = || lines.next().unwrap_or_default();
    if next() != "cardiograph recording 2\n" || !next().starts_with("prefix ") {
        return Err(format!("unexpected header: {text:?}"));
    }
    let sample_bytes = schema.sample_bytes();
    for (name, due) in [
        ("number ", Some(u64::from(number))),
        ("streams ", Some(streams)),
        ("first ", first),
        ("at_us ", None),
        ("sample_bytes ", Some(sample_bytes as u64)),
        ("columns ", Some(schema.columns().len() as u64)),
    ] {
        if let Some(session) = session.filter(|_| name == "columns ") {
            let is_named = next() == format!("session {}\n", session_name(session));
            let settings = SETTINGS[session];
            if !is_named || !settings.is_empty() && next() != format!("settings {settings}\n") {
                return Err(format!("wrong session in the header: {text:?}"));
            }
        }
        let value = next().strip_prefix(name).map(|it| it.trim_end().parse());
        if !matches!(value, Some(Ok(value)) if due.is_none_or(|due| due == value)) {
            return Err(format!(
                "missing or wrong field {name:?} in the header: {text:?}"
            ));
        }
    }
    match lines.count() == schema.columns().len() && text.ends_with('\n') {
        true => Ok(()),
        // The second block of the header may be missing, or may follow.
        false if text.len() == 472 => Ok(()),
        false => Err(format!("wrong number of columns: {text:?}")),
    }
}

/// Reads the samples of a block; the first of them may have begun in the previous block.
fn read_samples(
    plan: &Plan,
    session: Option<usize>,
    head: &Head,
    payload: &[u8],
    partial: &mut Vec<u8>,
    progress: &mut Progress,
) -> Result<(), String> {
    let schema = plan
        .schema_of(session)
        .ok_or("a binary stream without a schema")?;
    let sample_bytes = schema.sample_bytes();
    let first = (sample_bytes - partial.len()) % sample_bytes;
    let next = progress.next.get_or_insert(head.sample);
    let begins = *next + u64::from(!partial.is_empty());
    let due = match first < payload.len() {
        true => (first, begins),
        false => (0xFFFF, begins),
    };
    if (head.first, head.sample) != due {
        return Err(format!(
            "first sample at {:?}, expected {due:?} (offset, index)",
            (head.first, head.sample)
        ));
    }
    partial.extend(payload);
    while partial.len() >= sample_bytes {
        if partial[..sample_bytes] != plan.sample(*next) || *next >= plan.count {
            return Err(format!("sample {next} is wrong"));
        }
        if plan.session_at(*next) != session {
            return Err(format!("sample {next} belongs to another session"));
        }
        partial.drain(..sample_bytes);
        *next += 1;
    }
    Ok(())
}

/// Returns the CRC-32 of IEEE 802.3.
fn crc32(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 16] = {
        let mut table = [0; 16];
        let mut at = 0;
        while at < 16 {
            let (mut sum, mut bit) = (at as u32, 0);
            while bit < 4 {
                sum = (sum >> 1) ^ ((sum & 1) * 0xEDB8_8320);
                bit += 1;
            }
            table[at] = sum;
            at += 1;
        }
        table
    };
    let half = |sum: u32, byte: u8| sum >> 4 ^ TABLE[(sum as u8 ^ byte) as usize % 16];
    let halves = |sum, byte: &u8| half(half(sum, *byte), byte >> 4);
    !bytes.iter().fold(u32::MAX, halves)
}

#[cfg(test)]
mod tests {
    use super::crc32;

    /// The check value of the catalogue of CRC algorithms, CRC-32/ISO-HDLC.
    #[test]
    fn crc32_gives_the_published_check_value() {
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
    }
}
