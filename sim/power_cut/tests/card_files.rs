//! Files that other tasks read during a recording, compared with what the crate fatfs reads from the card
//! afterwards.

use cardiograph_recorder::{
    CardFile, CardFiles, Change, Config, Event, FileError, Format, LISTED_NAME_BYTES_MAX, ReadDesk,
    StreamConfig, Window,
};
use cardiograph_sim_card::{Card, Profile, Seed};
use cardiograph_sim_device::{Device, Lines, Outcome, StreamSetup};
use cardiograph_sim_power_cut::foreign::{Files, Volume};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

const RATE_HZ: u32 = 860;
const SECONDS: u32 = 12;

/// Returns a card with fragmented files of another program, and the contents of these files.
fn card_with_files(seed: Seed) -> (Card, Volume, Files) {
    let profile = Profile::named("class10-16g").unwrap();
    let mut card = Card::new(&profile, seed);
    let volume = Volume {
        card_bytes: 1 << 30,
        start: 8192,
        bytes: 900 << 20,
        cluster_bytes: 16_384,
        free_bytes: None,
    };
    let (image, files) = volume.make(seed).unwrap();
    image.store(&mut card);
    (card, volume, files)
}

fn lines(window: Window) -> StreamSetup<'static> {
    StreamSetup {
        config: StreamConfig {
            prefix: *b"REC",
            format: Format::Lines {
                header: "",
                line_bytes_max: 100,
            },
            window,
        },
        ring_bytes: 65_536,
        samples: Box::new(Lines {
            rate_hz: RATE_HZ,
            line_bytes: 100,
            count: u64::from(RATE_HZ * SECONDS),
        }),
    }
}

/// Reads a whole file, in pieces of odd lengths.
async fn contents(files: &CardFiles<'_, '_>, file: &CardFile) -> Result<Vec<u8>, FileError> {
    let mut bytes = Vec::new();
    loop {
        let piece = files.read(file, bytes.len() as u64, 7001).await?;
        if piece.is_empty() {
            assert_eq!(bytes.len() as u64, file.bytes());
            return Ok(bytes);
        }
        bytes.extend_from_slice(&piece);
    }
}

/// Returns all paths below a directory.
async fn paths(files: &CardFiles<'_, '_>) -> Result<Vec<String>, FileError> {
    let (mut found, mut folders) = (Vec::new(), vec![String::new()]);
    while let Some(folder) = folders.pop() {
        let mut listing = files.list(&folder).await?;
        let mut name = [0; LISTED_NAME_BYTES_MAX];
        while let Some(entry) = files.next(&mut listing, &mut name).await? {
            let path = format!("{folder}/{}", entry.name);
            match entry.file.is_directory() {
                true => folders.push(path),
                false => found.push(path),
            }
        }
    }
    Ok(found)
}

/// Observations of a reader: the contents of each path, each time it was read.
type Seen = BTreeMap<String, Vec<Vec<u8>>>;

async fn watch(desk: &ReadDesk<'_>, seen: Rc<RefCell<Seen>>) -> Result<(), FileError> {
    let files = CardFiles::new(desk);
    loop {
        for path in paths(&files).await? {
            let file = files.open(&path).await?;
            let bytes = contents(&files, &file).await?;
            let path = path.trim_start_matches('/').to_string();
            seen.borrow_mut().entry(path).or_default().push(bytes);
        }
    }
}

struct Run {
    seen: Seen,
    after: Files,
    foreign: Files,
    lost: u64,
    breaches: u32,
    reads: u32,
}

