//! Erasing (SD Physical Layer Simplified Specification, 4.3.5).

use super::card::SdBusCard;
use super::status::{State, bits};
use crate::BLOCK_BYTES;

impl SdBusCard {
    /// Executes CMD32 or CMD33, which set the first and the last block to erase; returns error bits for the
    /// response.
    pub(super) fn set_erase_bound(&mut self, first: bool, argument: u32) -> u32 {
        let address = self.options.kind.address_of(argument);
        let block = Some(address / BLOCK_BYTES as u64);
        if !first && self.session.erase_first.is_none() {
            return bits::ERASE_SEQ_ERROR;
        }
        if !self.is_in_range(address) {
            self.clear_erase_range();
            return bits::OUT_OF_RANGE;
        }
        if first {
            self.clear_erase_range();
            self.session.erase_first = block;
        } else {
            self.session.erase_last = block;
        }
        0
    }

    /// Executes CMD38, which erases the selected blocks; returns error bits for the response.
    pub(super) fn erase(&mut self) -> u32 {
        let marked = self.session.erase_first.zip(self.session.erase_last);
        self.clear_erase_range();
        let Some((first, last)) = marked else {
            return bits::ERASE_SEQ_ERROR;
        };
        if first > last {
            return bits::ERASE_PARAM;
        }
        if self.options.write_protected {
            self.status.set_error(bits::WP_ERASE_SKIP);
        } else if let Ok(busy_ns) = self.card.erase(self.pace.now_ns(), first, last - first + 1) {
            self.start_busy(busy_ns);
            self.state = State::Prg;
        }
        0
    }

    pub(super) fn clear_erase_range(&mut self) {
        self.session.erase_first = None;
        self.session.erase_last = None;
    }
}
