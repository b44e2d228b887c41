//! Timing of operations for each of the three spans, and the write or read call inside.

use super::files::is_created_by_calls;
use super::{Halt, Run, RunError, Step};
use crate::{Activity, Clock, Observer, OperationKind, Phase, Store, Sync};

impl<S: Store, C: Clock, O: Observer> Run<'_, S, C, O> {
    /// Times the call alone ([`Span::Call`]).
    #[inline]
    pub(super) fn timed_call(
        &mut self,
        phase: &Phase,
        handle: &mut S::File,
        file: u32,
        call: u32,
    ) -> Step<S::Error> {
        let offset_bytes = self.next_offset_bytes(phase, call);
        self.stamp(phase, call);
        self.wait_until_due()?;
        let start_ns = self.clock.now_ns();
        self.call(phase, handle, file, offset_bytes)?;
        let end_ns = self.clock.now_ns();
        self.check_read(phase, file, offset_bytes)?;
        let length_bytes = u64::from(phase.bytes_per_call);
        self.observe(phase, file, offset_bytes, length_bytes, start_ns, end_ns)?;
        self.pause_us(phase.delay_us)
    }

    /// Times open, call and close together ([`Span::OpenToClose`]).
    pub(super) fn open_call_close(
        &mut self,
        phase: &Phase,
        pass: u32,
        file: u32,
        call: u32,
    ) -> Step<S::Error> {
        let offset_bytes = self.next_offset_bytes(phase, call);
        self.stamp(phase, call);
        let is_rewrite = pass > 0 && call == 0 && is_created_by_calls(phase);
        if is_rewrite {
            self.remove_file(phase, file)?;
        }
        if call == 0 {
            self.make_folder(phase, file)?;
        }
        self.wait_until_due()?;
        let start_ns = self.clock.now_ns();
        let mut handle = if is_created_by_calls(phase) {
            self.append(phase, file)?
        } else {
            self.open(phase, pass, file)?
        };
        let result = self.call(phase, &mut handle, file, offset_bytes);
        let last = call + 1 == phase.calls_per_file;
        let sync = if last {
            self.sync_after(phase, pass, file)
        } else {
            Sync::Never
        };
        let result = result.and_then(|()| self.sync(&mut handle, file, phase, sync));
        result.and(self.close(handle, phase, file))?;
        let end_ns = self.clock.now_ns();
        self.check_read(phase, file, offset_bytes)?;
        let length_bytes = u64::from(phase.bytes_per_call);
        self.observe(phase, file, offset_bytes, length_bytes, start_ns, end_ns)?;
        self.pause_us(phase.delay_us)
    }

    /// Times open, every call, sync and close together ([`Span::File`]).
    pub(super) fn whole_file(&mut self, phase: &Phase, pass: u32, file: u32) -> Step<S::Error> {
        self.make_folder(phase, file)?;
        let start_ns = self.clock.now_ns();
        let mut handle = self.open(phase, pass, file)?;
        let mut result = Ok(());
        for call in 0..phase.calls_per_file {
            let offset_bytes = self.next_offset_bytes(phase, call);
            self.stamp(phase, call);
            result = self.call(phase, &mut handle, file, offset_bytes);
            result = result.and_then(|()| self.poll_every_few_calls(Activity::Measuring, call));
            if result.is_err() {
                break;
            }
        }
        let sync = self.sync_after(phase, pass, file);
        let result = result.and_then(|()| self.sync(&mut handle, file, phase, sync));
        result.and(self.close(handle, phase, file))?;
        let end_ns = self.clock.now_ns();
        self.observe(phase, file, 0, phase.bytes_per_pass(), start_ns, end_ns)
    }

    #[inline]
    pub(super) fn call(
        &mut self,
        phase: &Phase,
        handle: &mut S::File,
        file: u32,
        offset_bytes: u64,
    ) -> Step<S::Error> {
        let length = phase.bytes_per_call as usize;
        match phase.operation {
            OperationKind::Write => {
                let written = self
                    .store
                    .write(handle, offset_bytes, &self.payload[..length]);
                self.check(written, "writing to", phase, file)?;
                self.last = Some((file, offset_bytes + length as u64));
                if phase.write_through {
                    self.sync(handle, file, phase, Sync::Wait)?;
                }
                Ok(())
            }
            OperationKind::Read => {
                let read = self
                    .store
                    .read(handle, offset_bytes, &mut self.readback[..length]);
                let read = self.check(read, "reading from", phase, file)?;
                if read < length {
                    let path = self.path(phase, file);
                    let offset_bytes = offset_bytes + read as u64;
                    return Err(Halt::Failed(RunError::Differs { path, offset_bytes }));
                }
                Ok(())
            }
        }
    }
}
