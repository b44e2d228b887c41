//! Identity of a disk, as far as the kernel knows it.

use serde::Serialize;
use std::fs;
use std::path::Path;

/// Identity of a whole disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Identity {
    /// Path that the command line names.
    pub device: String,
    /// Capacity.
    pub capacity_bytes: u64,
    /// Smallest unit that can be read or written.
    pub block_bytes: u32,
    /// Bus: `mmc`, `usb`, `scsi`, `nvme`, `virtio`, `loop` or another word of the kernel.
    pub bus: String,
    /// Everything else that the kernel reports.
    pub facts: Vec<Fact>,
}

/// A property that the kernel reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fact {
    /// Name, such as `cid` or `scheduler`.
    pub name: String,
    /// Value, as the kernel prints it.
    pub value: String,
}

/// Files of the disk's folder in sysfs, and the names of their facts.
///
/// `cid` to `hwrev` are the registers of a card in an MMC slot; a card in a USB reader shows only what the reader says.
const FACTS: [(&str, &str); 22] = [
    ("device/name", "name"),
    ("device/cid", "cid"),
    ("device/csd", "csd"),
    ("device/date", "date"),
    ("device/serial", "serial"),
    ("device/manfid", "manufacturer"),
    ("device/oemid", "oem"),
    ("device/type", "type"),
    ("device/fwrev", "firmware"),
    ("device/hwrev", "hardware"),
    ("device/ssr", "ssr"),
    ("device/preferred_erase_size", "preferred erase size"),
    ("device/vendor", "vendor"),
    ("device/model", "model"),
    ("device/rev", "revision"),
    ("device/wwid", "wwid"),
    ("loop/backing_file", "backing file"),
    ("queue/scheduler", "scheduler"),
    ("queue/physical_block_size", "physical block size"),
    ("queue/write_cache", "write cache"),
    ("removable", "removable"),
    ("diskseq", "sequence"),
];

impl Identity {
    /// Reads the identity from the disk's folder in sysfs.
    pub(crate) fn read(device: &str, folder: &Path) -> Identity {
        let text = |name: &str| text(&folder.join(name));
        let sectors = text("size").and_then(|sectors| sectors.parse::<u64>().ok());
        let block_bytes = text("queue/logical_block_size").and_then(|bytes| bytes.parse().ok());
        let facts = FACTS.iter().filter_map(|(file, name)| {
            let value = text(file)?;
            let value = match *name {
                "scheduler" => chosen(&value),
                _ => value,
            };
            Some(Fact {
                name: name.to_string(),
                value,
            })
        });
        Identity {
            device: device.to_string(),
            // The kernel counts in units of 512 B, whatever the size of a block.
            capacity_bytes: sectors.unwrap_or(0).saturating_mul(512),
            block_bytes: block_bytes.unwrap_or(512),
            bus: bus(folder),
            facts: facts.collect(),
        }
    }

    /// Returns the value of a fact.
    pub fn fact(&self, name: &str) -> Option<&str> {
        let found = self.facts.iter().find(|fact| fact.name == name);
        found.map(|fact| fact.value.as_str())
    }

    /// Describes the first difference from another identity, with both values.
    pub fn difference(&self, other: &Identity) -> Option<String> {
        let own = self.rows();
        let theirs = other.rows();
        let names = own.iter().chain(&theirs).map(|row| row.0.clone());
        let value = |rows: &[(String, String)], name: &str| {
            let found = rows.iter().find(|row| row.0 == name);
            found.map_or(String::from("nothing"), |row| row.1.clone())
        };
        names
            .map(|name| (value(&own, &name), value(&theirs, &name), name))
            .find(|(mine, other, _)| mine != other)
            .map(|(mine, other, name)| format!("{name} was {mine} and is {other}"))
    }

    fn rows(&self) -> Vec<(String, String)> {
        let row = |name: &str, value: String| (name.to_string(), value);
        let mut rows = vec![
            row("capacity", format!("{} B", self.capacity_bytes)),
            row("block size", format!("{} B", self.block_bytes)),
            row("bus", self.bus.clone()),
        ];
        // An administrator may change the scheduler at any time.
        let lasting = self.facts.iter().filter(|fact| fact.name != "scheduler");
        rows.extend(lasting.map(|fact| row(&fact.name, fact.value.clone())));
        rows
    }
}

/// Reads a small file of sysfs; returns `None` if it is missing or empty.
pub(crate) fn text(path: &Path) -> Option<String> {
    let bytes = fs::read(path).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let words: Vec<&str> = text.split_whitespace().collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// Returns the scheduler in brackets, as in `none [mq-deadline]`.
fn chosen(schedulers: &str) -> String {
    let inside = schedulers
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or(schedulers, |(name, _)| name).to_string()
}

/// Returns the bus of a disk. A USB disk speaks SCSI, so that its own subsystem says less than its parents' names.
fn bus(folder: &Path) -> String {
    let real = fs::canonicalize(folder).unwrap_or(folder.to_path_buf());
    let is_usb = |name: &std::ffi::OsStr| {
        let digits = name.to_str().and_then(|name| name.strip_prefix("usb"));
        digits
            .is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()))
    };
    if real.iter().any(is_usb) {
        return String::from("usb");
    }
    let subsystem = fs::canonicalize(folder.join("device/subsystem")).ok();
    let subsystem = subsystem.and_then(|path| path.file_name()?.to_str().map(str::to_string));
    match subsystem {
        Some(name) => name,
        None if folder.join("loop").exists() => String::from("loop"),
        None => String::from("unknown"),
    }
}
