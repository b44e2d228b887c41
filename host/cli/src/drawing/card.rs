//! Drawing of a card: controller, flash and supply.

use super::theory::{mean_program_us, of_card, page_bytes, unit_bytes};
use super::{BOX_WIDTH, arrow, framed, padded, page, plural, row, symbols, time};
use cardiograph_report::units;
use cardiograph_sim_card::{ControllerProfile, FlashProfile, PowerProfile, Profile};

/// Draws a card.
pub fn card(name: &str, profile: &Profile) -> String {
    let Profile { flash, power, .. } = profile;
    let mut left = vec![arrow("host: 512 B blocks")];
    let rows = [paths(profile), controller_rows(profile)].concat();
    left.extend(framed("controller", &rows, true));
    let kind = match flash.program_us.len() {
        1 => "SLC, 1 bit per cell",
        2 => "MLC, 2 bits per cell",
        _ => "TLC, 3 bits per cell",
    };
    left.extend(framed(
        &format!("flash: {kind}"),
        &flash_rows(profile),
        false,
    ));
    left.extend(framed(
        &format!("supply: {} V", f64::from(power.supply_mv) / 1e3),
        &power_rows(power),
        false,
    ));
    page(name, &profile.about, &left, &of_card(profile))
}

/// Width of a box within the controller box, in characters.
const CELL_WIDTH: usize = 14;

/// Drawing of the three paths that a page can take from the controller to the flash.
fn paths(profile: &Profile) -> Vec<String> {
    let ControllerProfile {
        open_units,
        ram_pages,
        fast_zone_units,
        ..
    } = profile.controller;
    let log_blocks = profile.log_blocks();
    let unit = unit_bytes(profile);
    let size = |units: u32| units::binary_bytes(unit * u64::from(units));
    let ram = format!(
        "{} {} of {}",
        symbols("▪", ram_pages, 16),
        plural(ram_pages, "page"),
        units::binary_bytes(page_bytes(profile))
    );
    let mut rows = vec![row("RAM", &ram)];
    let heads = ["sequential", "other", "start of card"];
    rows.push(across(heads.map(str::to_string)));
    rows.push(across(["▼", "▼", "▼"].map(str::to_string)));
    let cells = [
        cell("open units", open_units, "unit", &size(open_units)),
        cell("log blocks", log_blocks, "block", &size(log_blocks)),
        cell("fast zone", fast_zone_units, "unit", &size(fast_zone_units)),
    ];
    let [open, log, zone] = cells;
    let lines = open.into_iter().zip(log).zip(zone);
    rows.extend(lines.map(|((open, log), zone)| format!("{open} {log} {zone}")));
    rows
}

/// Centres three texts next to each other, each in a cell of its own.
fn across(texts: [String; 3]) -> String {
    texts.map(|text| format!("{text:^CELL_WIDTH$}")).join(" ")
}

/// Draws a small box with a count and a total size.
fn cell(title: &str, count: u32, noun: &str, size: &str) -> [String; 5] {
    let inner = CELL_WIDTH - 2;
    let title = format!(" {title} ");
    let line = |text: &str| format!("│{}│", padded(&format!(" {text}"), inner));
    let (number, size) = match count {
        0 => ("none".to_string(), ""),
        _ => (plural(count, noun), size),
    };
    [
        format!("┌{title:─^inner$}┐"),
        line(&symbols("▤", count, inner - 2)),
        line(&number),
        line(size),
        format!("└{}┘", "─".repeat(inner)),
    ]
}

fn controller_rows(profile: &Profile) -> Vec<String> {
    let (controller, ftl) = (&profile.controller, profile.ftl());
    let time = |us: u32| time(us.into());
    let when_idle = match controller.idle_free_blocks {
        0 => "no garbage collection".to_string(),
        blocks => format!(
            "frees {} after {}",
            plural(blocks, "block"),
            time(controller.idle_after_us)
        ),
    };
    vec![
        row("time per command", &time(controller.command_us)),
        row("time per commit", &time(ftl.commit_us)),
        row(
            "when full, frees",
            &plural(controller.gc_log_blocks, "block"),
        ),
        row(
            "stall limit",
            &format!("{} per write", time(profile.longest_collection_us())),
        ),
        row("when idle", &when_idle),
        row(
            "wear levelling",
            &format!(
                "every {}",
                plural(controller.wear_levelling_erases, "erase")
            ),
        ),
    ]
}

