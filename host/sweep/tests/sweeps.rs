//! Sweeps as a whole: specifications, results, interruptions, folders.

use cardiograph_sweep::{
    Answer, Finished, ResultFolder, Sweep, check_sample, check_with_recorder, html, markdown, run,
    text as text_of,
};
use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

const SMALL: &str = r#"
mode = "card"
cards = ["class10-16g", "kingston-8g"]
rates_hz = [860, 3000]
sample_bytes = 100
buffers_bytes = [4096, 65536]
run_s = 60
seeds = 5
seeds_per_task = 2
"#;

fn sweep(text: &str) -> Result<Sweep, String> {
    Sweep::from_toml("s.toml", text, Path::new(".")).map_err(|error| error.to_string())
}

fn on(threads: usize, path: &Path, sweep: &Sweep) -> Answer {
    let folder = ResultFolder::open(path, sweep).unwrap();
    let finished = run(sweep, &folder, threads, &mut |_| ControlFlow::Continue(()));
    assert_eq!(finished, Ok(Finished::Complete));
    Answer::read(sweep, &folder).unwrap()
}

/// Returns the contents of all files below a folder.
fn files(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => drop(found.insert(path.display().to_string(), fs::read(&path).unwrap())),
        }
    }
    found
}

fn contents(path: &Path) -> Vec<Vec<u8>> {
    files(&path.join("results")).into_values().collect()
}

#[test]
fn a_larger_buffer_never_loses_more_and_no_losses_give_a_bound() {
    let temporary = tempfile::tempdir().unwrap();
    let answer = on(2, &temporary.path().join("r"), &sweep(SMALL).unwrap());
    assert_eq!(answer.cells.len(), 2 * 2 * 2);
    for cell in &answer.cells {
        let risk = cell.members[0].risk;
        assert_eq!(risk.runs, 5);
        if risk.losses == 0 {
            assert_eq!((cell.median, risk.low), (None, 0.0));
            assert!(risk.high > 0.5, "{cell:?}");
        }
    }
    // Buffers of one rate follow each other.
    for pair in answer.cells.chunks(2) {
        assert!(pair[0].members[0].risk.losses >= pair[1].members[0].risk.losses);
    }
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let temporary = tempfile::tempdir().unwrap();
    let sweep = sweep(SMALL).unwrap();
    let (one, three) = (temporary.path().join("1"), temporary.path().join("3"));
    on(1, &one, &sweep);
    on(3, &three, &sweep);
    assert_eq!(contents(&one).len() as u64, sweep.parts());
    assert_eq!(contents(&one), contents(&three));
}

#[test]
fn an_interrupted_sweep_continues_and_gives_the_same_files() {
    let temporary = tempfile::tempdir().unwrap();
    let sweep = sweep(SMALL).unwrap();
    let (whole, cut) = (temporary.path().join("whole"), temporary.path().join("cut"));
    on(2, &whole, &sweep);
    let mut stops = 0;
    loop {
        let folder = ResultFolder::open(&cut, &sweep).unwrap();
        let before = folder.missing(&sweep).len() as u64;
        let finished = run(&sweep, &folder, 1, &mut |progress| match progress.done
            > sweep.tasks() - before
        {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        });
        match finished.unwrap() {
            Finished::Complete => break,
            Finished::Stopped(progress) => assert!(progress.done < sweep.tasks()),
        }
        stops += 1;
        assert!(stops <= sweep.tasks(), "the sweep makes no progress");
    }
    assert!(stops > 0);
    assert_eq!(contents(&whole), contents(&cut));
}

#[test]
fn every_seed_of_every_combination_belongs_to_exactly_one_task() {
    for (mode, per_buffer) in [("card", false), ("recorder", true)] {
        let text = SMALL.replace("\"card\"", &format!("\"{mode}\""));
        let sweep = sweep(&text).unwrap();
        let mut seen = BTreeMap::new();
        for part in 0..sweep.parts() {
            for number in sweep.tasks_of_part(part) {
                let task = sweep.task(number);
                assert!(
                    sweep
                        .file_of_part(part)
                        .contains(&format!("card={}/", task.card))
                );
                for seed in task.seeds.clone() {
                    for &buffer in task.buffers_bytes {
                        let run = (task.card, task.board_name, task.rate_hz, buffer, seed);
                        *seen.entry(run).or_insert(0) += 1;
                    }
                }
                assert_eq!(task.buffers_bytes.len(), if per_buffer { 1 } else { 2 });
            }
        }
        assert_eq!(seen.len(), 2 * 2 * 2 * 5);
        assert!(seen.values().all(|&times| times == 1));
    }
}

