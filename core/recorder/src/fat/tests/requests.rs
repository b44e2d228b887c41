//! Changes as a desk passes them to the volume.

use super::*;
use crate::changes::Change;
use crate::fat::error::refusal_of;
use crate::guest::FileError;
use crate::reads::ReadDesk;
use crate::volume::Volume;

/// Carries out a change that a task requests, with `data` in the task's buffer.
fn carried_out(
    desk: &ReadDesk,
    volume: &mut FatVolume,
    disk: &mut Disk,
    change: Change,
    data: &[u8],
) -> Result<u8, FileError> {
    let mut task = pin!(async {
        let mut buffer = desk.write_buffer().await.unwrap();
        buffer.bytes()[..data.len()].copy_from_slice(data);
        desk.change(change, Some(buffer)).await
    });
    let mut context = Context::from_waker(Waker::noop());
    assert!(task.as_mut().poll(&mut context).is_pending());
    assert!(desk.changes.is_pending());
    desk.changes.begin();
    let result = poll(volume.change(disk, &mut desk.changes.task()));
    desk.end_change(result.map_err(|error| refusal_of(&error).unwrap()));
    match task.as_mut().poll(&mut context) {
        Poll::Ready(result) => result,
        Poll::Pending => panic!("the change has ended"),
    }
}

/// Contents of a block of a file.
fn block_of(number: u32) -> Block {
    [number as u8 | 0x80; 512]
}

#[test]
fn an_upload_is_written_where_its_blocks_are() {
    const BUFFER_BLOCKS: usize = 24;
    for kind in [FatKind::Fat16, FatKind::Fat32] {
        let mut rig = Rig::new(Shape {
            kind,
            clusters: 100,
            cluster_blocks: 1,
            shift: 0,
        });
        // No free run is longer than 19 clusters.
        (10..100).step_by(20).for_each(|it| rig.chain(&[it]));
        let used = |rig: &Rig| rig.table()[2..].iter().filter(|it| **it != 0).count();
        let before = used(&rig);
        let mut volume = rig.volume();
        let mut memory = [[0; 512]; 2 * BUFFER_BLOCKS];
        let desk = ReadDesk::with_buffers(&mut memory, 2);
        desk.set_mounted(Volume::<Disk>::file_system(&volume));
        let mut change = |rig: &mut Rig, change, data: &[u8]| {
            carried_out(&desk, &mut volume, &mut rig.disk, change, data)
        };
        let begin = Change::BeginUpload { bytes: 0 };
        let upload = change(&mut rig, begin, &[]).unwrap();
        for (block, blocks) in [(2, 20), (0, 2), (22, 24), (46, 1)] {
            let data: Vec<Block> = (block..block + blocks).map(block_of).collect();
            let write = Change::WriteUpload {
                upload,
                block,
                blocks,
            };
            rig.disk.writes.clear();
            change(&mut rig, write, data.as_flattened()).unwrap();
            // It has grown as far as necessary, and no command is long.
            let end = if block == 0 { 22 } else { block + blocks };
            assert_eq!(used(&rig), before + end as usize);
            assert!(rig.disk.writes.iter().all(|it| it.1 <= 16));
        }
        let bytes = 46 * 512 + 100;
        let path = "file.bin";
        let commit = Change::CommitUpload {
            upload,
            path,
            bytes,
        };
        change(&mut rig, commit, &[]).unwrap();
        assert_eq!(change(&mut rig, commit, &[]), Err(FileError::Changed));
        let mut volume = rig.volume();
        let mut disk = rig.disk.clone();
        let file = done(volume.walk(&mut disk).lookup(path));
        let crate::fat::Node::Entry(entry) = file else {
            panic!("it is not the root directory");
        };
        assert_eq!(entry.bytes, bytes);
        let mut position = entry.contents();
        for block in 0..47 {
            let extent = done(volume.extent_at(&mut disk, &mut position, block, 1));
            assert!(rig.disk.blocks[extent.start as usize] == block_of(block));
        }

        let mut volume = rig.volume();
        let mut change =
            |rig: &mut Rig, change| carried_out(&desk, &mut volume, &mut rig.disk, change, &[]);
        let upload = change(&mut rig, begin).unwrap();
        assert_eq!(
            change(&mut rig, Change::DiscardUpload { upload }),
            Ok(upload)
        );
        let write = Change::WriteUpload {
            upload,
            block: 0,
            blocks: 1,
        };
        assert_eq!(change(&mut rig, write), Err(FileError::Changed));
        let (from, to) = (path, "other.bin");
        change(&mut rig, Change::Rename { from, to }).unwrap();
        assert_eq!(
            change(&mut rig, Change::Remove { path }),
            Err(FileError::NotFound)
        );
        change(&mut rig, Change::Remove { path: to }).unwrap();
        assert_eq!(used(&rig), before);
        change(&mut rig, Change::MakeDirectory { path }).unwrap();
        assert_eq!(used(&rig), before + 1);
    }
}