fn flash_rows(profile: &Profile) -> Vec<String> {
    let flash = &profile.flash;
    let time = |us: u32| time(us.into());
    let planes = match flash.planes {
        1 => "▥ 1".to_string(),
        planes => format!("{} {planes}, in parallel", symbols("▥", planes, 8)),
    };
    let block = format!(
        "{} of {}",
        plural(flash.pages_per_block, "page"),
        units::binary_bytes(flash.page_bytes.into())
    );
    let units_of_card = profile.capacity_bytes / unit_bytes(profile);
    let unit = format!(
        "{} of {}",
        units::count(units_of_card),
        units::binary_bytes(unit_bytes(profile))
    );
    let endurance = format!(
        "{} erases ±{} %",
        units::count(flash.endurance_cycles.into()),
        flash.endurance_spread_percent
    );
    let mut rows = vec![
        row("capacity", &units::bytes(profile.capacity_bytes as f64)),
        row("units", &unit),
        row("planes", &planes),
        row("erase block", &block),
        row("spare blocks", &plural(flash.spare_blocks, "block")),
        row("read page", &time(flash.read_us)),
    ];
    rows.extend(program_rows(flash));
    rows.extend([
        row(
            "  in a log block",
            &format!("{}, 1 bit per cell", time(flash.log_program_us)),
        ),
        row(
            "erase time",
            &format!(
                "{}, +{} % when worn",
                time(flash.erase_us),
                flash.erase_wear_percent
            ),
        ),
        row("spread of times", &format!("±{} %", flash.spread_percent)),
        row("endurance", &endurance),
        row("  used so far", &units::count(flash.cycles_used.into())),
    ]);
    rows
}

/// Program times of the pages that share a cell, and their mean.
fn program_rows(flash: &FlashProfile) -> Vec<String> {
    let times = flash.program_us.iter().map(|&us| units::time(us.into()));
    let times: Vec<_> = times.collect();
    let mut rows = vec![row("program page", &times.join(", "))];
    if times.len() > 1 {
        let mean = units::time(mean_program_us(flash));
        rows.push(row("", &format!("alternating; mean {mean}")));
    }
    rows
}

fn power_rows(power: &PowerProfile) -> Vec<String> {
    let PowerProfile {
        flash,
        sleep_after_us,
        wake_us,
        ..
    } = power;
    let state = |name: &str, ua: u32, next: &str| row(name, &format!("{:<9}{next}", current(ua)));
    let nj = |nj: u32| units::energy(f64::from(nj) / 1e3);
    let sleep = time((*sleep_after_us).into());
    let wake = match wake_us {
        0 => "at once".to_string(),
        us => format!("in {}", units::time((*us).into())),
    };
    vec![
        state("working", power.working_ua, "◄─┐"),
        row("  ▼ done", &format!("{:<11}│ command", "")),
        state("idle", power.idle_ua, "──┤"),
        row(
            &format!("  ▼ idle {sleep}"),
            &format!("{:<11}│ wakes {wake}", ""),
        ),
        state("asleep", power.asleep_ua, "──┘"),
        row(
            "read, erase",
            &format!("{}, {} per plane", nj(flash.read_nj), nj(flash.erase_nj)),
        ),
        row(
            "program, log",
            &format!("{}, {}", nj(flash.program_nj), nj(flash.log_program_nj)),
        ),
    ]
}

/// Formats a current in uA, as `15 mA`.
fn current(ua: u32) -> String {
    match ua {
        ua if ua < 1_000 => format!("{ua} µA"),
        ua => format!("{} mA", f64::from(ua) / 1e3),
    }
}

const _: () = assert!(3 * CELL_WIDTH + 2 == BOX_WIDTH - 4);
