//! Releases: binaries that need no installation, with completions, manual pages and checksums.

use crate::packages::{self, Package};
use crate::run::{cargo, check, output_of, root, target};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A target of the releases.
struct Release {
    /// Rust's name of the target.
    target: &'static str,
    compiler: Compiler,
    start: Start,
    /// Name of the program in the build folder.
    program: &'static str,
}

/// C compiler for the zstd library.
enum Compiler {
    /// The C compiler of the Python package ziglang, for this target of Zig. Rust's own linker links.
    Zig(&'static str),
    /// A cross compiler of Debian, which cargo finds by its name. It links, too.
    Debian,
}

/// Way to start the program on this computer.
#[derive(Clone, Copy)]
enum Start {
    Directly,
    /// By an emulator of Debian.
    Under(&'static str),
    /// Not at all: the program is published as untested.
    Untested,
}

const RELEASES: [Release; 3] = [
    Release {
        target: "x86_64-unknown-linux-musl",
        compiler: Compiler::Zig("x86_64-linux-musl"),
        start: Start::Directly,
        program: "cardiograph",
    },
    Release {
        target: "aarch64-unknown-linux-musl",
        compiler: Compiler::Zig("aarch64-linux-musl"),
        start: Start::Under("qemu-aarch64"),
        program: "cardiograph",
    },
    Release {
        target: "x86_64-pc-windows-gnu",
        compiler: Compiler::Debian,
        start: Start::Untested,
        program: "cardiograph.exe",
    },
];

/// Emulator of the second target, and compiler of the third one.
const FOR_DIST: &[Package] = &[
    Package {
        program: "qemu-aarch64",
        name: "qemu-user",
    },
    Package {
        program: "x86_64-w64-mingw32-gcc",
        name: "gcc-mingw-w64-x86-64",
    },
];

/// Package with the C compiler for the first two targets.
pub const ZIG: &str = "ziglang==0.17.0";

/// Builds and starts all releases, or one; writes archives and their checksums to `target/dist`.
pub fn build(only: Option<&str>) -> Result<(), String> {
    packages::install(FOR_DIST)?;
    let out = target().join("dist");
    let _ = fs::remove_dir_all(&out);
    fs::create_dir_all(&out).map_err(failed(&out))?;
    // It writes the manual pages, which are the same for all targets.
    let own = RELEASES[0].build()?;
    let mut archives = Vec::new();
    for release in RELEASES
        .iter()
        .filter(|release| only.is_none_or(|only| release.target == only))
    {
        let program = release.build()?;
        let version = release.start(&program)?;
        println!("{}: {version}", release.target);
        archives.push(release.pack(&program, &own, &out)?);
    }
    if archives.is_empty() {
        let targets = RELEASES.map(|release| release.target).join(", ");
        return Err(format!("no such target; the targets are {targets}"));
    }
    let sums = output_of(Command::new("sha256sum").args(&archives).current_dir(&out))?;
    let list = out.join("SHA256SUMS");
    fs::write(&list, &sums).map_err(failed(&list))?;
    print!("{sums}");
    Ok(())
}

/// Checks that the command compiles for all targets; returns their number.
pub fn check_targets() -> Result<usize, String> {
    check_each(RELEASES.iter())
}

/// Checks the only target whose operating system is not that of CI.
pub fn check_windows() -> Result<usize, String> {
    check_each(
        RELEASES
            .iter()
            .filter(|release| release.target.contains("windows")),
    )
}

fn check_each<'a>(releases: impl Iterator<Item = &'a Release>) -> Result<usize, String> {
    let mut count = 0;
    for release in releases {
        packages::add_target(release.target)?;
        let mut checked = cargo(&["check", "--quiet", "--package", "cardiograph"]);
        checked.args(["--target", release.target]);
        // A check links nothing, so it needs no C code.
        for tool in ["CC", "AR"] {
            checked.env(format!("{tool}_{}", release.underscored()), "true");
        }
        check(&mut checked)?;
        count += 1;
    }
    Ok(count)
}

impl Release {
    fn underscored(&self) -> String {
        self.target.replace('-', "_")
    }

    fn build(&self) -> Result<PathBuf, String> {
        packages::add_target(self.target)?;
        let mut build = cargo(&[
            "build",
            "--profile",
            "dist",
            "--locked",
            "--package",
            "cardiograph",
        ]);
        build.args(["--target", self.target]);
        build.env("CARGO_PROFILE_DIST_STRIP", "symbols");
        if let Compiler::Zig(name) = self.compiler {
            let tools = zig_tools(self.target, name)?;
            let underscored = self.underscored();
            build.env(format!("CC_{underscored}"), tools.join("cc"));
            build.env(format!("AR_{underscored}"), tools.join("ar"));
            let linker = format!("CARGO_TARGET_{}_LINKER", underscored.to_uppercase());
            build.env(linker, "rust-lld");
        }
        check(&mut build)?;
        Ok(target().join(self.target).join("dist").join(self.program))
    }