fn run(seed: u64, serves_after_ns: u64) -> Run {
    let seed = Seed::new(seed);
    let (card, volume, foreign) = card_with_files(seed);
    let mut device = Device::new(card, 1, 25_000_000, seed);
    device.serves_after_ns = serves_after_ns;
    device.config = Config {
        file_bytes: 4 << 20,
        rotate_us: Some(3_000_000),
        ..Config::default()
    };
    let seen = Rc::new(RefCell::new(Seen::new()));
    let (shared, reads) = (seen.clone(), Rc::new(RefCell::new(0)));
    let counted = reads.clone();
    let mut lost = 0;
    let logged = device.log(
        [lines(Window::default())],
        |_, event| {
            if let Event::Lost { gap, .. } = event {
                lost += gap.count;
            }
        },
        |_, desk, world| {
            Some(Box::pin(async move {
                loop {
                    // Reading fails before the card is mounted.
                    let error = watch(desk, shared.clone()).await;
                    assert!(matches!(error, Err(FileError::Read(_))), "{error:?}");
                    counted.replace(desk.tally().reads);
                    world.sleep_ns(1_000_000).await;
                }
            }))
        },
    );
    let Outcome::Done([summary]) = logged.outcome else {
        panic!("{:?}", logged.outcome);
    };
    let mut card = device.into_card();
    let after = volume.read(&mut card).unwrap();
    let reads = reads.take();
    Run {
        seen: seen.take(),
        after,
        foreign,
        lost,
        breaches: summary.window_breaches,
        reads,
    }
}

#[test]
fn files_are_served_beside_a_recording() {
    for seed in 1..=3 {
        let run = run(seed, 0);
        println!("seed {seed}: {} paths, {} reads", run.seen.len(), run.reads);
        assert_eq!((run.lost, run.breaches), (0, 0));
        for (path, bytes) in &run.foreign {
            let seen = &run.seen[path];
            assert!(seen.iter().all(|seen| seen == bytes), "{path}");
        }
        let recordings = run.after.keys().filter(|path| path.ends_with(".CSV"));
        let recordings: Vec<_> = recordings.filter(|path| path.starts_with("REC0")).collect();
        assert!(recordings.len() >= 3, "{recordings:?}");
        let mut growing = 0;
        for path in recordings {
            let whole = &run.after[path];
            let seen = run.seen.get(path).map_or(&[][..], |seen| seen);
            // Files only grow: every version that a reader saw is a prefix of the final one.
            assert!(seen.iter().all(|seen| whole.starts_with(seen)), "{path}");
            assert!(seen.is_sorted_by_key(Vec::len), "{path}");
            growing += seen.iter().filter(|seen| seen.len() < whole.len()).count();
        }
        assert!(growing > 10, "{growing}");
        let shown = run
            .seen
            .keys()
            .filter(|path| !run.after.contains_key(*path));
        assert_eq!(shown.count(), 0);
        assert!(run.seen.keys().all(|path| !path.contains("CARDIOGR")));
    }
}

/// Makes, finds, lists and removes a directory, repeatedly.
async fn change_and_look(desk: &ReadDesk<'_>, rounds: &RefCell<u32>) -> Result<(), FileError> {
    let files = CardFiles::new(desk);
    loop {
        let path = format!("/New {}", rounds.borrow());
        let is_missing = async || match files.open(&path).await {
            Err(FileError::NotFound) => Ok(true),
            found => found.map(|_| false),
        };
        assert!(is_missing().await?, "{path}");
        desk.change(Change::MakeDirectory { path: &path }, None)
            .await?;
        assert!(files.open(&path).await?.is_directory());
        let inner = format!("{path}/inside");
        desk.change(Change::MakeDirectory { path: &inner }, None)
            .await?;
        assert!(files.open(&inner).await?.is_directory());
        let mut listing = files.list("/").await?;
        let mut name = [0; LISTED_NAME_BYTES_MAX];
        let mut is_listed = false;
        while let Some(entry) = files.next(&mut listing, &mut name).await? {
            is_listed |= path.ends_with(entry.name);
        }
        assert!(is_listed, "{path}");
        for path in [&inner, &path] {
            desk.change(Change::Remove { path }, None).await?;
        }
        assert!(is_missing().await?, "{path} is removed");
        rounds.replace_with(|rounds| *rounds + 1);
    }
}