#[test]
fn a_sweep_of_many_tasks_has_at_most_1000_files() {
    for (seeds, per_task) in [(1000, 1), (2001, 1), (99_999, 1), (5, 3), (1_000_000, 10)] {
        let text = SMALL
            .replace("seeds = 5", &format!("seeds = {seeds}"))
            .replace(
                "seeds_per_task = 2",
                &format!("seeds_per_task = {per_task}"),
            );
        let sweep = sweep(&text).unwrap();
        assert!(sweep.parts() <= 1000, "{} files", sweep.parts());
        let tasks: u64 = (0..sweep.parts())
            .map(|part| sweep.tasks_of_part(part).count() as u64)
            .sum();
        assert_eq!(tasks, sweep.tasks());
    }
}

#[test]
fn a_part_computed_elsewhere_from_json_is_the_same() {
    let sweep = sweep(SMALL).unwrap();
    let copy = Sweep::from_json(&sweep.to_json()).unwrap();
    let bytes = |sweep: &Sweep| sweep.run_part(3, &|| false, &mut || ()).unwrap().unwrap();
    assert_eq!(bytes(&sweep), bytes(&copy));
    let old = sweep
        .to_json()
        .replacen("\"version\": \"", "\"version\": \"0.0.", 1);
    let message = Sweep::from_json(&old).unwrap_err().to_string();
    assert!(
        message.contains("install the same version everywhere"),
        "{message}"
    );
}

#[test]
fn recorder_mode_counts_lost_samples_and_the_policies_of_the_studies() {
    let temporary = tempfile::tempdir().unwrap();
    let text = r#"
        mode = "recorder"
        cards = ["class10-16g"]
        rates_hz = [860]
        sample_bytes = 100
        buffers_bytes = [1024, 65536]
        policies = ["stream", "naive", "keep-open", "after-session"]
        session_s = 1
        run_s = 3
        seeds = 1
    "#;
    let answer = on(2, temporary.path(), &sweep(text).unwrap());
    let losses = |policy: &str, bytes: u64| {
        let found =
            |cell: &&cardiograph_sweep::Cell| cell.policy == policy && cell.buffer_bytes == bytes;
        answer.cells.iter().find(found).unwrap().members[0]
            .risk
            .losses
    };
    assert_eq!(losses("stream", 65_536), 0);
    // Opening and closing a file takes longer than the interval of the samples.
    assert_eq!(losses("naive", 1024), 1);
    // A second of samples does not fit.
    assert_eq!(losses("after-session", 1024), 1);
    assert_eq!(losses("after-session", 65_536), 1);
}

