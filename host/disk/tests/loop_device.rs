//! A real whole disk: a loop device over a file. Needs root; without it, the tests do nothing, and say so.

mod common;

use cardiograph_disk::{
    Aligned, CapacityPlan, DiskError, Medium, RawDisk, RawStore, System, check_capacity,
    read_workload,
};
use cardiograph_workload::{Activity, Clock, Observer, Operation, Phase, Workload, run};
use common::Loop;
use std::ops::ControlFlow;
use std::path::Path;
use tempfile::NamedTempFile;

const BYTES: u64 = 40 << 20;

/// A loop device over a file of zeros.
struct Disk {
    attached: Loop,
    file: NamedTempFile,
}

impl Disk {
    fn new(options: &[&str]) -> Option<Disk> {
        let file = NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        file.as_file().set_len(BYTES).unwrap();
        let attached = Loop::over(file.path(), options)?;
        Some(Disk { attached, file })
    }

    fn content(&self) -> Vec<u8> {
        std::fs::read(self.file.path()).unwrap()
    }
}

/// A clock that counts its readings.
struct Counter(u64);

impl Clock for Counter {
    fn now_ns(&mut self) -> u64 {
        self.0 += 1000;
        self.0
    }

    fn pause_ns(&mut self, ns: u64) {
        self.0 += ns;
    }
}

#[derive(Default)]
struct Operations(Vec<Operation>);

impl Observer for Operations {
    fn observe(&mut self, operation: &Operation) -> ControlFlow<()> {
        self.0.push(*operation);
        ControlFlow::Continue(())
    }

    fn poll(&mut self, _: Activity, _: u64) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

fn workload(phases: &[Phase]) -> Workload<'_> {
    Workload {
        name: "test",
        study: "",
        about: "",
        phases,
    }
}

const TWO_FILES: Phase = Phase {
    files: 2,
    calls_per_file: 64,
    bytes_per_call: 4096,
    passes: 2,
    ..Phase::WRITE
};

#[test]
#[ignore = "needs root and losetup"]
fn a_disk_is_read_by_default_and_written_only_by_name() {
    let Some(disk) = Disk::new(&[]) else { return };
    let before = disk.content();
    let mut raw = RawDisk::open(&System::default(), &disk.attached.device).unwrap();
    assert_eq!(raw.identity().capacity_bytes, BYTES);
    assert_eq!(raw.identity().bus, "loop");
    let mut data = Aligned::zeros(4096);
    raw.read_at(0, data.bytes()).unwrap();
    let refused = raw.write_at(0, data.bytes()).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::PermissionDenied);

    let phases = [TWO_FILES];
    let mut seen = Operations::default();
    let failed = read_workload(
        &mut raw,
        &workload(&phases),
        &mut Counter(0),
        &mut seen,
        data.bytes(),
    );
    assert_eq!(failed.unwrap(), []);
    assert_eq!(seen.0.len(), 256);
    assert!(
        seen.0
            .windows(2)
            .all(|pair| pair[0].end_ns <= pair[1].start_ns)
    );

    let Err(error) = raw.destroy("/dev/sdz") else {
        panic!("another name must not do");
    };
    assert!(matches!(error, DiskError::OtherName { .. }), "{error}");
    assert!(disk.content() == before);
}

#[test]
#[ignore = "needs root and losetup"]
fn a_disk_is_held_exclusively() {
    let Some(disk) = Disk::new(&[]) else { return };
    let system = System::default();
    let held = RawDisk::open(&system, &disk.attached.device).unwrap();
    let Err(error) = RawDisk::open(&system, &disk.attached.device) else {
        panic!("two runs at once");
    };
    assert!(matches!(error, DiskError::InUse { .. }), "{error}");
    let held = held.destroy(&disk.attached.device).unwrap();
    let Err(error) = RawDisk::open(&system, &disk.attached.device) else {
        panic!("two runs at once");
    };
    assert!(
        error.to_string().contains("has it open exclusively"),
        "{error}"
    );
    drop(held);
    RawDisk::open(&system, &disk.attached.device).unwrap();
}

#[test]
#[ignore = "needs root and losetup"]
fn a_workload_writes_where_it_says() {
    let Some(disk) = Disk::new(&[]) else { return };
    let raw = RawDisk::open(&System::default(), &disk.attached.device).unwrap();
    let raw = raw.destroy(&disk.attached.device).unwrap();
    let phases = [TWO_FILES];
    let workload = workload(&phases);
    let mut store = RawStore::new(raw, &workload);
    let mut buffer = Aligned::zeros(workload.buffer_bytes());
    let mut seen = Operations::default();
    let outcome = run(
        &workload,
        &mut store,
        &mut Counter(0),
        &mut seen,
        buffer.bytes(),
    );
    assert_eq!(outcome.unwrap().verified_bytes, 2 * 64 * 4096);
    assert_eq!(store.failed_blocks(), []);
    // Another program sees the same bytes: the number of the call, then the letter of the file.
    let region = store.region_bytes() as usize;
    drop(store);
    let content = disk.content();
    for (file, letter) in [(0, b'A'), (1, b'B')] {
        for call in 0..64 {
            let at = file * region + call * 4096;
            assert_eq!(content[at..at + 8], (call as u64).to_le_bytes());
            assert!(
                content[at + 8..at + 4096]
                    .iter()
                    .all(|&byte| byte == letter)
            );
        }
    }
    assert!(content[2 * region..].iter().all(|&byte| byte == 0));
}

#[test]
#[ignore = "needs root and losetup"]
fn a_read_only_disk_is_not_written() {
    let Some(disk) = Disk::new(&["--read-only"]) else {
        return;
    };
    let raw = RawDisk::open(&System::default(), &disk.attached.device).unwrap();
    let Err(error) = raw.destroy(&disk.attached.device) else {
        panic!("a read-only disk was opened for writing");
    };
    assert!(matches!(error, DiskError::ReadOnly { .. }), "{error}");
}

#[test]
fn files_and_character_devices_are_no_disks() {
    for path in ["/dev/null", env!("CARGO_MANIFEST_DIR"), "/dev/no-such-disk"] {
        let Err(error) = RawDisk::open(&System::default(), path) else {
            panic!("{path} was opened");
        };
        assert!(error.to_string().contains("; "), "{error}");
    }
}

#[test]
#[ignore = "needs root and losetup"]
fn an_honest_disk_passes_both_checks() {
    let Some(disk) = Disk::new(&[]) else { return };
    let raw = RawDisk::open(&System::default(), &disk.attached.device).unwrap();
    let mut raw = raw.destroy(&disk.attached.device).unwrap();
    for (run, plan) in (1..).zip([CapacityPlan::Quick, CapacityPlan::Full]) {
        let go_on = |_| ControlFlow::Continue(());
        let capacity = check_capacity(&mut raw, plan, run, go_on).unwrap();
        assert!(capacity.is_honest(), "{capacity:?}");
        assert_eq!(capacity.kept_bytes, BYTES);
    }
    assert!(Path::new(&disk.attached.device).exists());
}
