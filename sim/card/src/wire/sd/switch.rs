//! Selecting functions (CMD6), and the SD status (4.3.10, 4.10.2).

use super::card::SdBusCard;
use super::lines::Width;

/// Number of function groups.
const GROUPS: u32 = 6;
/// Functions of a group, one bit each. All groups have function 0, the default; 15 means "no change".
const DEFAULT_ONLY: u16 = 1 << KEEP | 1;
/// Group 1, the bus speed: function 1 is high speed.
const SPEEDS: u16 = DEFAULT_ONLY | 1 << 1;
const KEEP: u32 = 15;
/// Maximum current at each bus speed, in mA.
const CURRENT_MA: [u16; 2] = [100, 200];

impl SdBusCard {
    /// CMD6: reports the result of selecting functions and, if the highest bit is set, selects them. If any
    /// function is unsupported, nothing changes (4.3.10.3).
    pub(super) fn switch(&mut self, argument: u32) -> u32 {
        let speed_now = u32::from(self.session.high_speed);
        let chosen = |group: u32| match (argument >> (4 * group) & 0xF, group) {
            (KEEP, 0) => speed_now,
            (KEEP, _) => 0,
            (function, _) => function,
        };
        let is_there = |group| functions(group) >> chosen(group) & 1 == 1;
        let all_there = (0..GROUPS).all(is_there);
        if argument >> 31 == 1 && all_there {
            self.session.high_speed = chosen(0) == 1;
        }
        let mut status = [0; 64];
        if all_there {
            let current_ma = CURRENT_MA[chosen(0) as usize % CURRENT_MA.len()];
            status[..2].copy_from_slice(&current_ma.to_be_bytes());
        }
        for group in 0..GROUPS {
            let at = 12 - 2 * group as usize;
            status[at..at + 2].copy_from_slice(&functions(group).to_be_bytes());
            let function = if is_there(group) {
                chosen(group) as u8
            } else {
                0xF
            };
            status[16 - group as usize / 2] |= function << (4 * (group % 2));
        }
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

fn functions(group: u32) -> u16 {
    if group == 0 { SPEEDS } else { DEFAULT_ONLY }
}