#[test]
fn bad_specifications_name_the_field_and_the_remedy() {
    for (change, to, expected) in [
        (
            "seeds = 5",
            "seeds = 0",
            "s.toml: `seeds` is 0; it must be 1 to 1000000000",
        ),
        (
            "run_s = 60",
            "run_s = 0",
            "s.toml: `run_s` is 0; it must be 1 to 315576000",
        ),
        (
            "rates_hz = [860, 3000]",
            "rates_hz = []",
            "s.toml: `rates_hz` is empty; list at least one value",
        ),
        (
            "[860, 3000]",
            "[860, 860]",
            "s.toml: `rates_hz` contains 860 twice; remove one",
        ),
        (
            "sample_bytes = 100",
            "sample_bytes = 9999",
            "s.toml: `sample_bytes` is 9999; it must be 14 to 405",
        ),
        (
            "4096",
            "16",
            "s.toml: `buffers_bytes` contains 16; it must be 1024 to 2147483647",
        ),
        (
            "[860, 3000]",
            "[400_000]",
            "which needs 40 MB/s, but the bus of esp32 carries at most",
        ),
        (
            "kingston-8g",
            "floppy",
            "there is no card or board named \"floppy\"; choose one of: generic-16g-class10",
        ),
        (
            "kingston-8g",
            "none.toml",
            "none.toml: No such file or directory (os error 2); name a readable TOML file",
        ),
        (
            "mode = \"card\"",
            "mode = \"quick\"",
            "s.toml: `mode` is \"quick\"; use \"card\" or \"recorder\"",
        ),
        (
            "run_s = 60",
            "run_s = 60\nspeed = 3",
            "s.toml, line 8: unknown field `speed`",
        ),
        ("mode = \"card\"", "", "missing field `mode`"),
        (
            "run_s = 60",
            "run_s = 60\npolicies = [\"naive\"]",
            "`policies` contains naive, which needs mode = \"recorder\"",
        ),
    ] {
        let message = sweep(&SMALL.replace(change, to)).map(drop).unwrap_err();
        assert!(
            message.contains(expected),
            "{message}\ninstead of\n{expected}"
        );
        assert!(!message.contains('\n'), "{message}");
    }
    let long = SMALL
        .replace("\"card\"", "\"recorder\"")
        .replace("run_s = 60", "run_s = 86400\npolicies = [\"keep-open\"]");
    let message = sweep(&long).map(drop).unwrap_err();
    assert!(
        message.contains("a file on FAT holds at most 4.29 GB"),
        "{message}"
    );
}

#[test]
fn values_of_a_wrong_type_name_the_key_and_no_type_of_rust() {
    let whole = "use a whole number from 1 to 1000000";
    for (key, value, expected) in [
        ("mode", "1", "`mode` is 1; use \"card\" or \"recorder\""),
        (
            "about",
            "1",
            "`about` is 1; use a text between quotation marks",
        ),
        (
            "cards",
            "\"class10-16g\"",
            "`cards` is \"class10-16g\"; use a list between [ and ]",
        ),
        ("cards", "[1]", "`cards` contains 1; use a text"),
        (
            "boards",
            "[[\"esp32\"]]",
            "`boards` contains a list; use a text",
        ),
        (
            "rates_hz",
            "860",
            "`rates_hz` is 860; use a list between [ and ]",
        ),
        (
            "rates_hz",
            "[nan]",
            &format!("`rates_hz` contains nan; {whole}"),
        ),
        (
            "rates_hz",
            "[1e300]",
            &format!("`rates_hz` contains 1e300; {whole}"),
        ),
        (
            "rates_hz",
            "[true]",
            &format!("`rates_hz` contains true; {whole}"),
        ),
        (
            "rates_hz",
            "[-1]",
            "`rates_hz` contains -1; it must be 1 to 1000000",
        ),
        (
            "seeds",
            "99999999999999999999",
            "`seeds` is 99999999999999999999; it must be 1 to",
        ),
        (
            "seeds",
            "2026-11-26",
            "`seeds` is a table or a date; use a whole number",
        ),
        (
            "seeds",
            "{ a = 1 }",
            "`seeds` is a table or a date; use a whole number",
        ),
        ("run_s", "-1", "`run_s` is -1; it must be 1 to 315576000"),
        (
            "run_s",
            "0.5",
            "`run_s` is 0.5; use a whole number from 1 to 315576000",
        ),
        (
            "policies",
            "[\"x\"]",
            "`policies` contains \"x\"; use \"stream\", \"naive\", \"keep-open\" or",
        ),
        ("max_tasks", "0", "`max_tasks` is 0; it must be 1 to"),
        (
            "first_seed",
            "9223372036854775807",
            "`first_seed` is 9223372036854775807; it must be 0 to",
        ),
    ] {
        let others = SMALL
            .lines()
            .filter(|line| !line.starts_with(&format!("{key} =")));
        let line = format!("{key} = {value}");
        let text: Vec<_> = others.chain([&*line]).collect();
        let message = sweep(&text.join("\n")).map(drop).unwrap_err();
        assert!(
            message.starts_with(&format!("s.toml: {expected}")),
            "{message}"
        );
        for word in [
            "u32", "u64", "i64", "i128", "sequence", "variant", "string", "integer",
        ] {
            assert!(!message.contains(word), "{message}");
        }
    }
}

