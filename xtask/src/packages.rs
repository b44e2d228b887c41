//! Debian packages that tests and benchmarks need.

use crate::run::check;
use std::process::{Command, Stdio};

/// A core without operating system, for what runs on devices.
pub const DEVICE_TARGET: &str = "thumbv7m-none-eabi";

/// A program and the package it comes in.
pub struct Package {
    /// A program of the package.
    pub program: &'static str,
    /// The package.
    pub name: &'static str,
}

/// What the tests need.
pub const FOR_TESTS: &[Package] = &[
    Package {
        program: "fsck.fat",
        name: "dosfstools",
    },
    Package {
        program: "mkfs.exfat",
        name: "exfatprogs",
    },
    Package {
        program: "chromium",
        name: "chromium",
    },
    Package {
        program: "c++",
        name: "g++",
    },
];

/// What runs firmware.
pub const FOR_FIRMWARE: &[Package] = &[
    Package {
        program: "qemu-system-arm",
        name: "qemu-system-arm",
    },
    Package {
        program: "mkfs.fat",
        name: "dosfstools",
    },
    Package {
        program: "mcopy",
        name: "mtools",
    },
];

/// What the benchmarks compare with.
pub const FOR_BENCHMARKS: &[Package] = &[
    Package {
        program: "fio",
        name: "fio",
    },
    Package {
        program: "/usr/bin/time",
        name: "time",
    },
    Package {
        program: "python3",
        name: "python3",
    },
    Package {
        program: "python3",
        name: "python3-venv",
    },
];

/// Installs what is missing; needs root for that, and says so.
pub fn install(packages: &[Package]) -> Result<(), String> {
    let missing: Vec<_> = packages
        .iter()
        .filter(|package| !is_there(package.program))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = missing.iter().map(|package| package.name).collect();
    let install = || -> Result<(), String> {
        check(Command::new("apt-get").args(["update", "-qq"]))?;
        let mut command = Command::new("apt-get");
        command.args(["install", "-y", "-qq", "--no-install-recommends"]);
        check(
            command
                .args(&names)
                .env("DEBIAN_FRONTEND", "noninteractive"),
        )
    };
    install().map_err(|why| {
        format!(
            "{why}\nThe tests need these Debian packages: {}. Install them as root.",
            names.join(" ")
        )
    })
}

/// Installs the standard library of [`DEVICE_TARGET`].
pub fn add_device_target() -> Result<(), String> {
    check(Command::new("rustup").args(["target", "add", DEVICE_TARGET]))
}

fn is_there(program: &str) -> bool {
    let look = format!("command -v {program}");
    let status = Command::new("sh")
        .args(["-c", &look])
        .stdout(Stdio::null())
        .status();
    // fsck.fat is where an ordinary user's path does not look.
    status.is_ok_and(|status| status.success())
        || std::path::Path::new("/usr/sbin").join(program).exists()
}
