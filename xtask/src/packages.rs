//! Debian and Python packages for tests and benchmarks.

use crate::run::{cargo, check, root, target};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Rust target of the device crates: a Cortex-M3 without an operating system.
pub const DEVICE_TARGET: &str = "thumbv7m-none-eabi";

/// A Debian package, and a program or file whose presence shows that the package is installed.
pub struct Package {
    /// Name of the program to look for, or path of the file.
    pub program: &'static str,
    /// Name of the Debian package.
    pub name: &'static str,
}

/// Packages for the tests.
pub const FOR_TESTS: &[Package] = &[
    Package {
        program: "fsck.fat",
        name: "dosfstools",
    },
    Package {
        program: "mcopy",
        name: "mtools",
    },
    Package {
        program: "mkfs.exfat",
        name: "exfatprogs",
    },
    // Formats and inspects the disks of the tests.
    Package {
        program: "mkfs.ext4",
        name: "e2fsprogs",
    },
    Package {
        program: "losetup",
        name: "mount",
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
        program: "curl",
        name: "curl",
    },
    // The proxy of docs/security.md, and its certificate.
    Package {
        program: "nginx",
        name: "nginx-light",
    },
    Package {
        program: "openssl",
        name: "openssl",
    },
    // Clients of WebDAV, and a test of conformance.
    Package {
        program: "cadaver",
        name: "cadaver",
    },
    Package {
        program: "mount.davfs",
        name: "davfs2",
    },
    Package {
        program: "litmus",
        name: "litmus",
    },
    Package {
        program: "rclone",
        name: "rclone",
    },
    // Provides terminals of a given width.
    Package {
        program: "script",
        name: "bsdutils",
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

/// Python packages for the tests: pyulog reads exported ULog files, jsonschema validates JSON, and the others read and
/// write traces.
pub const PYTHON_FOR_TESTS: &[&str] = &[
    "pyulog==1.3.0",
    "pandas==3.1.1",
    "pyarrow==26.0.1",
    "polars==2.1.0",
    "duckdb==2.0.0",
    "jsonschema==4.26.0",
];

/// Python packages for the tests of the package `cardiograph`: readers of its tables, a cluster and a notebook.
pub const PYTHON_FOR_PACKAGE: &[&str] = &[
    "pyulog==1.3.0",
    "pandas==3.1.1",
    "pyarrow==26.0.1",
    "polars==2.1.0",
    "duckdb==2.0.0",
    "pytest==9.2.0",
    "matplotlib==3.11.2",
    "distributed==2026.8.0",
    "nbclient==0.11.0",
    "ipykernel==7.4.0",
];

/// Packages for the firmware tests.
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

/// Packages for the board with a network.
pub const FOR_QEMU: &[Package] = &[
    Package {
        program: "qemu-system-riscv32",
        name: "qemu-system-misc",
    },
    Package {
        program: "curl",
        name: "curl",
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

/// Packages for the emulated Raspberry Pi Pico.
pub const FOR_RP2040: &[Package] = &[
    Package {
        program: "node",
        name: "nodejs",
    },
    Package {
        program: "npm",
        name: "npm",
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

/// Packages for the page.
pub const FOR_PAGE: &[Package] = &[
    Package {
        program: "chromium",
        name: "chromium",
    },
    Package {
        program: "node",
        name: "nodejs",
    },
    Package {
        program: "npm",
        name: "npm",
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

/// Packages for the playground: a compiler for the zstd library, which is in C, to WebAssembly.
pub const FOR_PLAYGROUND: &[Package] = &[Package {
    program: "clang",
    name: "clang",
}];

/// Packages for FatFs: its bindings are made from its header.
pub const FOR_FATFS: &[Package] = &[
    Package {
        program: "/usr/share/doc/libclang-dev",
        name: "libclang-dev",
    },
    Package {
        program: "fsck.fat",
        name: "dosfstools",
    },
];

/// Packages for the library for C.
pub const FOR_C: &[Package] = &[
    Package {
        program: "g++",
        name: "g++",
    },
    Package {
        program: "arm-none-eabi-gcc",
        name: "gcc-arm-none-eabi",
    },
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

/// Packages for the Arduino library.
pub const FOR_ARDUINO: &[Package] = &[
    Package {
        program: "g++",
        name: "g++",
    },
    Package {
        program: "avr-g++",
        name: "gcc-avr",
    },
    Package {
        program: "avr-objcopy",
        name: "binutils-avr",
    },
    Package {
        program: "/usr/lib/avr/include/avr/io.h",
        name: "avr-libc",
    },
    Package {
        program: "/usr/share/arduino/hardware/arduino/avr/cores/arduino/Arduino.h",
        name: "arduino-core-avr",
    },
    Package {
        program: "node",
        name: "nodejs",
    },
    Package {
        program: "npm",
        name: "npm",
    },
];

/// Packages for the benchmarks.
pub const FOR_BENCHMARKS: &[Package] = &[
    Package {
        program: "chromium",
        name: "chromium",
    },
    Package {
        program: "curl",
        name: "curl",
    },
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

/// Installs missing packages, which requires root. The error message lists the missing packages.
pub fn install(packages: &[Package]) -> Result<(), String> {
    let missing: Vec<_> = packages
        .iter()
        .filter(|package| !is_installed(package.program))
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
    install().map_err(|error| {
        format!(
            "{error}\nThe tests need these Debian packages: {}. Install them as root.",
            names.join(" ")
        )
    })
}

/// Installs Python packages to `target/python`, where the tests expect them.
pub fn install_python(packages: &[&str]) -> Result<(), String> {
    install_python_to(&root().join("target/python"), packages)
}

/// Installs Python packages to a folder.
pub fn install_python_to(folder: &Path, packages: &[&str]) -> Result<(), String> {
    // List of the installed packages, which shows when another package or version is required.
    let list = folder.join("packages.txt");
    let wanted = packages.join("\n");
    if std::fs::read_to_string(&list).is_ok_and(|installed| installed == wanted) {
        return Ok(());
    }
    check(Command::new("python3").args(["-m", "venv"]).arg(folder))?;
    let mut command = Command::new(folder.join("bin/pip"));
    command.args(["install", "--quiet", "--disable-pip-version-check"]);
    check(command.args(packages)).map_err(|error| {
        format!(
            "{error}\nThe tests need these Python packages: {}. Check the network, then run the command again.",
            packages.join(" ")
        )
    })?;
    std::fs::write(&list, wanted).map_err(|error| format!("{}: {error}", list.display()))
}

/// Version of dufs, a file server that ours is compared with.
pub const DUFS_VERSION: &str = "0.47.0";

/// Installs dufs to `target/tools`, without TLS; returns its path.
pub fn install_dufs() -> Result<PathBuf, String> {
    let folder = target().join("tools");
    let program = folder.join("bin/dufs");
    if program.exists() {
        return Ok(program);
    }
    let mut command = cargo(&["install", "--quiet", "--locked", "--no-default-features"]);
    command.args(["--version", DUFS_VERSION, "dufs", "--root"]);
    check(command.arg(&folder))?;
    Ok(program)
}

/// Version of rp2040js, the emulator of a Raspberry Pi Pico.
pub const RP2040JS_VERSION: &str = "1.4.1";
/// Version of avr8js, the emulator of an ATmega.
pub const AVR8JS_VERSION: &str = "0.21.1";

/// Version of playwright-core, which controls a browser.
pub const PLAYWRIGHT_VERSION: &str = "1.65.1";
/// Version of axe-core, which checks whether everyone can use a page.
pub const AXE_VERSION: &str = "4.14.1";

/// Installs an npm package below a folder.
pub fn install_npm(folder: &Path, name: &str, version: &str) -> Result<(), String> {
    let list = folder.join("node_modules").join(name).join("package.json");
    let wanted = format!("\"version\": \"{version}\"");
    if std::fs::read_to_string(&list).is_ok_and(|text| text.contains(&wanted)) {
        return Ok(());
    }
    let mut command = Command::new("npm");
    command.args([
        "install",
        "--loglevel=error",
        "--no-audit",
        "--no-fund",
        "--prefix",
    ]);
    command.arg(folder);
    check(command.arg(format!("{name}@{version}"))).map_err(|error| {
        format!("{error}\nThe npm package {name} is missing. Check the network, then run the command again.")
    })
}

/// Installs the standard library of [`DEVICE_TARGET`].
pub fn add_device_target() -> Result<(), String> {
    add_target(DEVICE_TARGET)
}

/// Installs the standard library of a target.
pub fn add_target(target: &str) -> Result<(), String> {
    check(Command::new("rustup").args(["target", "add", target]))
}

fn is_installed(program: &str) -> bool {
    if program.starts_with('/') {
        return Path::new(program).exists();
    }
    let look = format!("command -v {program}");
    let status = Command::new("sh")
        .args(["-c", &look])
        .stdout(Stdio::null())
        .status();
    // fsck.fat is in /usr/sbin, which is not in the path of ordinary users.
    status.is_ok_and(|status| status.success())
        || std::path::Path::new("/usr/sbin").join(program).exists()
}