#[test]
fn cards_whose_names_mean_something_else_in_a_folder_are_refused() {
    let temporary = tempfile::tempdir().unwrap();
    let (_, card) = cardiograph_sim_card::FIXTURES[0];
    let named = |file: &str, card: &str| {
        fs::write(temporary.path().join(file), card).unwrap();
        let text = SMALL.replace("\"class10-16g\"", &format!("\"{file}\""));
        Sweep::from_toml("s.toml", &text, temporary.path()).map_err(|error| error.to_string())
    };
    for file in [
        "...toml",
        "....toml",
        "__HIVE_DEFAULT_PARTITION__.toml",
        "Null.toml",
        "a b.toml",
    ] {
        let message = named(file, card).map(drop).unwrap_err();
        assert!(
            message.contains("the name becomes part of a folder"),
            "{file}: {message}"
        );
    }
    for file in ["007.toml", "1.5.toml", "nulls.toml"] {
        assert!(named(file, card).is_ok(), "{file}");
    }
    // Two files may have the same name in different folders.
    let message = named(
        "bad.toml",
        &card.replacen("page_bytes = ", "page_bytes = 0", 1),
    );
    let path = temporary.path().join("bad.toml").display().to_string();
    assert!(message.map(drop).unwrap_err().starts_with(&path));
}

#[test]
fn too_many_tasks_are_refused_with_their_cost() {
    let many = SMALL
        .replace("seeds = 5", "seeds = 1_000_000")
        .replace("seeds_per_task = 2", "seeds_per_task = 1");
    let message = sweep(&many).map(drop).unwrap_err();
    assert!(
        message.contains("4,000,000 tasks are more than the maximum of 1,000,000"),
        "{message}"
    );
    assert!(
        message.contains("of one core; set max_tasks = 4000000"),
        "{message}"
    );
    assert!(sweep(&format!("{many}max_tasks = 4000000")).is_ok());
    assert!(sweep(&format!("{SMALL}max_tasks = 3")).is_err());
    let one = SMALL
        .replace("\"class10-16g\", ", "")
        .replace("860, 3000", "860")
        .replace("seeds_per_task = 2", "seeds_per_task = 5");
    assert!(sweep(&format!("{one}max_tasks = 1")).is_ok());
}

#[test]
fn a_folder_of_another_sweep_is_refused() {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().join("r");
    let message = |path: &Path, sweep: &Sweep| match ResultFolder::open(path, sweep) {
        Ok(_) => panic!("{} was accepted", path.display()),
        Err(error) => error.to_string(),
    };
    let small = sweep(SMALL).unwrap();
    on(1, &path, &small);
    let other = sweep(&SMALL.replace("run_s = 60", "run_s = 61")).unwrap();
    let found = message(&path, &other);
    assert!(
        found.contains("holds results of another sweep: `run_s` is 60 there, and 61 here"),
        "{found}"
    );
    // The limit of tasks does not change results.
    let limited = sweep(&format!("{SMALL}max_tasks = 500")).unwrap();
    assert!(ResultFolder::open(&path, &limited).is_ok());

    let described = path.join("sweep.json");
    let text = fs::read_to_string(&described).unwrap();
    fs::write(
        &described,
        text.replacen("\"version\": \"", "\"version\": \"0.0.", 1),
    )
    .unwrap();
    assert!(message(&path, &small).contains("computed them, and this is version"));
    fs::write(
        &described,
        text.replacen("spread_percent = ", "spread_percent = 1", 1),
    )
    .unwrap();
    assert!(message(&path, &small).contains("a card or board has changed"));

    let foreign = temporary.path().join("foreign");
    fs::create_dir(&foreign).unwrap();
    fs::write(foreign.join("mine"), "mine").unwrap();
    assert!(message(&foreign, &small).contains("exists and is no folder of a sweep"));
    assert!(message(&foreign.join("mine"), &small).contains("exists and is no folder of a sweep"));
    assert_eq!(fs::read(foreign.join("mine")).unwrap(), b"mine");
}

