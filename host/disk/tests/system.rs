//! Identity and refusals, on invented trees of `/sys` and `/proc`.

use cardiograph_disk::{DiskError, PlaceKind, System};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use tempfile::TempDir;

/// A computer with a root disk `sda`, a card `mmcblk0` in a slot, and a USB reader `sdb`.
struct Computer {
    tree: TempDir,
}

const ROOT_MOUNT: &str = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n";
const NO_SWAPS: &str = "Filename Type Size Used Priority\n";

impl Computer {
    fn new() -> Computer {
        let computer = Computer {
            tree: tempfile::tempdir().unwrap(),
        };
        computer.disk("pci0/ata1", "sda", 8, 0, &["sda1", "sda2"]);
        computer.disk("pci0/usb1/1-2", "sdb", 8, 16, &["sdb1"]);
        computer.disk("soc/mmc0", "mmcblk0", 179, 0, &["mmcblk0p1"]);
        let card = "devices/soc/mmc0/block/mmcblk0/device";
        computer.write(&format!("{card}/cid"), "035344534c31364780d1e2f3a4012b\n");
        computer.write(&format!("{card}/csd"), "400e00325b590000\n");
        computer.write(&format!("{card}/name"), "SL16G\n");
        computer.write(&format!("{card}/date"), "11/2018\n");
        fs::create_dir_all(computer.sys().join("bus/mmc")).unwrap();
        let subsystem = computer.sys().join(card).join("subsystem");
        symlink(computer.sys().join("bus/mmc"), subsystem).unwrap();
        computer.proc(ROOT_MOUNT, NO_SWAPS);
        computer
    }

    fn sys(&self) -> &Path {
        self.tree.path()
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.sys().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn proc(&self, mountinfo: &str, swaps: &str) {
        self.write("proc/self/mountinfo", mountinfo);
        self.write("proc/swaps", swaps);
    }

    fn disk(&self, bus: &str, name: &str, major: u32, minor: u32, partitions: &[&str]) {
        let folder = format!("devices/{bus}/block/{name}");
        self.write(&format!("{folder}/dev"), &format!("{major}:{minor}\n"));
        self.write(&format!("{folder}/size"), "31116288\n");
        self.write(&format!("{folder}/queue/logical_block_size"), "512\n");
        self.write(&format!("{folder}/queue/scheduler"), "none [mq-deadline]\n");
        self.write(&format!("{folder}/diskseq"), "9\n");
        self.link(&folder, major, minor);
        for (number, partition) in (1..).zip(partitions) {
            let inside = format!("{folder}/{partition}");
            self.write(&format!("{inside}/partition"), "1\n");
            let minor = minor + number;
            self.write(&format!("{inside}/dev"), &format!("{major}:{minor}\n"));
            self.link(&inside, major, minor);
        }
    }

    fn link(&self, folder: &str, major: u32, minor: u32) {
        let links = self.sys().join("dev/block");
        fs::create_dir_all(&links).unwrap();
        let link = links.join(format!("{major}:{minor}"));
        symlink(self.sys().join(folder), link).unwrap();
    }

    fn system(&self) -> System {
        System {
            sys: self.sys().to_path_buf(),
            proc: self.sys().join("proc"),
        }
    }

    /// Returns the message of the refusal, which must be one sentence with a remedy.
    fn refusal(&self, device: &str, number: &str) -> String {
        let error = self.system().inspect(device, number).unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with(device) && text.contains("; "), "{text}");
        assert!(!text.contains('\n') && !text.ends_with('.'), "{text}");
        text
    }
}

const CARD: (&str, &str) = ("/dev/mmcblk0", "179:0");
const READER: (&str, &str) = ("/dev/sdb", "8:16");

#[test]
fn a_card_in_a_slot_shows_its_registers() {
    let computer = Computer::new();
    let identity = computer.system().inspect(CARD.0, CARD.1).unwrap();
    assert_eq!(identity.capacity_bytes, 31_116_288 * 512);
    assert_eq!((identity.block_bytes, identity.bus.as_str()), (512, "mmc"));
    assert_eq!(identity.fact("cid"), Some("035344534c31364780d1e2f3a4012b"));
    assert_eq!(identity.fact("csd"), Some("400e00325b590000"));
    assert_eq!(identity.fact("name"), Some("SL16G"));
    assert_eq!(identity.fact("date"), Some("11/2018"));
    assert_eq!(identity.fact("scheduler"), Some("mq-deadline"));
    assert_eq!(identity.fact("vendor"), None);
    let reader = computer.system().inspect(READER.0, READER.1).unwrap();
    assert_eq!(reader.bus, "usb");
}

