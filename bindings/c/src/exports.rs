//! Exported functions; the header describes them.

use crate::hardware::{Callbacks, Hardware};
use crate::recorder::{Handle, Object, Setup, State};
use crate::set_panic;
use crate::status::{self, Status};
use cardiograph_card::CLOCK_HZ;
use cardiograph_recorder::{Config, Format, LINE_BYTES_MAX, RING_BYTES_MIN};
use core::ffi::{CStr, c_char};
use core::slice;
use core::sync::atomic::AtomicU8;

/// `cardiograph_options` in the header.
#[repr(C)]
pub struct Options {
    options_bytes: usize,
    hardware: Callbacks,
    ring: *mut u8,
    ring_bytes: usize,
    prefix: [u8; 4],
    header: *const c_char,
    line_bytes_max: u16,
    file_bytes: u32,
    bus_hz: u32,
    entropy: u32,
}

/// `cardiograph_statistics` in the header.
#[repr(C)]
pub struct Statistics {
    written: u64,
    lost: u64,
    bytes: u64,
    files: u32,
    ring_peak_bytes: u32,
}

/// # Safety
/// The pointers are NULL or as the header describes them.
#[unsafe(no_mangle)]
unsafe extern "C" fn cardiograph_begin(object: *mut Object, options: *const Options) -> Status {
    // SAFETY: as required of the caller.
    let (Some(handle), Some(options)) = (unsafe { (Handle::of(object), options.as_ref()) }) else {
        return Status::NullPointer;
    };
    if handle.state() != State::NotBegun {
        return Status::AlreadyBegun;
    }
    if options.options_bytes != size_of::<Options>() {
        return Status::WrongSize;
    }
    // SAFETY: as required of the caller.
    match unsafe { setup_of(options) } {
        Ok(setup) => {
            set_panic(setup.hardware.panic);
            handle.begin(setup);
            Status::Ok
        }
        Err(status) => status,
    }
}

/// # Safety
/// The pointers in `options` are NULL or as the header describes them.
unsafe fn setup_of(options: &Options) -> Result<Setup, Status> {
    let hardware = Hardware::of(&options.hardware).ok_or(Status::NullPointer)?;
    if options.ring.is_null() || options.header.is_null() {
        return Err(Status::NullPointer);
    }
    if options.ring_bytes < RING_BYTES_MIN {
        return Err(Status::RingTooSmall);
    }
    // SAFETY: the header requires a string that stays valid.
    let header = unsafe { CStr::from_ptr(options.header) };
    let header = header.to_str().map_err(|_| Status::HeaderInvalid)?;
    let is_long = usize::from(options.line_bytes_max) > LINE_BYTES_MAX;
    if is_long || options.line_bytes_max == 0 || header.len() + 2 > LINE_BYTES_MAX {
        return Err(Status::LineTooLong);
    }
    let mut config = Config::default();
    if options.file_bytes > 0 {
        config.file_bytes = options.file_bytes;
    }
    let [a, b, c, _] = options.prefix;
    Ok(Setup {
        hardware,
        // SAFETY: the header gives this memory to the library, and `AtomicU8` has the layout of `u8`.
        ring: unsafe { slice::from_raw_parts(options.ring.cast::<AtomicU8>(), options.ring_bytes) },
        format: Format::Lines {
            header,
            line_bytes_max: options.line_bytes_max,
        },
        prefix: [a, b, c],
        config,
        bus_hz: match options.bus_hz {
            0 => CLOCK_HZ,
            hz => hz,
        },
        entropy: options.entropy,
    })
}

/// # Safety
/// The pointer is NULL or as the header describes it.
#[unsafe(no_mangle)]
unsafe extern "C" fn cardiograph_is_ready(object: *mut Object) -> bool {
    // SAFETY: as required of the caller.
    let handle = unsafe { Handle::of(object) };
    handle.is_some_and(|handle| handle.state() == State::Recording && handle.control().is_ready())
}