#[test]
fn files_of_other_parts_and_sweeps_are_refused() {
    let temporary = tempfile::tempdir().unwrap();
    let small = sweep(SMALL).unwrap();
    let other = sweep(&format!("{SMALL}first_seed = 1000\n")).unwrap();
    let [own, foreign] = ["own", "foreign"].map(|name| temporary.path().join(name));
    on(1, &own, &small);
    on(1, &foreign, &other);
    let read = || {
        let folder = ResultFolder::open(&own, &small)?;
        Answer::read(&small, &folder)
    };
    let whole = read().unwrap();
    let first = own.join(small.file_of_part(0));
    let original = fs::read(&first).unwrap();
    for wrong in [
        own.join(small.file_of_part(1)),
        foreign.join(small.file_of_part(0)),
    ] {
        fs::copy(wrong, &first).unwrap();
        let message = read().unwrap_err().to_string();
        let expected =
            "part-00000.parquet: holds results of another part or another sweep; remove the file";
        assert!(message.contains(expected), "{message}");
    }
    fs::write(&first, &original).unwrap();
    assert_eq!(read().unwrap().cells, whole.cells);

    // A query over the folder would count these.
    let below = first.with_file_name("deeper");
    fs::create_dir(&below).unwrap();
    let folders = [first.parent().unwrap(), &own.join("results"), &below];
    for folder in folders {
        let stranger = folder.join("copy.parquet");
        fs::copy(&first, &stranger).unwrap();
        let message = read().unwrap_err().to_string();
        let expected = format!("{}: does not belong to this sweep", stranger.display());
        assert!(message.contains(&expected), "{message}");
        fs::remove_file(stranger).unwrap();
    }
    assert!(read().is_ok());

    fs::write(own.join("sweep.json"), "{\"version\"").unwrap();
    let message = read().unwrap_err().to_string();
    assert!(message.contains("sweep.json: damaged"), "{message}");
}

#[cfg(unix)]
#[test]
fn a_pipe_is_not_read() {
    let temporary = tempfile::tempdir().unwrap();
    let small = sweep(SMALL).unwrap();
    let path = temporary.path().join("r");
    on(1, &path, &small);
    let first = path.join(small.file_of_part(0));
    fs::remove_file(&first).unwrap();
    let made = std::process::Command::new("mkfifo").arg(&first).status();
    assert!(made.unwrap().success());
    let folder = ResultFolder::open(&path, &small).unwrap();
    let message = Answer::read(&small, &folder).unwrap_err().to_string();
    assert!(message.contains("not an ordinary file"), "{message}");
}

/// A process was killed before the description of its sweep got its name.
#[test]
fn a_folder_without_a_description_is_continued() {
    let temporary = tempfile::tempdir().unwrap();
    let small = sweep(SMALL).unwrap();
    let left = temporary.path().join(".sweep.json.123-0.part");
    fs::write(&left, "{").unwrap();
    fs::write(temporary.path().join("sweep.lock"), "").unwrap();
    drop(ResultFolder::open(temporary.path(), &small).unwrap());
    assert!(!left.exists());
    on(1, temporary.path(), &small);
}

/// Every bit belongs to the answer, to a query, or to the metadata.
#[test]
fn a_changed_bit_is_found_anywhere_in_a_file() {
    let temporary = tempfile::tempdir().unwrap();
    let small = sweep(SMALL).unwrap();
    on(2, temporary.path(), &small);
    let path = temporary.path().join(small.file_of_part(1));
    let original = fs::read(&path).unwrap();
    let folder = ResultFolder::open(temporary.path(), &small).unwrap();
    for at in (0..original.len()).step_by(3) {
        let mut changed = original.clone();
        changed[at] ^= 1 << (at / 3 % 8);
        fs::write(&path, &changed).unwrap();
        let message = Answer::read(&small, &folder).map(drop).unwrap_err();
        let message = message.to_string();
        let expected = format!("{}: damaged (", path.display());
        assert!(message.starts_with(&expected), "byte {at}: {message}");
        assert!(message.ends_with("remove the file, and repeat the command"));
    }
    folder.unlock();
    // The remedy works.
    fs::remove_file(&path).unwrap();
    on(2, temporary.path(), &small);
    assert_eq!(fs::read(&path).unwrap(), original);
}

