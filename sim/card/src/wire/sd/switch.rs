//! Selecting functions (CMD6), and the SD status (4.3.10, 4.10.2).

use super::card::SdBusCard;
use super::lines::Width;
use crate::wire::switch;

impl SdBusCard {
    /// CMD6: sends the result of selecting functions.
    pub(super) fn switch(&mut self, argument: u32) -> u32 {
        let status = switch::switch(argument, &mut self.session.high_speed);
        self.send_bytes(&status);
        0
    }

    /// ACMD13: sends the SD status, which reports the bus width.
    pub(super) fn send_sd_status(&mut self) {
        let mut status = self.registers.sd_status;
        if self.session.width == Width::Four {
            status[0] |= 0b10 << 6;
        }
        self.send_bytes(&status);
    }
}
