//! Writing files before the timed calls, and reading them back afterwards.

use super::files::is_created_by_calls;
use super::{BULK_BYTES_MAX, Halt, Run, RunError, Step};
use crate::{Activity, Clock, Observer, OperationKind, Order, Phase, Span, Store, Sync};

impl<S: Store, C: Clock, O: Observer> Run<'_, S, C, O> {
    /// Writes a file that the phase reads or accesses at random offsets.
    pub(super) fn prepare(&mut self, phase: &Phase, file: u32) -> Step<S::Error> {
        self.make_folder(phase, file)?;
        let mut handle = self.create(phase, file)?;
        let payloads = self.payloads_per_call(phase);
        self.fill_many(phase, file, payloads);
        let mut result = Ok(());
        let (mut call, mut offset_bytes) = (0, 0);
        while offset_bytes < phase.file_bytes() && result.is_ok() {
            self.stamp_many(phase, call, payloads);
            let left = phase.file_bytes() - offset_bytes;
            let length = left.min(u64::from(payloads * phase.bytes_per_call)) as usize;
            let written = self
                .store
                .write(&mut handle, offset_bytes, &self.payload[..length]);
            result = self.check(written, "writing to", phase, file);
            result = result.and_then(|()| self.poll_untimed(Activity::Preparing, call, payloads));
            call = call.saturating_add(payloads);
            offset_bytes += length as u64;
        }
        let result = result.and_then(|()| self.sync(&mut handle, file, phase, Sync::Wait));
        result.and(self.close(handle, phase, file))?;
        self.pause_us(phase.pause_us)
    }

    /// Reads back the files of a phase that was stopped during a pass.
    pub(super) fn verify_written(&mut self, phase: &Phase, pass: u32) -> Step<S::Error> {
        // Timed reads have been compared already.
        if phase.operation == OperationKind::Read {
            return Ok(());
        }
        for file in 0..self.files_created {
            let bytes = self.written_bytes(phase, pass, file);
            self.verify(phase, file, bytes)?;
        }
        Ok(())
    }

    /// Returns the length of a file after a stop.
    fn written_bytes(&self, phase: &Phase, pass: u32, file: u32) -> u64 {
        let whole = phase.file_bytes();
        // Prepared files keep their length.
        if !is_created_by_calls(phase) {
            return whole;
        }
        let Some((last, end_bytes)) = self.last else {
            return 0;
        };
        match phase.order {
            _ if file == last => end_bytes,
            Order::FileByFile if file < last || pass > 0 => whole,
            Order::FileByFile => 0,
            Order::RoundRobin if file < last => end_bytes,
            // In the first round of a pass, files that are opened for each call are still those of the pass before.
            Order::RoundRobin => match end_bytes - u64::from(phase.bytes_per_call) {
                0 if pass > 0 && phase.span == Span::OpenToClose => whole,
                bytes => bytes,
            },
        }
    }

    /// Reads back a file that should have this length.
    pub(super) fn verify(&mut self, phase: &Phase, file: u32, bytes: u64) -> Step<S::Error> {
        let path = self.path(phase, file);
        let opened = self.store.open(path.as_str(), false);
        let mut handle = self.check(opened, "opening", phase, file)?;
        let result = self.compare(phase, &mut handle, file, bytes);
        result.and(self.close(handle, phase, file))
    }

    pub(super) fn compare(
        &mut self,
        phase: &Phase,
        handle: &mut S::File,
        file: u32,
        bytes: u64,
    ) -> Step<S::Error> {
        let payloads = self.payloads_per_call(phase);
        self.fill_many(phase, file, payloads);
        let (mut call, mut offset_bytes) = (0, 0);
        loop {
            self.stamp_many(phase, call, payloads);
            let length = (payloads * phase.bytes_per_call) as usize;
            let expected = (bytes - offset_bytes).min(length as u64) as usize;
            let read = self
                .store
                .read(handle, offset_bytes, &mut self.readback[..length]);
            let read = self.check(read, "reading back", phase, file)?;
            self.check_same(phase, file, offset_bytes, read, expected)?;
            self.poll_untimed(Activity::ReadingBack, call, payloads)?;
            self.verified_bytes += read as u64;
            offset_bytes += read as u64;
            call = call.saturating_add(payloads);
            // The last read checks that the file ends where it should.
            if read == 0 {
                return Ok(());
            }
        }
    }

    /// Returns the number of payloads of a call that is not timed.
    fn payloads_per_call(&self, phase: &Phase) -> u32 {
        let bytes = self.store.bulk_bytes().min(self.payload.len());
        let payloads = bytes.min(BULK_BYTES_MAX) / phase.bytes_per_call as usize;
        payloads.max(1) as u32
    }

    /// Polls the observer after each long call, and after some of the short ones.
    fn poll_untimed(&mut self, activity: Activity, call: u32, payloads: u32) -> Step<S::Error> {
        match payloads {
            1 => self.poll_every_few_calls(activity, call),
            _ => self.poll(activity),
        }
    }

    /// Compares the data of a timed read with the prepared data; not part of the measured time.
    pub(super) fn check_read(&self, phase: &Phase, file: u32, offset_bytes: u64) -> Step<S::Error> {
        match phase.operation {
            OperationKind::Write => Ok(()),
            OperationKind::Read => {
                let length = phase.bytes_per_call as usize;
                self.check_same(phase, file, offset_bytes, length, length)
            }
        }
    }

    fn check_same(
        &self,
        phase: &Phase,
        file: u32,
        offset_bytes: u64,
        read: usize,
        expected: usize,
    ) -> Step<S::Error> {
        let (read_back, written) = (&self.readback[..read], &self.payload[..expected]);
        if read_back == written {
            return Ok(());
        }
        let same = read_back.iter().zip(written).take_while(|(r, w)| r == w);
        let offset_bytes = offset_bytes + same.count() as u64;
        let path = self.path(phase, file);
        Err(Halt::Failed(RunError::Differs { path, offset_bytes }))
    }
}