#[test]
fn another_card_in_the_same_slot_differs() {
    let computer = Computer::new();
    let before = computer.system().inspect(CARD.0, CARD.1).unwrap();
    let queue = "devices/soc/mmc0/block/mmcblk0/queue/scheduler";
    computer.write(queue, "[none] mq-deadline\n");
    let same = computer.system().inspect(CARD.0, CARD.1).unwrap();
    assert_eq!(before.difference(&same), None);
    let folder = "devices/soc/mmc0/block/mmcblk0";
    for (file, value, name) in [
        ("device/cid", "1b534d", "cid"),
        ("size", "62333952", "capacity"),
        ("diskseq", "10", "sequence"),
    ] {
        let computer = Computer::new();
        computer.write(&format!("{folder}/{file}"), value);
        let other = computer.system().inspect(CARD.0, CARD.1).unwrap();
        let difference = before.difference(&other).unwrap();
        assert!(
            difference.starts_with(&format!("{name} was ")),
            "{difference}"
        );
    }
    let computer = Computer::new();
    fs::remove_file(computer.sys().join(folder).join("device/cid")).unwrap();
    let other = computer.system().inspect(CARD.0, CARD.1).unwrap();
    let difference = before.difference(&other).unwrap();
    assert!(difference.ends_with(" and is nothing"), "{difference}");
}

#[test]
fn partitions_and_empty_readers_are_refused() {
    let computer = Computer::new();
    let text = computer.refusal("/dev/sdb1", "8:17");
    assert!(text.contains("a partition of /dev/sdb;"), "{text}");
    computer.write("devices/pci0/usb1/1-2/block/sdb/size", "0\n");
    let text = computer.refusal(READER.0, READER.1);
    assert!(text.contains("no capacity"), "{text}");
    let missing = computer.system().inspect("/dev/sdz", "65:1");
    assert!(matches!(missing, Err(DiskError::NotADisk { .. })));
}

#[test]
fn the_disk_of_the_root_file_system_is_refused() {
    let computer = Computer::new();
    let text = computer.refusal("/dev/sda", "8:0");
    assert!(text.contains("root file system"), "{text}");
}

/// The root file system on a logical volume: the mount names the volume, its folder names the disk below.
#[test]
fn the_disk_below_a_volume_with_the_root_file_system_is_refused() {
    let computer = Computer::new();
    computer.disk("virtual", "dm-0", 254, 0, &[]);
    let slaves = computer.sys().join("devices/virtual/block/dm-0/slaves");
    fs::create_dir_all(&slaves).unwrap();
    let partition = "devices/pci0/usb1/1-2/block/sdb/sdb1";
    symlink(computer.sys().join(partition), slaves.join("sdb1")).unwrap();
    computer.proc("22 1 254:0 / / rw - ext4 /dev/mapper/root rw\n", NO_SWAPS);
    let text = computer.refusal(READER.0, READER.1);
    assert!(text.contains("root file system"), "{text}");
}

#[test]
fn mounted_partitions_are_refused() {
    let computer = Computer::new();
    let mounted = |line: &str| computer.proc(&format!("{ROOT_MOUNT}{line}\n"), NO_SWAPS);
    mounted("40 22 8:17 / /media/my\\040card rw - vfat /dev/sdb1 rw");
    let text = computer.refusal(READER.0, READER.1);
    assert!(
        text.contains("/dev/sdb1 is mounted on /media/my card"),
        "{text}"
    );
    // The whole disk without a partition table.
    mounted("40 22 8:16 / /media/card rw - vfat /dev/sdb rw");
    computer.refusal(READER.0, READER.1);
    // btrfs numbers its mounts itself.
    mounted("40 22 0:44 / /media/card rw - btrfs /dev/sdb1 rw");
    computer.refusal(READER.0, READER.1);
    mounted("40 22 8:33 / /media/card rw - vfat /dev/sdc1 rw");
    assert!(computer.system().inspect(READER.0, READER.1).is_ok());
}

