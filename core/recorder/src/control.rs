//! Requests to a running recorder, and its answers.

use crate::session::{Session, SessionError, SessionSlot};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// State that the recorder shares with other tasks and interrupts, accessed with plain loads and stores. Only
/// one caller may make each kind of request.
#[derive(Default)]
pub struct Control {
    is_ready: AtomicBool,
    stop: AtomicBool,
    flush_requested: AtomicU32,
    flush_durable: AtomicU32,
    flush_failed: AtomicU32,
    rotation_requested: AtomicU32,
    session: SessionSlot,
    /// Longest time that a flush would take now, in us.
    flush_us_max: AtomicU32,
}

/// Progress of a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushState {
    /// Not everything is durable yet.
    Pending,
    /// Everything pushed before the request is durable.
    Durable,
    /// Samples pushed before the request were lost, or there is no card or no room to write them.
    Failed,
}

impl Control {
    /// Creates a control without requests.
    pub const fn new() -> Self {
        Control {
            is_ready: AtomicBool::new(false),
            stop: AtomicBool::new(false),
            flush_requested: AtomicU32::new(0),
            flush_durable: AtomicU32::new(0),
            flush_failed: AtomicU32::new(0),
            rotation_requested: AtomicU32::new(0),
            session: SessionSlot::new(),
            flush_us_max: AtomicU32::new(0),
        }
    }

    /// Returns true once all files are open and sampling may begin.
    pub fn is_ready(&self) -> bool {
        self.is_ready.load(Ordering::Acquire)
    }

    /// Ends the recording: the recorder writes all buffered samples and closes its files.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
    }

    /// Asks the recorder to make everything pushed so far durable before it does anything else, for example because the
    /// supply is failing. Returns the number of the request for [`flush_state`](Control::flush_state).
    pub fn flush(&self) -> u32 {
        let number = self.flush_requested.load(Ordering::Relaxed).wrapping_add(1);
        self.flush_requested.store(number, Ordering::Release);
        number
    }

    /// Returns the progress of a flush. A request counts as failed if a later one failed.
    pub fn flush_state(&self, number: u32) -> FlushState {
        let is_answered = |last: &AtomicU32| {
            let last = last.load(Ordering::Acquire);
            last.wrapping_sub(number) as i32 >= 0
        };
        if is_answered(&self.flush_failed) {
            FlushState::Failed
        } else if is_answered(&self.flush_durable) {
            FlushState::Durable
        } else {
            FlushState::Pending
        }
    }

    /// Returns the longest time that a flush requested now takes, in us: the sum of
    ///
    /// - the time to write the buffered bytes at the rate measured on this card;
    /// - a stall of 250 ms (the specification's limit), or the longest stall seen if that is longer;
    /// - the time to write the bytes that arrive during the stall;
    /// - the cost of a checkpoint of each track.
    pub fn flush_us_max(&self) -> u32 {
        self.flush_us_max.load(Ordering::Relaxed)
    }

    /// Continues in new files as soon as they are prepared, without losing a sample.
    pub fn rotate(&self) {
        let number = self
            .rotation_requested
            .load(Ordering::Relaxed)
            .wrapping_add(1);
        self.rotation_requested.store(number, Ordering::Release);
    }

    /// Begins a session of every stream: each producer puts a session boundary before its next sample.
    ///
    /// # Errors
    /// [`SessionError::QueueFull`] if the previous session is still waiting. It waits until every stream has begun the
    /// session before it, which a stream does with its next sample.
    pub fn begin_session(&self, session: &Session) -> Result<(), SessionError> {
        match self.session.put(session) {
            true => Ok(()),
            false => Err(SessionError::QueueFull),
        }
    }

    pub(crate) fn waiting_session(&self) -> Option<Session> {
        self.session.peek()
    }

    /// Takes the waiting session, so that another one can be requested.
    pub(crate) fn take_session(&self) {
        self.session.take();
    }

    pub(crate) fn set_ready(&self) {
        self.is_ready.store(true, Ordering::Release);
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    pub(crate) fn flush_requested(&self) -> u32 {
        self.flush_requested.load(Ordering::Acquire)
    }

    /// Returns true if this flush has not been answered yet.
    pub(crate) fn is_flush_new(&self, number: u32) -> bool {
        self.flush_state(number) == FlushState::Pending
    }

    pub(crate) fn answer(&self, number: u32, is_durable: bool) {
        let answered = match is_durable {
            true => &self.flush_durable,
            false => &self.flush_failed,
        };
        answered.store(number, Ordering::Release);
    }

    pub(crate) fn rotation_requested(&self) -> u32 {
        self.rotation_requested.load(Ordering::Acquire)
    }

    pub(crate) fn set_flush_us_max(&self, us: u32) {
        self.flush_us_max.store(us, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::Format;

    #[test]
    fn the_recorder_sees_each_request() {
        let control = Control::new();
        assert!(!control.is_ready() && !control.is_stopped());
        control.set_ready();
        assert!(control.is_ready());
        for number in 0..3 {
            assert_eq!(control.rotation_requested(), number);
            control.rotate();
        }
        for us in [0, 1, 250_000] {
            control.set_flush_us_max(us);
            assert_eq!(control.flush_us_max(), us);
        }
        control.stop();
        assert!(control.is_stopped());
    }

    #[test]
    fn a_session_waits_until_it_is_taken() {
        let lines = Format::Lines {
            header: "",
            line_bytes_max: 80,
        };
        let session = |name| Session::new(name, None, "", &lines).unwrap();
        let control = Control::new();
        assert_eq!(control.waiting_session(), None);
        for name in ["one", "two"] {
            assert_eq!(control.begin_session(&session(name)), Ok(()));
            let next = control.begin_session(&session("next"));
            assert_eq!(next, Err(SessionError::QueueFull));
            assert_eq!(control.waiting_session(), Some(session(name)));
            control.take_session();
            assert_eq!(control.waiting_session(), None);
        }
    }

    #[test]
    fn a_flush_is_answered_once() {
        let control = Control::new();
        let (first, second) = (control.flush(), control.flush());
        assert_eq!(control.flush_requested(), second);
        assert_eq!(control.flush_state(first), FlushState::Pending);
        control.answer(first, true);
        assert_eq!(control.flush_state(first), FlushState::Durable);
        assert_eq!(control.flush_state(second), FlushState::Pending);
        assert!(!control.is_flush_new(first) && control.is_flush_new(second));
        control.answer(second, false);
        assert_eq!(control.flush_state(second), FlushState::Failed);
    }
}