    /// Starts the program: its version, a measurement of a simulated card, and a plan. Returns its version.
    fn start(&self, program: &Path) -> Result<String, String> {
        let command = || match self.start {
            Start::Directly => Some(Command::new(program)),
            Start::Under(emulator) => {
                let mut command = Command::new(emulator);
                command.arg(program);
                Some(command)
            }
            Start::Untested => None,
        };
        let Some(mut version) = command() else {
            return Ok(String::from("untested, because it cannot be started here"));
        };
        let version = output_of(version.arg("--version"))?;
        for arguments in [
            [
                "bench",
                "--workload",
                "byte-single-write",
                "--quiet",
                "--markdown",
                "-",
            ]
            .as_slice(),
            &[
                "plan",
                "sim:generic-16g-class10@esp32",
                "--rate",
                "860",
                "--sample-bytes",
                "100",
            ],
        ] {
            let mut measure = command().ok_or("the program cannot be started")?;
            output_of(measure.args(arguments))?;
        }
        Ok(version.trim_end().to_string())
    }

    /// Packs the program with completions, manual pages, licences and the changelog; returns the archive's name.
    fn pack(&self, program: &Path, own: &Path, out: &Path) -> Result<String, String> {
        let name = format!("cardiograph-{}-{}", env!("CARGO_PKG_VERSION"), self.target);
        let folder = out.join(&name);
        let manual = folder.join("man");
        fs::create_dir_all(&manual).map_err(failed(&manual))?;
        fs::copy(program, folder.join(self.program)).map_err(failed(program))?;
        for file in ["LICENSE-APACHE", "LICENSE-MIT", "CHANGELOG.md", "README.md"] {
            fs::copy(root().join(file), folder.join(file)).map_err(failed(Path::new(file)))?;
        }
        write_manual(own, &folder, &manual)?;
        let archive = format!("{name}.tar.gz");
        let mut tar = Command::new("tar");
        // The same contents give the same archive.
        tar.args([
            "--sort=name",
            "--owner=0",
            "--group=0",
            "--mtime=@0",
            "-czf",
        ]);
        check(tar.args([&archive, &name]).current_dir(out))?;
        fs::remove_dir_all(&folder).map_err(failed(&folder))?;
        Ok(archive)
    }
}

/// Writes completions and manual pages with a command of this computer.
fn write_manual(own: &Path, folder: &Path, manual: &Path) -> Result<(), String> {
    output_of(Command::new(own).arg("man").arg(manual))?;
    for (shell, file) in [
        ("bash", "cardiograph.bash"),
        ("fish", "cardiograph.fish"),
        ("powershell", "cardiograph.ps1"),
        ("zsh", "_cardiograph"),
    ] {
        let script = output_of(Command::new(own).args(["completions", shell]))?;
        let path = folder.join("completions").join(file);
        fs::create_dir_all(folder.join("completions")).map_err(failed(&path))?;
        fs::write(&path, script).map_err(failed(&path))?;
    }
    Ok(())
}

/// Writes Zig's C compiler and archiver for a target as programs; returns their folder.
fn zig_tools(target_name: &str, zig_name: &str) -> Result<PathBuf, String> {
    let environment = target().join("zig");
    packages::install_python_to(&environment, &[ZIG])?;
    let python = environment.join("bin/python3");
    let python = python.display();
    let folder = environment.join("targets").join(target_name);
    fs::create_dir_all(&folder).map_err(failed(&folder))?;
    // The crate cc passes Rust's name of the target, which Zig does not know.
    let cc = format!(
        "#!/bin/sh\nfor arg do\n  shift\n  case \"$arg\" in --target=*) ;; *) set -- \"$@\" \"$arg\" ;; esac\ndone\n\
         exec {python} -m ziglang cc -target {zig_name} \"$@\"\n"
    );
    let ar = format!("#!/bin/sh\nexec {python} -m ziglang ar \"$@\"\n");
    for (name, text) in [("cc", cc), ("ar", ar)] {
        let path = folder.join(name);
        fs::write(&path, text).map_err(failed(&path))?;
        check(Command::new("chmod").arg("+x").arg(&path))?;
    }
    Ok(folder)
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> String {
    move |error| format!("{}: {error}", path.display())
}