/// Buffers of the desk keep blocks of directories, but not longer than these are on the card.
#[test]
fn lookups_see_changes_at_once() {
    let (card, _, _) = card_with_files(Seed::new(1));
    let device = Device::new(card, 1, 25_000_000, Seed::new(1));
    let rounds = Rc::new(RefCell::new(0));
    let counted = rounds.clone();
    let logged = device.log(
        [lines(Window::default())],
        |_, _| (),
        |_, desk, world| {
            Some(Box::pin(async move {
                loop {
                    let error = change_and_look(desk, &counted).await;
                    assert!(matches!(error, Err(FileError::Read(_))), "{error:?}");
                    world.sleep_ns(1_000_000).await;
                }
            }))
        },
    );
    assert!(matches!(logged.outcome, Outcome::Done(_)));
    assert!(rounds.take() > 50);
}

/// After the recorder ends, every recording is finished and served whole.
#[test]
fn files_are_served_after_a_recording() {
    let run = run(1, 3_000_000_000);
    let recordings = run.after.keys().filter(|path| path.ends_with(".CSV"));
    let recordings: Vec<_> = recordings.filter(|path| path.starts_with("REC0")).collect();
    assert!(recordings.len() >= 3, "{recordings:?}");
    for path in recordings {
        assert_eq!(run.seen[path].last(), Some(&run.after[path]), "{path}");
    }
}

/// Requests changes that are refused, one after another.
async fn be_refused(desk: &ReadDesk<'_>, refusals: &RefCell<u32>) -> Result<(), FileError> {
    let long = "n".repeat(230);
    let long = format!("/{long}");
    let remove = |path| Change::Remove { path };
    let make = |path| Change::MakeDirectory { path };
    let rename = |from, to| Change::Rename { from, to };
    desk.change(make("/New"), None).await?;
    let changes = [
        (make("/a<b"), FileError::NameInvalid),
        (make(&long), FileError::NameInvalid),
        (make("/New"), FileError::Exists),
        (make("/none/New"), FileError::NotFound),
        (remove("/a<b"), FileError::NameInvalid),
        (remove("/none"), FileError::NotFound),
        (rename("/none", "/other"), FileError::NotFound),
        (rename("/New", "/a<b"), FileError::NameInvalid),
        (Change::DiscardUpload { upload: 9 }, FileError::Changed),
        (Change::BeginUpload { bytes: 1 << 40 }, FileError::TooLong),
    ];
    for (change, expected) in changes {
        match desk.change(change, None).await {
            Err(error @ FileError::Read(_)) => return Err(error),
            result => assert_eq!(result, Err(expected), "{change:?}"),
        }
        refusals.replace_with(|count| *count + 1);
    }
    desk.change(remove("/New"), None).await.map(|_| ())
}

/// A refused change costs the recorder nothing.
#[test]
fn refused_changes_leave_the_card_alone() {
    let (card, _, _) = card_with_files(Seed::new(1));
    let device = Device::new(card, 1, 25_000_000, Seed::new(1));
    let refusals = Rc::new(RefCell::new(0));
    let counted = refusals.clone();
    let mut failures = Vec::new();
    let logged = device.log(
        [lines(Window::default())],
        |us, event| {
            if matches!(event, Event::Lost { .. } | Event::CardLost) {
                failures.push(format!("{us} us: {event}"));
            }
        },
        |_, desk, world| {
            Some(Box::pin(async move {
                world.sleep_ns(2_000_000_000).await;
                while be_refused(desk, &counted).await.is_ok() {
                    world.sleep_ns(100_000_000).await;
                }
            }))
        },
    );
    assert!(matches!(logged.outcome, Outcome::Done(_)));
    assert_eq!(failures, [""; 0]);
    assert!(refusals.take() > 100);
}
