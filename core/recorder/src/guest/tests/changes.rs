//! Guests on a card that the recorder changes in the meantime.

use super::*;
use crate::reads::ReadError;

/// Clusters of the files: two runs each.
const FILES: [[u32; 3]; 2] = [[10, 11, 20], [21, 12, 13]];
const BYTES: usize = 1300;

fn made() -> Card {
    let mut card = Card::new(SHAPES[0]);
    card.rig.chain(&[30]);
    let mut entries = vec![
        short(b".          ", DIRECTORY, 30, 0),
        short(b"..         ", DIRECTORY, 0, 0),
    ];
    for (clusters, name) in FILES.iter().zip([b"A       TXT", b"B       TXT"]) {
        card.write(clusters, &bytes_of(clusters[0], BYTES));
        entries.push(short(name, FILE, clusters[0], BYTES as u32));
    }
    let directory = card.blocks(&[30]);
    card.put_entries(&directory, &entries);
    let root = card.root();
    card.put_entries(&root, &[short(b"D          ", DIRECTORY, 30, 0)]);
    card
}

/// Puts an entry in the place of that of `D/A.TXT`.
fn replace(card: &mut Card, entry: [u8; 32]) {
    let block = card.rig.layout.first_block(30) as usize;
    card.rig.disk.blocks[block][64..96].copy_from_slice(&entry);
}

#[test]
fn an_open_file_is_read_until_its_entry_changes() {
    let bytes = BYTES as u32;
    for (entry, is_same) in [
        (short(b"A       TXT", FILE, 10, bytes), true),
        (short(b"A       TXT", FILE, 10, bytes - 1), false),
        (short(b"A       TXT", FILE, 11, bytes), false),
        (short(b"C       TXT", FILE, 10, bytes), false),
        ([0xE5; 32], false),
    ] {
        with(made(), |served| {
            let due = |is_same: bool| match is_same {
                true => Ok(()),
                false => Err(FileError::Changed),
            };
            let mut file = served.open("D/A.TXT").unwrap();
            let started = served.open("D/A.TXT").unwrap();
            served.run(served.files().locate(&started, 0)).unwrap();
            served.change(|card| replace(card, entry));
            let located = served.run(served.files().locate(&started, 0));
            assert_eq!(located, due(is_same));
            let refreshed = served.run(served.files().refresh(&mut file));
            assert_eq!(refreshed, due(is_same));
            for file in [file, started] {
                let read = served.contents(&file);
                assert_eq!(read, due(is_same).map(|()| bytes_of(10, BYTES)));
            }
        });
    }
}

#[test]
fn the_root_directory_never_changes() {
    with(made(), |served| {
        let mut root = served.open("").unwrap();
        served.desk.note_change();
        assert_eq!(served.run(served.files().refresh(&mut root)), Ok(()));
        assert!(root.is_directory());
    });
}

/// Returns the contents of the two files, in the order of their directory.
async fn all_of(files: CardFiles<'_, '_>) -> Result<Vec<Vec<u8>>, FileError> {
    let mut listing = files.list("D").await?;
    let mut all = Vec::new();
    let mut name = [0; LISTED_NAME_BYTES_MAX];
    while let Some(entry) = files.next(&mut listing, &mut name).await? {
        let mut data = Vec::new();
        while data.len() < entry.file.bytes() as usize {
            let bytes = files.read(&entry.file, data.len() as u64, 100_000).await?;
            data.extend_from_slice(&bytes);
        }
        all.push(data);
        assert!(all.len() < ENTRIES_MAX, "the listing does not end");
    }
    Ok(all)
}

#[test]
fn removals_of_other_files_are_not_noticed() {
    with(made(), |served| {
        let due = FILES.map(|clusters| bytes_of(clusters[0], BYTES));
        assert_eq!(served.run(all_of(served.files())).unwrap(), due);
        let reads = served.reads.take().len();
        for changed in 0..reads {
            let found = served.run_with(all_of(served.files()), |read| {
                if read == changed {
                    served.desk.note_change();
                }
            });
            assert_eq!(found.unwrap(), due, "changed at read {changed}");
        }
    });
}

#[test]
fn a_listing_ends_when_the_card_is_exchanged() {
    with(made(), |served| {
        let mut listing = served.run(served.files().list("D")).unwrap();
        assert!(served.next(&mut listing).unwrap().is_some());
        served.desk.note_change();
        assert!(served.next(&mut listing).unwrap().is_some());
        served.mount();
        let error = served.next(&mut listing).unwrap_err();
        assert_eq!(error, FileError::Read(ReadError::OtherCard));
    });
}
