//! The object behind `cardiograph_recorder`: ring, recorder, and the recorder's future, in memory that C provides.

use crate::hardware::{Bus, Clock, Delay, Hardware, Select, SetHz};
use crate::status::Status;
use cardiograph_card::Card;
use cardiograph_recorder::{
    Config, Control, DosTime, Event, FatError, FatVolume, Format, Parts, Producer, Recorder, Ring,
    StreamConfig, StreamSummary, Window,
};
use core::convert::Infallible;
use core::mem::{MaybeUninit, size_of};
use core::pin::Pin;
use core::sync::atomic::{AtomicU8, Ordering};
use core::task::{Context, Poll, Waker};

/// Size of the object in C: `CARDIOGRAPH_RECORDER_BYTES` in the header.
const OBJECT_BYTES: usize = 8192;
/// Alignment of the object in C: that of the attribute in the header.
const OBJECT_ALIGN: usize = 16;
const _: () = assert!(size_of::<Object>() <= OBJECT_BYTES && align_of::<Object>() <= OBJECT_ALIGN);
/// Memory for the recorder's future.
const FUTURE_BYTES: usize = 2688;

type Medium = Card<Bus, Select, Delay, SetHz>;
type Logger =
    Recorder<'static, Medium, FatVolume, FatError<Infallible>, Clock, Delay, fn(Event), 1>;
type Outcome = Result<StreamSummary, Status>;
type PollFuture = unsafe fn(*mut FutureBytes) -> Poll<Outcome>;

/// State of a recorder; a recorder in zeroed memory has not begun.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum State {
    NotBegun,
    Recording,
    Ended,
    Failed,
}

/// Everything that a recording consists of. `state` and `control` are valid in zeroed memory, the other fields once
/// the state is no longer [`State::NotBegun`].
#[repr(C)]
pub struct Object {
    state: AtomicU8,
    control: Control,
    hardware: MaybeUninit<Hardware>,
    ring: MaybeUninit<Ring<&'static [AtomicU8]>>,
    producer: MaybeUninit<Producer<'static>>,
    logger: MaybeUninit<Logger>,
    future: FutureBytes,
    poll: MaybeUninit<PollFuture>,
    summary: MaybeUninit<StreamSummary>,
}

/// Memory of a future whose type has no name.
#[repr(C, align(16))]
struct FutureBytes([MaybeUninit<u8>; FUTURE_BYTES]);

/// Input of a recording, checked.
pub struct Setup {
    pub hardware: Hardware,
    pub ring: &'static [AtomicU8],
    pub format: Format,
    pub prefix: [u8; 3],
    pub config: Config,
    pub bus_hz: u32,
    pub entropy: u32,
}

/// A pointer to an object of C. Fields are accessed one by one, because an interrupt may use `producer` meanwhile.
#[derive(Clone, Copy)]
pub struct Handle(*mut Object);

impl Handle {
    /// Returns `None` for NULL.
    ///
    /// # Safety
    /// Any other pointer is to a `cardiograph_recorder` that was zero before its first use and has not moved since.
    pub unsafe fn of(object: *mut Object) -> Option<Handle> {
        (!object.is_null()).then_some(Handle(object))
    }

    pub fn state(self) -> State {
        // SAFETY: `of` guarantees memory in which this field is valid.
        match unsafe { &(*self.0).state }.load(Ordering::Acquire) {
            0 => State::NotBegun,
            1 => State::Recording,
            2 => State::Ended,
            _ => State::Failed,
        }
    }

    fn set_state(self, state: State) {
        // SAFETY: as in `state`.
        unsafe { &(*self.0).state }.store(state as u8, Ordering::Release);
    }

