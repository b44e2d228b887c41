//! A serial port.

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::termios::{ControlModes, OptionalActions, SpecialCodeIndex};
use std::fs::File;

/// Maximum time that a read waits, in units of 0.1 s: signals are noticed within this time.
const WAIT_DS: u8 = 1;

/// Opens a serial port without flow control. This restarts many boards.
pub fn open(port: &str, baud: u32) -> Result<File, String> {
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = rustix::fs::open(port, flags, Mode::empty());
    let file = opened.map_err(|error| match error {
        Errno::NOENT => {
            "no such serial port; connect the board, and look for /dev/ttyACM* or /dev/ttyUSB*"
                .to_string()
        }
        Errno::ACCESS => {
            "permission denied; join the group that owns the port, often dialout".to_string()
        }
        Errno::BUSY => "another program uses the port; close the serial monitor".to_string(),
        error => format!("{error}; name the serial port of a board"),
    })?;
    let set = || {
        let mut modes = rustix::termios::tcgetattr(&file)?;
        modes.make_raw();
        modes.control_modes |= ControlModes::CLOCAL | ControlModes::CREAD;
        modes.special_codes[SpecialCodeIndex::VMIN] = 0;
        modes.special_codes[SpecialCodeIndex::VTIME] = WAIT_DS;
        modes.set_speed(baud)?;
        rustix::termios::tcsetattr(&file, OptionalActions::Flush, &modes)?;
        rustix::fs::fcntl_setfl(&file, OFlags::RDWR)
    };
    match set() {
        Ok(()) => Ok(File::from(file)),
        Err(Errno::NOTTY) => {
            Err("not a serial port; to read a saved trace, use `cardiograph analyze`".to_string())
        }
        Err(Errno::INVAL) => Err(format!(
            "the port does not support {baud} baud; name another speed with --baud"
        )),
        Err(error) => Err(format!("{error}; name the serial port of a board")),
    }
}

/// Returns true if the port has vanished.
pub fn is_gone(port: &File) -> bool {
    rustix::termios::tcgetattr(port).is_err()
}
