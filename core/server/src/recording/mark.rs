//! Marks: the ends of blocks in a recording of text.

use super::{BLOCK_BYTES, Block};

/// Interval of the marks that every recording has, in blocks.
pub(crate) const MARK_BLOCKS: u64 = 64;
/// Offset of a mark in its block.
const MARK_AT: usize = 438;

/// Fields of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Samples in the file up to here.
    pub(crate) samples: u32,
    /// Samples lost up to here.
    pub(crate) lost: u32,
    /// Age of the file in ms.
    pub(crate) age_ms: u32,
}

/// Returns the mark at the end of block `index`.
pub(crate) fn read(block: &Block, index: u64) -> Option<Mark> {
    if block[MARK_AT] != b'@' || !block.ends_with(b"\r\n") {
        return None;
    }
    let mut numbers = [0; 8];
    for (number, at) in numbers.iter_mut().zip((MARK_AT + 1..).step_by(9)) {
        *number = hexadecimal(&block[at..at + 8])?;
        if at + 8 < BLOCK_BYTES - 2 && block[at + 8] != b' ' {
            return None;
        }
    }
    let [_, block_index, _, samples, _, lost, age_ms, _] = numbers;
    (u64::from(block_index) == index).then_some(Mark {
        samples,
        lost,
        age_ms,
    })
}

fn hexadecimal(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |number, digit| match digit {
        b'0'..=b'9' => Some(number << 4 | u32::from(digit - b'0')),
        b'A'..=b'F' => Some(number << 4 | u32::from(digit - b'A' + 10)),
        _ => None,
    })
}

/// Removes the lines with marks from consecutive blocks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unmarker {
    held: Option<Held>,
}

/// End of a block that may be the beginning of a line with a mark: commas, a number sign and spaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    commas: u16,
    has_sign: bool,
    spaces: u16,
}

/// A block without its mark.
pub(crate) struct Unmarked<'b> {
    /// Text from the end of the previous block.
    pub(crate) before: Held,
    /// Text of this block.
    pub(crate) text: &'b [u8],
    /// Mark of this block.
    pub(crate) mark: Option<Mark>,
}

impl Unmarker {
    /// Takes the next block.
    pub(crate) fn take<'b>(&mut self, block: &'b Block, index: u64) -> Unmarked<'b> {
        let before = self.held.take().unwrap_or_default();
        let mark = read(block, index);
        if mark.is_some() {
            // Without a line end, the line with the mark began in the previous block.
            let line_end = block[..MARK_AT].iter().rposition(|byte| *byte == b'\n');
            return Unmarked {
                before: line_end.map_or_else(Held::default, |_| before),
                text: &block[..line_end.map_or(0, |at| at + 1)],
                mark,
            };
        }
        let line_end = block.iter().rposition(|byte| *byte == b'\n');
        let line_at = line_end.map_or(BLOCK_BYTES, |at| at + 1);
        self.held = Held::of(&block[line_at..]);
        let end = if self.held.is_some() {
            line_at
        } else {
            BLOCK_BYTES
        };
        Unmarked {
            before,
            text: &block[..end],
            mark,
        }
    }

    /// Returns the text that is held back at the end of the last block.
    pub(crate) fn end(self) -> Held {
        self.held.unwrap_or_default()
    }
}

impl Held {
    fn of(text: &[u8]) -> Option<Held> {
        let end_of = |at: usize, wanted: u8| {
            let rest = text[at..].iter();
            at + rest.take_while(|byte| **byte == wanted).count()
        };
        let commas = end_of(0, b',');
        let has_sign = text.get(commas) == Some(&b'#');
        let spaces_at = commas + usize::from(has_sign);
        let end = match has_sign {
            true => end_of(spaces_at, b' '),
            false => spaces_at,
        };
        (end == text.len()).then_some(Held {
            commas: commas as u16,
            has_sign,
            spaces: (end - spaces_at) as u16,
        })
    }

    /// Returns the text in parts.
    pub(crate) fn parts(self) -> impl Iterator<Item = &'static [u8]> {
        let repeat = |part: &'static [u8], count: u16| (0..count).map(move |_| part);
        repeat(b",", self.commas)
            .chain(repeat(b"#", self.has_sign.into()))
            .chain(repeat(b" ", self.spaces))
    }
}
