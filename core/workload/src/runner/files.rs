//! Opening, closing, syncing and removing the files of a phase.

use super::{Halt, Run, RunError, Step};
use crate::{Clock, Flush, Observer, OperationKind, Phase, Store, Sync};

impl<S: Store, C: Clock, O: Observer> Run<'_, S, C, O> {
    pub(super) fn open(
        &mut self,
        phase: &Phase,
        pass: u32,
        file: u32,
    ) -> Result<S::File, Halt<S::Error>> {
        if is_created_by_calls(phase) {
            if pass > 0 {
                self.remove_file(phase, file)?;
            }
            self.make_folder(phase, file)?;
            return self.create(phase, file);
        }
        let writable = phase.operation == OperationKind::Write;
        let opened = self.store.open(self.path(phase, file).as_str(), writable);
        self.check(opened, "opening", phase, file)
    }

    pub(super) fn create(&mut self, phase: &Phase, file: u32) -> Result<S::File, Halt<S::Error>> {
        let created = self.store.create(self.path(phase, file).as_str());
        let handle = self.check(created, "creating", phase, file)?;
        self.files_created = self.files_created.max(file + 1);
        Ok(handle)
    }

    pub(super) fn append(&mut self, phase: &Phase, file: u32) -> Result<S::File, Halt<S::Error>> {
        let opened = self.store.append(self.path(phase, file).as_str());
        let handle = self.check(opened, "opening", phase, file)?;
        self.files_created = self.files_created.max(file + 1);
        Ok(handle)
    }

    pub(super) fn close(&mut self, handle: S::File, phase: &Phase, file: u32) -> Step<S::Error> {
        let closed = self.store.close(handle);
        self.check(closed, "closing", phase, file)
    }

    pub(super) fn sync_after(&self, phase: &Phase, pass: u32, file: u32) -> Sync {
        let last = pass + 1 == phase.passes && file + 1 == phase.files;
        match (last, phase.sync_end) {
            (true, Sync::Start | Sync::Wait) => phase.sync_end,
            _ => phase.sync_file,
        }
    }

    pub(super) fn sync(
        &mut self,
        handle: &mut S::File,
        file: u32,
        phase: &Phase,
        sync: Sync,
    ) -> Step<S::Error> {
        let how = match sync {
            Sync::Never => return Ok(()),
            Sync::Start => Flush::Start,
            Sync::Wait => Flush::Wait,
        };
        let flushed = self.store.flush(handle, how);
        self.check(flushed, "syncing", phase, file)
    }

    pub(super) fn make_folder(&mut self, phase: &Phase, file: u32) -> Step<S::Error> {
        if !phase.folder_per_file || file < self.folders_created {
            return Ok(());
        }
        let path = self.names.folder(file);
        let made = self.store.mkdir(path.as_str());
        self.check(made, "creating a folder for", phase, file)?;
        self.folders_created = file + 1;
        Ok(())
    }

    pub(super) fn remove_file(&mut self, phase: &Phase, file: u32) -> Step<S::Error> {
        let removed = self.store.remove(self.path(phase, file).as_str());
        self.check(removed, "removing", phase, file)
    }

    /// Removes all files and folders of the phase, continuing after errors; returns the first error.
    pub(super) fn remove_files(&mut self, folder_per_file: bool) -> Step<S::Error> {
        let mut result = Ok(());
        let files = (0..self.files_created).map(|file| self.names.file(file, folder_per_file));
        let folders = (0..self.folders_created).map(|file| self.names.folder(file));
        for path in files.chain(folders) {
            let removed = self.store.remove(path.as_str());
            result = result.and(removed.map_err(|source| {
                Halt::Failed(RunError::Store {
                    action: "removing",
                    path,
                    source,
                })
            }));
        }
        (self.files_created, self.folders_created) = (0, 0);
        result
    }
}

/// Returns true if the timed calls create the file, and false if they access a prepared one.
pub(super) fn is_created_by_calls(phase: &Phase) -> bool {
    phase.operation == OperationKind::Write && phase.jump_within_bytes == 0
}