#[cfg(unix)]
#[test]
fn links_that_lead_nowhere_are_named() {
    use std::os::unix::fs::symlink;
    let temporary = tempfile::tempdir().unwrap();
    let small = sweep(SMALL).unwrap();
    let link = temporary.path().join("link");
    symlink("nowhere", &link).unwrap();
    let message = ResultFolder::open(&link, &small).err().unwrap().to_string();
    assert!(
        message.contains("link: is a link to a folder that does not exist"),
        "{message}"
    );
    let path = temporary.path().join("r");
    on(1, &path, &small);
    let first = path.join(small.file_of_part(0));
    fs::remove_file(&first).unwrap();
    symlink("nowhere", &first).unwrap();
    let folder = ResultFolder::open(&path, &small).unwrap();
    assert!(folder.missing(&small).is_empty());
    let message = Answer::read(&small, &folder).unwrap_err().to_string();
    assert!(
        message.contains("not an ordinary file; remove the file"),
        "{message}"
    );
}

#[test]
fn a_sweep_in_recorder_mode_has_nothing_to_check() {
    let text = SMALL.replace("\"card\"", "\"recorder\"");
    let message = check_sample(&sweep(&text).unwrap(), 1).unwrap_err();
    assert!(message.to_string().contains("omit --check"), "{message}");
    let small = sweep(SMALL).unwrap();
    let recordings = 2 * 2 * 2 * 5;
    assert_eq!(check_sample(&small, recordings), Ok(()));
    assert!(check_sample(&small, recordings + 1).is_err());
}

/// Values of the greatest width stay apart, the description is in every output, and rates that share a colour do not share
/// their dashes.
#[test]
fn outputs_stay_readable_with_long_values_and_many_rates() {
    let temporary = tempfile::tempdir().unwrap();
    let rates: Vec<_> = (0..13).map(|at| (860 + at).to_string()).collect();
    let text = SMALL
        .replace("[4096, 65536]", "[1024, 2147483647]")
        .replace("860, 3000", &rates.join(", "))
        .replace("run_s = 60", "run_s = 1\nabout = \"Long | and\\n# wide\"");
    let answer = on(2, temporary.path(), &sweep(&text).unwrap());
    let table = text_of(&answer, None, None);
    assert!(table.contains("2147483647 B  5 "), "{table}");
    let markdown = markdown(&answer);
    assert!(
        markdown.starts_with("Long | and # wide\n\nMode card"),
        "{markdown}"
    );
    let page = html(&answer, None, None);
    let section = page.split("<section>").nth(1).unwrap();
    let styles = section.split("<g class=\"").skip(1);
    let styles: Vec<_> = styles.map(|rest| rest.split('"').next().unwrap()).collect();
    let distinct: std::collections::BTreeSet<_> = styles.iter().collect();
    assert_eq!((styles.len(), distinct.len()), (13, 13), "{styles:?}");
    for style in styles
        .iter()
        .flat_map(|style| style.split(' '))
        .filter(|one| *one != "d0")
    {
        assert!(page.contains(&format!(".{style} ")), "{style}");
    }
}

#[test]
fn a_sample_has_no_recording_twice() {
    let small = sweep(SMALL).unwrap();
    let go_on = |_| ControlFlow::Continue(());
    let count = small.tasks() * 1000;
    let message = check_with_recorder(&small, count, &go_on).unwrap_err();
    assert!(
        message.to_string().contains("check at most as many"),
        "{message}"
    );
}

/// Recordings of a second cost more than their samples.
#[test]
fn the_cost_counts_recordings() {
    let short = SMALL.replace("run_s = 60", "run_s = 1");
    let cost_s = |text: &str| sweep(text).unwrap().cost_s();
    assert!(cost_s(&short) > 0.3 * cost_s(SMALL));
}

#[test]
fn two_processes_cannot_use_one_folder() {
    let temporary = tempfile::tempdir().unwrap();
    let sweep = sweep(SMALL).unwrap();
    let first = ResultFolder::open(temporary.path(), &sweep).unwrap();
    let second = ResultFolder::open(temporary.path(), &sweep);
    let message = second.err().unwrap().to_string();
    assert!(
        message.contains("another process writes to this folder"),
        "{message}"
    );
    first.unlock();
    let second = ResultFolder::open(temporary.path(), &sweep).unwrap();
    drop(first);
    drop(second);
    assert!(ResultFolder::open(temporary.path(), &sweep).is_ok());
}

