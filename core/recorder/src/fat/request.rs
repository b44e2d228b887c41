//! Carries out changes that other tasks request.

use super::table::SLICE_BLOCKS;
use super::{Error, FatVolume};
use crate::changes::{Change, ChangeTask};
use crate::volume::Blocks;
use cardiograph_card::BLOCK_BYTES;

impl FatVolume {
    /// Carries out a change.
    pub(super) async fn carry_out<B: Blocks>(
        &mut self,
        card: &mut B,
        task: &mut ChangeTask<'_>,
    ) -> Result<(), Error<B::Error>> {
        match task.change.get() {
            Change::BeginUpload { bytes } => {
                let upload = self.begin_upload(card, bytes).await?;
                task.begun = upload.number();
                if let Some(place) = task.uploads.get_mut(usize::from(task.begun)) {
                    *place = Some(upload);
                }
                Ok(())
            }
            Change::WriteUpload { .. } => self.write_upload(card, task).await,
            Change::CommitUpload {
                upload,
                path,
                bytes,
            } => {
                let place = task.uploads.get_mut(usize::from(upload));
                let place = place.ok_or(Error::NoSuchUpload)?;
                let upload = place.as_mut().ok_or(Error::NoSuchUpload)?;
                let time = (self.clock)();
                self.commit_upload(card, upload, path, bytes, time, true)
                    .await?;
                *place = None;
                Ok(())
            }
            Change::DiscardUpload { upload } => {
                let upload = task.uploads.get_mut(usize::from(upload));
                let upload = upload.and_then(Option::take).ok_or(Error::NoSuchUpload)?;
                self.discard_upload(card, upload).await
            }
            Change::Rename { from, to } => self.rename(card, from, to, false).await,
            Change::Remove { path } => self.remove(card, path).await,
            Change::MakeDirectory { path } => self.make_directory(card, path).await,
        }
    }

    async fn write_upload<B: Blocks>(
        &mut self,
        card: &mut B,
        task: &mut ChangeTask<'_>,
    ) -> Result<(), Error<B::Error>> {
        let Change::WriteUpload {
            upload,
            block,
            blocks,
        } = task.change.get()
        else {
            return Ok(());
        };
        let place = task.uploads.get_mut(usize::from(upload));
        let upload = place.and_then(Option::as_mut).ok_or(Error::NoSuchUpload)?;
        let data = task.data.as_ref().map(|buffer| &*buffer.blocks);
        let data = data.unwrap_or_default();
        let blocks = blocks.min(data.len() as u32);
        let bytes = u64::from(block + blocks) * BLOCK_BYTES as u64;
        self.grow_upload(card, upload, bytes).await?;
        let mut done = 0;
        while done < blocks {
            let left = (blocks - done).min(SLICE_BLOCKS);
            let extent = self.upload_extent(card, upload, block + done, left).await?;
            let from = done as usize;
            card.write(extent.start, extent.blocks, &mut |index, out| {
                out.copy_from_slice(&data[from + index as usize]);
            })
            .await
            .map_err(Error::Card)?;
            done += extent.blocks;
        }
        Ok(())
    }
}