#[test]
fn swap_holders_and_loops_are_refused() {
    let computer = Computer::new();
    computer.proc(
        ROOT_MOUNT,
        &format!("{NO_SWAPS}/dev/sdb1 partition 8 0 -2\n"),
    );
    let text = computer.refusal(READER.0, READER.1);
    assert!(text.contains("swapoff /dev/sdb1"), "{text}");

    let computer = Computer::new();
    for holders in ["sdb/holders/dm-1", "sdb/sdb1/holders/md0"] {
        let path = computer
            .sys()
            .join("devices/pci0/usb1/1-2/block")
            .join(holders);
        fs::create_dir_all(&path).unwrap();
        let text = computer.refusal(READER.0, READER.1);
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(text.contains(&format!("close /dev/{name} first")), "{text}");
        fs::remove_dir(&path).unwrap();
    }
    assert!(computer.system().inspect(READER.0, READER.1).is_ok());

    for backing in ["/dev/sdb\n", "/dev/sdb1\n"] {
        computer.write("block/loop7/loop/backing_file", backing);
        let text = computer.refusal(READER.0, READER.1);
        assert!(text.contains("losetup -d /dev/loop7"), "{text}");
    }
    computer.write("block/loop7/loop/backing_file", "/home/me/sdb\n");
    assert!(computer.system().inspect(READER.0, READER.1).is_ok());
}

/// Reading a folder fails, as reading any file does if this process has too many open.
#[test]
fn a_disk_whose_uses_are_unknown_is_refused() {
    for list in ["self/mountinfo", "swaps"] {
        let computer = Computer::new();
        let path = computer.sys().join("proc").join(list);
        fs::remove_file(&path).unwrap();
        // Kernels without swap have no list of it; the list of mounts is missing if nobody has mounted /proc.
        let is_refused = computer.system().inspect(READER.0, READER.1).is_err();
        assert_eq!(is_refused, list != "swaps");
        fs::create_dir(&path).unwrap();
        let text = computer.refusal(READER.0, READER.1);
        let words = format!("{list}: Is a directory");
        assert!(
            text.contains(&words) && text.contains("resolve this"),
            "{text}"
        );
    }
    let computer = Computer::new();
    let size = computer.sys().join("devices/pci0/usb1/1-2/block/sdb/size");
    fs::remove_file(&size).unwrap();
    fs::create_dir(&size).unwrap();
    let text = computer.refusal(READER.0, READER.1);
    assert!(text.contains("Is a directory"), "{text}");
}

/// Loop devices on one file, which has two names: `loop7` and `loop8`.
fn two_loops() -> (Computer, String) {
    let computer = Computer::new();
    computer.write("image", "");
    let (image, link) = (computer.sys().join("image"), computer.sys().join("link"));
    fs::hard_link(&image, &link).unwrap();
    for (number, file) in [(7, &image), (8, &link)] {
        let name = format!("loop{number}");
        computer.disk("virtual", &name, 7, number, &[]);
        let backing = format!("devices/virtual/block/{name}/loop/backing_file");
        computer.write(&backing, &format!("{}\n", file.display()));
        fs::create_dir_all(computer.sys().join("block")).unwrap();
        let folder = format!("devices/virtual/block/{name}");
        symlink(
            computer.sys().join(folder),
            computer.sys().join("block").join(name),
        )
        .unwrap();
    }
    (computer, image.display().to_string())
}

const LOOP: (&str, &str) = ("/dev/loop7", "7:7");

