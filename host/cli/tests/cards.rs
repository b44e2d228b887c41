//! `cards`: the list, and the drawing of a card or board.

use crate::common;

use common::{directory, done, refused, run};
use std::fs;

const CARD: &str = include_str!("../../../sim/card/profiles/class10-16g.toml");
const BOARD: &str = include_str!("../../../sim/card/boards/esp32.toml");

/// Returns the names in the list: the indented lines.
fn listed() -> Vec<String> {
    let list = done(directory().path(), &["cards"]);
    let lines = list.lines().filter_map(|line| line.strip_prefix("  "));
    let names = lines.filter_map(|line| line.split("  ").next());
    names.map(str::to_string).collect()
}

#[test]
fn the_list_is_in_columns() {
    let list = done(directory().path(), &["cards"]);
    let lines = list.lines().filter_map(|line| line.strip_prefix("  "));
    let starts = lines.map(|line| {
        let name = line.split("  ").next().unwrap().len();
        name + line[name..].len() - line[name..].trim_start().len()
    });
    let starts: Vec<_> = starts.collect();
    assert!(starts.len() > 20, "{list}");
    assert!(starts.iter().all(|start| *start == starts[0]), "{list}");
}

#[test]
fn every_card_and_board_fits_a_terminal_of_100_columns() {
    let own = directory();
    for name in listed() {
        let drawing = done(own.path(), &["cards", &name]);
        assert!(drawing.starts_with(&format!("{name}: ")), "{drawing}");
        let widest = drawing.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(100), "{name} is {widest:?} wide:\n{drawing}");
        // Symbols may be cut off at the edge of a box; words must fit.
        let words = drawing.replace("▤…", "").replace("▪…", "");
        assert!(!words.contains('…'), "{name} is truncated:\n{drawing}");
    }
}

#[test]
fn a_card_shows_structure_and_derived_figures() {
    let drawing = done(directory().path(), &["cards", "class10-16g"]);
    for words in [
        "─ controller ─",
        "40 blocks",
        "fast zone",
        "MLC, 2 bits per cell",
        "64 pages of 4 KiB",
        "150 µA",
        "Theory: ",
        "= pages × (read + mean program) + 2 erases",
        "54 ms",
        "2,560 log pages",
        "10 MiB",
        "48 TB",
    ] {
        assert!(drawing.contains(words), "no \"{words}\" in:\n{drawing}");
    }
}

#[test]
fn a_board_shows_bus_and_libraries() {
    for (name, words) in [
        ("esp32", ["─ SPI ─", "4 MHz", "495 kB/s", "FatFs"]),
        (
            "mega2560",
            [
                "─ SPI ─",
                "1 MHz",
                "embedded-sdmmc, by block",
                "for all files",
            ],
        ),
        ("lpc43xx", ["─ SD bus ─", "25 MHz", "DAT0 to DAT3", "FatFs"]),
        (
            "linux-reader",
            ["page cache", "107 MB", "card driver", "Theory: "],
        ),
        (
            "linux-reader-hangs",
            ["30 MB", "hangs after", "32 MiB", "30 s"],
        ),
    ] {
        let drawing = done(directory().path(), &["cards", name]);
        for words in words {
            assert!(drawing.contains(words), "no \"{words}\" in:\n{drawing}");
        }
    }
}

#[test]
fn a_file_may_be_a_card_or_a_board() {
    let own = directory();
    for (file, text, name) in [("c.toml", CARD, "class10-16g"), ("b.toml", BOARD, "esp32")] {
        fs::write(own.path().join(file), text).unwrap();
        let from_file = done(own.path(), &["cards", file]);
        let by_name = done(own.path(), &["cards", name]);
        let body = |drawing: &str| drawing.split_once('\n').unwrap().1.to_string();
        assert!(from_file.starts_with(&format!("{file}: ")));
        assert_eq!(body(&from_file), body(&by_name));
    }
}

#[test]
fn a_file_cannot_command_the_terminal() {
    let own = directory();
    let text = CARD.replace("class 10 microSD", "\\u001b[2J\\u0007card");
    fs::write(own.path().join("c.toml"), text).unwrap();
    let drawing = done(own.path(), &["cards", "c.toml"]);
    let controls = |c: char| c.is_control() && c != '\n';
    assert!(!drawing.contains(controls), "{drawing:?}");
}

#[test]
fn names_and_files_that_cannot_be_drawn() {
    let own = directory();
    let files = [
        (
            "zero.toml",
            CARD.replace("log_blocks = 40", "log_blocks = 0"),
        ),
        ("odd.toml", CARD.replace("[flash]", "[flash]\ncolour = 3")),
        ("fast.toml", BOARD.replace("4_000_000", "0")),
        (
            "half.toml",
            CARD[..CARD.find("[power]").unwrap()].to_string(),
        ),
        ("broken.toml", CARD.replace("[flash]", "[flash")),
        (
            "both.toml",
            format!("{CARD}\n[library]\nname = \"linux\"\n"),
        ),
        ("neither.toml", "name = \"x\"\n[[phase]]\n".to_string()),
        ("empty.toml", String::new()),
    ];
    for (name, text) in files {
        fs::write(own.path().join(name), text).unwrap();
    }
    for (name, words) in [
        (
            "best",
            &[
                "no card or board named best",
                "generic-16g-class10",
                "esp32",
                "TOML file",
            ][..],
        ),
        ("", &["no card or board named ;"]),
        ("none.toml", &["none.toml: no such file"]),
        ("zero.toml", &["zero.toml: `controller.log_blocks` is 0"]),
        ("odd.toml", &["odd.toml, line ", "unknown field `colour`"]),
        ("fast.toml", &["fast.toml: `spi.clock_hz` is 0"]),
        ("half.toml", &["half.toml", "missing field `power`"]),
        ("broken.toml", &["broken.toml, line "]),
        ("both.toml", &["both.toml: contains tables of both"]),
        (
            "neither.toml",
            &["neither.toml: neither a card ([flash]", "nor a board"],
        ),
        ("empty.toml", &["empty.toml: neither a card ([flash]"]),
    ] {
        refused(own.path(), &["cards", name], words);
    }
    assert_eq!(run(own.path(), &["cards", "esp32", "third"]).code, Some(2));
}
