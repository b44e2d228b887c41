//! Mount points of cards and images.

use cardiograph_system::{device_number, is_block_device};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Returns the mount points of a device, its partitions or an image.
pub(super) fn mounts_of(path: &Path) -> Vec<PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    mounts_in(path, &mounts)
}

/// Returns the mount points from the text of `/proc/self/mounts`.
fn mounts_in(path: &Path, mounts: &str) -> Vec<PathBuf> {
    let own = path.canonicalize().unwrap_or(path.to_path_buf());
    let own_device = device_of(&own);
    let is_own = |source: &Path| {
        let device = device_of(source);
        let is_related = match (&own_device, &device) {
            // The sysfs folder of a partition is inside the folder of its device.
            (Some(own), Some(other)) => own.starts_with(other) || other.starts_with(own),
            _ => false,
        };
        is_related
            || source == own
            || device
                .and_then(|device| image_of(&device))
                .is_some_and(|image| image == own)
    };
    let mounts = mounts.lines().filter_map(|line| {
        let (source, rest) = line.split_once(' ')?;
        let (at, _) = rest.split_once(' ')?;
        source
            .starts_with('/')
            .then(|| (unescaped(source), unescaped(at)))
    });
    mounts
        .filter(|(source, _)| is_own(source))
        .map(|(_, at)| at)
        .collect()
}

/// Returns the sysfs folder of a block device.
fn device_of(path: &Path) -> Option<PathBuf> {
    let metadata = path.metadata().ok().filter(is_block_device)?;
    let (major, minor) = device_number(&metadata);
    let link = format!("/sys/dev/block/{major}:{minor}");
    Path::new(&link).canonicalize().ok()
}

/// Returns the backing file of a loop device or of one of its partitions.
fn image_of(device: &Path) -> Option<PathBuf> {
    [device, device.parent()?].into_iter().find_map(|device| {
        let text = std::fs::read_to_string(device.join("loop/backing_file")).ok()?;
        Some(PathBuf::from(text.trim_end_matches('\n')))
    })
}

/// Decodes a path in which spaces and other special bytes are escaped in octal, such as `\040`.
fn unescaped(text: &str) -> PathBuf {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let [byte, after @ ..] = rest {
        let number = after
            .get(..3)
            .filter(|_| *byte == b'\\')
            .and_then(|digits| u8::from_str_radix(str::from_utf8(digits).ok()?, 8).ok());
        bytes.push(number.unwrap_or(*byte));
        rest = &after[if number.is_some() { 3 } else { 0 }..];
    }
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mounted_image_is_found_by_its_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("my card.img");
        std::fs::write(&path, [0; 512]).unwrap();
        let path = path.canonicalize().unwrap();
        let escaped = path.display().to_string().replace(' ', "\\040");
        let mounts = format!(
            "proc /proc proc rw 0 0\n{escaped} /media/my\\040card vfat rw 0 0\n/other /mnt vfat rw 0 0\nbad\n"
        );
        assert_eq!(mounts_in(&path, &mounts), [Path::new("/media/my card")]);
        assert!(mounts_in(directory.path(), &mounts).is_empty());
    }
}