#[test]
fn a_loop_device_whose_file_is_used_through_another_one_is_refused() {
    let (computer, image) = two_loops();
    assert!(computer.system().inspect(LOOP.0, LOOP.1).is_ok());
    let mount = "40 22 7:8 / /media/card rw - ext4 /dev/loop8 rw\n";
    computer.proc(&format!("{ROOT_MOUNT}{mount}"), NO_SWAPS);
    let text = computer.refusal(LOOP.0, LOOP.1);
    let words = format!(
        "/dev/loop7: /dev/loop8 is a loop device on the same file ({image}), and /dev/loop8 is mounted on /media/card; \
         unmount it: umount /media/card first"
    );
    assert_eq!(text, words);

    let (computer, _) = two_loops();
    computer.proc(
        ROOT_MOUNT,
        &format!("{NO_SWAPS}/dev/loop8 partition 8 0 -2\n"),
    );
    assert!(
        computer
            .refusal(LOOP.0, LOOP.1)
            .contains("swapoff /dev/loop8")
    );

    let (computer, _) = two_loops();
    let holder = "devices/virtual/block/loop8/holders/dm-1";
    fs::create_dir_all(computer.sys().join(holder)).unwrap();
    let text = computer.refusal(LOOP.0, LOOP.1);
    assert!(
        text.contains("/dev/loop8 is a") && text.contains("close /dev/dm-1"),
        "{text}"
    );

    let (computer, _) = two_loops();
    computer.write("block/loop9/loop/backing_file", "/dev/loop8\n");
    assert!(
        computer
            .refusal(LOOP.0, LOOP.1)
            .contains("losetup -d /dev/loop9")
    );

    // Another file.
    let (computer, _) = two_loops();
    computer.write("other", "");
    let other = computer.sys().join("other").display().to_string();
    computer.write("devices/virtual/block/loop8/loop/backing_file", &other);
    computer.proc(&format!("{ROOT_MOUNT}{mount}"), NO_SWAPS);
    assert!(computer.system().inspect(LOOP.0, LOOP.1).is_ok());
    // A file that was deleted cannot be found, but both devices name it.
    for name in ["loop7", "loop8"] {
        let backing = format!("devices/virtual/block/{name}/loop/backing_file");
        computer.write(&backing, "/tmp/gone (deleted)\n");
    }
    assert!(
        computer
            .refusal(LOOP.0, LOOP.1)
            .contains("/tmp/gone (deleted)")
    );
}

#[test]
fn a_loop_device_on_swap_space_is_refused() {
    let (computer, image) = two_loops();
    computer.proc(ROOT_MOUNT, &format!("{NO_SWAPS}{image} file 8 0 -2\n"));
    let text = computer.refusal(LOOP.0, LOOP.1);
    assert!(
        text.contains(&format!("{image}, which is behind it, is swap")),
        "{text}"
    );
    assert!(text.contains(&format!("swapoff {image}")), "{text}");
}

/// The device of a directory is the whole disk below its partition; a directory of the root file system shows that no card
/// is mounted there.
#[test]
fn a_directory_has_a_device_and_a_kind() {
    let computer = Computer::new();
    let folder = |name: &str| {
        let path = computer.sys().join(name);
        fs::create_dir_all(&path).unwrap();
        fs::canonicalize(path).unwrap()
    };
    let (card, plain, memory) = (folder("card"), folder("plain"), folder("memory"));
    let (btrfs, bind) = (folder("btrfs"), folder("bind"));
    let mounts = format!(
        "{ROOT_MOUNT}30 22 179:1 / {} rw - vfat /dev/mmcblk0p1 rw\n\
         31 22 0:40 / {} rw - tmpfs tmpfs rw\n32 22 0:41 /home {} rw - btrfs none rw\n\
         33 22 8:1 /srv {} rw - ext4 /dev/sda1 rw\n",
        card.display(),
        memory.display(),
        btrfs.display(),
        bind.display()
    );
    computer.proc(&mounts, NO_SWAPS);
    let place = |path: &Path| computer.system().place(path).unwrap();
    let below = folder("card/photos");
    let of_card = place(&below);
    assert_eq!(of_card.kind, PlaceKind::Mounted);
    assert_eq!(of_card.file_system, "vfat");
    assert_eq!(of_card.device.as_deref(), Some("/dev/mmcblk0"));
    assert_eq!(of_card.device_bytes, Some(31_116_288 * 512));
    assert_eq!(Path::new(&of_card.mount_point), card);
    assert_eq!(place(&plain).kind, PlaceKind::Root);
    assert_eq!(place(&bind).kind, PlaceKind::Root);
    assert_eq!(place(&memory).kind, PlaceKind::Memory);
    assert_eq!(place(&memory).device_bytes, None);
    // Perhaps on several disks.
    assert_eq!(
        (place(&btrfs).kind, place(&btrfs).device),
        (PlaceKind::Mounted, None)
    );
}