#[test]
fn a_damaged_file_is_named() {
    let temporary = tempfile::tempdir().unwrap();
    let sweep = sweep(SMALL).unwrap();
    on(2, temporary.path(), &sweep);
    let victim = temporary.path().join(sweep.file_of_part(1));
    for damage in [&b""[..], b"PAR1", b"hello, world"] {
        fs::write(&victim, damage).unwrap();
        let folder = ResultFolder::open(temporary.path(), &sweep).unwrap();
        let message = Answer::read(&sweep, &folder).unwrap_err().to_string();
        assert!(message.contains("damaged"), "{message}");
        assert!(message.contains(&victim.display().to_string()), "{message}");
    }
}

/// An ensemble of three members, the last of which programs a page far more slowly.
fn ensemble() -> cardiograph_sim_card::Profile {
    // The fixtures have no ensembles.
    let (_, text) = cardiograph_sim_card::FIXTURES[0];
    let text = text.replacen("model = 1\n", "", 1);
    let members = "\n[ftl]\n[[member]]\n\"flash.read_us\" = 60\n[[member]]\n\"flash.program_us\" = [20000, 40000]\n";
    cardiograph_sim_card::Profile::from_toml("ensemble", &(text + members)).unwrap()
}

#[test]
fn each_member_of_an_ensemble_is_simulated_as_a_card_of_its_own() {
    let temporary = tempfile::tempdir().unwrap();
    let own = temporary.path();
    let ensemble = ensemble();
    let answer_of = |name: &str, profile: &cardiograph_sim_card::Profile| {
        let file = format!("{name}.toml");
        fs::write(own.join(&file), profile.to_toml().unwrap()).unwrap();
        let text = SMALL.replace("\"class10-16g\", \"kingston-8g\"", &format!("\"{file}\""));
        let sweep = Sweep::from_toml("s.toml", &text, own).unwrap();
        on(2, &own.join(name), &sweep)
    };
    let together = answer_of("ensemble", &ensemble);
    let members = ensemble.members("ensemble").unwrap();
    assert_eq!(members.len(), 3);
    let alone: Vec<Answer> = members
        .iter()
        .zip(["one", "two", "three"])
        .map(|(member, name)| answer_of(name, member))
        .collect();
    let mut differ = 0;
    for (at, cell) in together.cells.iter().enumerate() {
        let risks: Vec<_> = cell.members.iter().map(|member| member.risk).collect();
        let expected: Vec<_> = alone
            .iter()
            .map(|answer| answer.cells[at].members[0].risk)
            .collect();
        assert_eq!(risks, expected, "{cell:?}");
        let numbers: Vec<u32> = cell.members.iter().map(|member| member.member).collect();
        assert_eq!(numbers, [0, 1, 2]);
        let mut values: Vec<f64> = risks
            .iter()
            .map(|risk| risk.losses as f64 / risk.runs as f64)
            .collect();
        values.sort_by(f64::total_cmp);
        differ += usize::from(values[0] != values[2]);
        assert_eq!(cell.median.unwrap_or(0.0), values[1]);
        // A member without losses has no value.
        let value = |at: usize| Some(Some(values[at]).filter(|&value| value > 0.0));
        assert_eq!((cell.member_low, cell.member_high), (value(0), value(2)));
    }
    assert!(
        differ > 0,
        "the members must differ for this test to mean anything"
    );
}

/// 86 kB/s for three years are 8.1 million MB, estimated at 30 us of a core each: 4 minutes per recording.
#[test]
fn tasks_of_long_recordings_have_a_single_seed() {
    let years = |seconds: u64, more: &str| {
        let spec = format!(
            "mode = \"card\"\ncards = [\"class10-16g\"]\nrates_hz = [860]\nsample_bytes = 100\nbuffers_bytes = [4096]\n\
             run_s = {seconds}\nseeds = 20\n{more}"
        );
        sweep(&spec).unwrap()
    };
    let three_years = 3 * 31_557_600;
    assert_eq!(years(three_years, "").tasks(), 20);
    assert!(years(three_years, "").cost_s() > 20.0 * 200.0);
    assert_eq!(years(60, "").tasks(), 2);
    assert_eq!(years(three_years, "seeds_per_task = 5\n").tasks(), 4);
}