    pub fn control(self) -> &'static Control {
        // SAFETY: the field is valid in zeroed memory, it is only accessed by shared reference, and the object stays.
        unsafe { &(*self.0).control }
    }

    /// Builds the recorder. Requires the state [`State::NotBegun`].
    pub fn begin(self, setup: Setup) {
        let object = self.0;
        let hardware = setup.hardware;
        // SAFETY: nobody else uses the object before the state changes; the object stays where it is, and each field
        // is written before a reference to it is made.
        unsafe {
            (*object).hardware.write(hardware);
            let ring = (*object).ring.write(Ring::over(setup.ring));
            let (producer, consumer) = ring.split(setup.format);
            (*object).producer.write(producer);
            let parts = Parts {
                medium: Card::new(
                    Bus(hardware),
                    Select(hardware),
                    Delay(hardware),
                    SetHz,
                    setup.bus_hz,
                ),
                volume: FatVolume::new(|| DosTime::NO_CLOCK, setup.entropy),
                clock: Clock(hardware),
                delay: Delay(hardware),
                events: (|_| ()) as fn(Event),
                control: self.control(),
                reads: None,
            };
            let stream = StreamConfig {
                prefix: setup.prefix,
                format: setup.format,
                window: Window::default(),
            };
            let logger = Recorder::new(parts, setup.config, [(stream, consumer)]);
            let logger = (*object).logger.write(logger);
            let poll = place(run(logger), &raw mut (*object).future);
            (*object).poll.write(poll);
        }
        self.set_state(State::Recording);
    }

    /// Adds a sample. Requires that the recording has begun, and a single caller at a time.
    pub fn push(self, sample: &[u8]) -> Status {
        // SAFETY: the fields were written by `begin`; only one caller at a time uses `producer`, and nothing else
        // refers to it mutably.
        let (producer, hardware) = unsafe {
            (
                (*self.0).producer.assume_init_mut(),
                (*self.0).hardware.assume_init_ref(),
            )
        };
        match producer.push(sample, hardware.now_us()) {
            Ok(()) => Status::Ok,
            Err(_) => Status::SampleLost,
        }
    }

    /// Polls the recorder once. Requires the state [`State::Recording`].
    pub fn poll(self) -> Status {
        // SAFETY: `begin` placed the future that belongs to `poll`; it is not polled after its end, because the state
        // changes then.
        let outcome = unsafe {
            let poll = (*self.0).poll.assume_init();
            poll(&raw mut (*self.0).future)
        };
        match outcome {
            Poll::Pending => Status::Ok,
            Poll::Ready(Ok(summary)) => {
                // SAFETY: only the main loop accesses this field.
                unsafe { (*self.0).summary.write(summary) };
                self.set_state(State::Ended);
                Status::Ended
            }
            Poll::Ready(Err(status)) => {
                self.set_state(State::Failed);
                status
            }
        }
    }

    /// Returns the time. Requires that the recording has begun.
    pub fn now_us(self) -> u64 {
        // SAFETY: the field was written by `begin` and does not change.
        unsafe { (*self.0).hardware.assume_init_ref() }.now_us()
    }

    /// Returns the result. Requires the state [`State::Ended`].
    pub fn summary(self) -> StreamSummary {
        // SAFETY: `poll` wrote the field before it set this state.
        unsafe { (*self.0).summary.assume_init() }
    }
}

async fn run(logger: &'static mut Logger) -> Outcome {
    let [summary] = logger.run().await?;
    Ok(summary)
}

/// Moves a future to its memory; returns the function that polls it there.
///
/// # Safety
/// The memory is valid for writes, and stays where it is.
unsafe fn place<F: Future<Output = Outcome> + 'static>(
    future: F,
    at: *mut FutureBytes,
) -> PollFuture {
    const { assert!(size_of::<F>() <= FUTURE_BYTES && align_of::<F>() <= align_of::<FutureBytes>()) };
    // SAFETY: the memory is large enough and aligned, as just asserted.
    unsafe { at.cast::<F>().write(future) };
    poll_as::<F>
}

/// Polls the future at an address.
///
/// # Safety
/// `place` put a future of this type there, and its end has not been reported.
unsafe fn poll_as<F: Future<Output = Outcome>>(at: *mut FutureBytes) -> Poll<Outcome> {
    // SAFETY: the future is there, and it never moves.
    let future = unsafe { Pin::new_unchecked(&mut *at.cast::<F>()) };
    future.poll(&mut Context::from_waker(Waker::noop()))
}
