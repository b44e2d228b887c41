//! Selecting functions with CMD6, which both buses share (SD Physical Layer Simplified Specification, 4.3.10).

/// Number of function groups.
const GROUPS: u32 = 6;
/// Functions of a group, one bit each. All groups have function 0, the default; 15 means "no change".
const DEFAULT_ONLY: u16 = 1 << KEEP | 1;
/// Group 1, the bus speed: function 1 is high speed.
const SPEEDS: u16 = DEFAULT_ONLY | 1 << 1;
const KEEP: u32 = 15;
/// Maximum current at each bus speed, in mA.
const CURRENT_MA: [u16; 2] = [100, 200];

/// Returns the status that the card sends in response to CMD6, and changes the bus speed if the highest bit of
/// the argument is set. If any function is unsupported, nothing changes (4.3.10.3).
pub(in crate::wire) fn switch(argument: u32, high_speed: &mut bool) -> [u8; 64] {
    let speed_now = u32::from(*high_speed);
    let chosen = |group: u32| match (argument >> (4 * group) & 0xF, group) {
        (KEEP, 0) => speed_now,
        (KEEP, _) => 0,
        (function, _) => function,
    };
    let is_there = |group| functions(group) >> chosen(group) & 1 == 1;
    let all_there = (0..GROUPS).all(is_there);
    if argument >> 31 == 1 && all_there {
        *high_speed = chosen(0) == 1;
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
    status
}

fn functions(group: u32) -> u16 {
    if group == 0 { SPEEDS } else { DEFAULT_ONLY }
}
