//! Debian and Python packages that tests and benchmarks need.

use crate::run::{check, root};
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
    Package {
        program: "python3",
        name: "python3",
    },
    Package {
        program: "python3",
        name: "python3-venv",
    },
];

/// What the tests need of PyPI: pyulog reads the ULog files that are exported.
pub const PYTHON_FOR_TESTS: &[&str] = &["pyulog==1.3.0"];

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

/// Installs Python packages to `target/python`, where the tests look for them.
pub fn install_python(packages: &[&str]) -> Result<(), String> {
    let folder = root().join("target/python");
    if folder.join("bin/ulog2csv").exists() {
        return Ok(());
    }
    check(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    let mut command = Command::new(folder.join("bin/pip"));
    command.args(["install", "--quiet", "--disable-pip-version-check"]);
    check(command.args(packages)).map_err(|why| {
        format!(
            "{why}\nThe tests need these Python packages: {}. Check the network, then run it again.",
            packages.join(" ")
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