/// # Safety
/// The pointers are NULL or as the header describes them.
#[unsafe(no_mangle)]
unsafe extern "C" fn cardiograph_push(
    object: *mut Object,
    line: *const u8,
    bytes: usize,
) -> Status {
    // SAFETY: as required of the caller.
    let Some(handle) = (unsafe { Handle::of(object) }) else {
        return Status::NullPointer;
    };
    if line.is_null() {
        return Status::NullPointer;
    }
    match handle.state() {
        State::Recording if handle.control().is_ready() => (),
        State::Recording => return Status::NotReady,
        other => return refusal(other),
    }
    if bytes > LINE_BYTES_MAX {
        return Status::LineTooLong;
    }
    // SAFETY: the caller passes a line of this length.
    handle.push(unsafe { slice::from_raw_parts(line, bytes) })
}

/// # Safety
/// The pointer is NULL or as the header describes it.
#[unsafe(no_mangle)]
unsafe extern "C" fn cardiograph_poll(object: *mut Object) -> Status {
    // SAFETY: as required of the caller.
    match unsafe { Handle::of(object) } {
        Some(handle) => poll(handle),
        None => Status::NullPointer,
    }
}

fn poll(handle: Handle) -> Status {
    match handle.state() {
        State::Recording => handle.poll(),
        other => refusal(other),
    }
}

/// # Safety
/// The pointer is NULL or as the header describes it.
#[unsafe(no_mangle)]
unsafe extern "C" fn cardiograph_run_for(object: *mut Object, us: u32) -> Status {
    // SAFETY: as required of the caller.
    let Some(handle) = (unsafe { Handle::of(object) }) else {
        return Status::NullPointer;
    };
    if handle.state() != State::Recording {
        return refusal(handle.state());
    }
    let end_us = handle.now_us() + u64::from(us);
    loop {
        let status = poll(handle);
        if status != Status::Ok || handle.now_us() >= end_us {
            return status;
        }
    }
}

/// # Safety
/// The pointer is NULL or as the header describes it.
#[unsafe(no_mangle)]
unsafe extern "C" fn cardiograph_end(object: *mut Object) -> Status {
    // SAFETY: as required of the caller.
    let Some(handle) = (unsafe { Handle::of(object) }) else {
        return Status::NullPointer;
    };
    if handle.state() != State::Recording {
        return refusal(handle.state());
    }
    handle.control().stop();
    loop {
        match poll(handle) {
            Status::Ok => (),
            Status::Ended => return Status::Ok,
            error => return error,
        }
    }
}

/// # Safety
/// The pointers are NULL or as the header describes them.
#[unsafe(no_mangle)]
unsafe extern "C" fn cardiograph_get_statistics(
    object: *mut Object,
    out: *mut Statistics,
) -> Status {
    // SAFETY: as required of the caller.
    let (Some(handle), Some(out)) = (unsafe { (Handle::of(object), out.as_mut()) }) else {
        return Status::NullPointer;
    };
    match handle.state() {
        State::Ended => (),
        State::Recording => return Status::AlreadyBegun,
        other => return refusal(other),
    }
    let summary = handle.summary();
    *out = Statistics {
        written: summary.written,
        lost: summary.lost,
        bytes: summary.bytes,
        files: summary.files,
        ring_peak_bytes: summary.ring_peak_bytes as u32,
    };
    Status::Ok
}

#[unsafe(no_mangle)]
extern "C" fn cardiograph_status_text(status: u32) -> *const c_char {
    status::text(status).as_ptr()
}

/// Returns the result of a call that requires a recording, in another state.
fn refusal(state: State) -> Status {
    match state {
        State::NotBegun => Status::NotBegun,
        State::Recording => Status::AlreadyBegun,
        State::Ended => Status::Ended,
        State::Failed => Status::Failed,
    }
}
