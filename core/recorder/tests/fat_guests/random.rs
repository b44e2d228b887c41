//! Random sequences of changes, compared with a model: a map of paths.

use super::*;
use cardiograph_recorder::Refusal;
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Change {
    Put(String, usize, bool),
    /// An upload in pieces, which alternate with those of another upload that is then discarded.
    PutPieces(String, usize),
    MakeDirectory(String),
    Rename(String, String, bool),
    Remove(String),
    Record,
    RemoveOldest,
    Remount,
}

/// Names of which several differ in case only, and several have similar short names.
const NAMES: [&str; 10] = [
    "a",
    "A",
    "Data.csv",
    "DATA.CSV",
    "a longer name than eight",
    "a longer name than nine",
    "A LONGER name than nine",
    "ünïcödé",
    "ÜNÏCÖDÉ",
    "a name of seventy characters and more, of which many are only padding..x",
];

fn paths() -> impl Strategy<Value = String> {
    let name = prop::sample::select(&NAMES[..]);
    prop::collection::vec(name, 1..4).prop_map(|names| names.join("/"))
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let change = prop_oneof![
        4 => (paths(), 0_usize..4000, any::<bool>())
            .prop_map(|(path, bytes, replaces)| Change::Put(path, bytes, replaces)),
        2 => (paths(), 1_usize..6000).prop_map(|(path, bytes)| Change::PutPieces(path, bytes)),
        4 => paths().prop_map(Change::MakeDirectory),
        4 => (paths(), paths(), any::<bool>())
            .prop_map(|(from, to, replaces)| Change::Rename(from, to, replaces)),
        3 => paths().prop_map(Change::Remove),
        1 => Just(Change::Record),
        1 => Just(Change::RemoveOldest),
        1 => Just(Change::Remount),
    ];
    prop::collection::vec(change, 1..80)
}

/// Returns the path in the model's spelling, if it exists.
fn known(model: &Tree, path: &str) -> Option<String> {
    let path = path.to_uppercase();
    model.keys().find(|it| it.to_uppercase() == path).cloned()
}

/// Returns the spelling of the parent directory, with a slash, or the error if there is none.
fn above<'p>(model: &Tree, path: &'p str) -> Result<(String, &'p str), Error> {
    let Some((above, name)) = path.rsplit_once('/') else {
        return Ok((String::new(), path));
    };
    let mut part = String::new();
    for name in above.split('/') {
        part = format!("{part}{name}");
        let found = known(model, &part).ok_or(Error::NotFound)?;
        if model[&found].is_some() {
            return Err(Error::NotDirectory);
        }
        part = format!("{found}/");
    }
    Ok((part, name))
}

fn put(model: &mut Tree, path: &str, data: Vec<u8>, replaces: bool) -> Result<(), Error> {
    let (above, name) = above(model, path)?;
    let path = format!("{above}{name}");
    let path = match known(model, &path) {
        Some(old) if model[&old].is_none() => return Err(Error::IsDirectory),
        Some(_) if !replaces => return Err(Error::Exists),
        Some(old) => old,
        None => path,
    };
    model.insert(path, Some(data));
    Ok(())
}

fn make_directory(model: &mut Tree, path: &str) -> Result<(), Error> {
    let (above, name) = above(model, path)?;
    let path = format!("{above}{name}");
    match known(model, &path) {
        Some(_) => Err(Error::Exists),
        None => {
            model.insert(path, None);
            Ok(())
        }
    }
}

fn remove(model: &mut Tree, path: &str) -> Result<(), Error> {
    above(model, path)?;
    let path = known(model, path).ok_or(Error::NotFound)?;
    let inside = format!("{path}/");
    if model.keys().any(|it| it.starts_with(&inside)) {
        return Err(Error::NotEmpty);
    }
    model.remove(&path);
    Ok(())
}

fn rename(model: &mut Tree, from: &str, to: &str, replaces: bool) -> Result<(), Error> {
    above(model, from)?;
    let from = known(model, from).ok_or(Error::NotFound)?;
    let is_directory = model[&from].is_none();
    let inside = format!("{from}/");
    let is_inside = to.to_uppercase().starts_with(&inside.to_uppercase());
    if is_directory && is_inside {
        return Err(Error::Forbidden(Refusal::IntoItself));
    }
    let (above, name) = above(model, to)?;
    let mut to = format!("{above}{name}");
    if let Some(old) = known(model, &to).filter(|old| *old != from) {
        if is_directory || model[&old].is_none() || !replaces {
            return Err(Error::Exists);
        }
        to = old;
    }
    let moved: Vec<_> = model
        .keys()
        .filter(|it| **it == from || it.starts_with(&inside))
        .cloned()
        .collect();
    for path in moved {
        let data = model.remove(&path).unwrap();
        model.insert(format!("{to}{}", &path[from.len()..]), data);
    }
    Ok(())
}

fn put_pieces(rig: &mut Rig, path: &str, data: &[u8]) -> Result<(), Error> {
    let (mut one, mut two) = (rig.begin(0)?, rig.begin(0)?);
    for piece in (0..data.len()).step_by(900) {
        rig.grow(&mut one, piece as u64 + 900)?;
        rig.grow(&mut two, piece as u64 / 2)?;
    }
    rig.write(&mut one, data)?;
    rig.drop_upload(two)?;
    let committed = rig.commit(&mut one, path, data.len(), true);
    if committed.is_err() {
        rig.drop_upload(one)?;
    }
    committed
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]
    #[test]
    fn a_volume_is_as_the_model(changes in changes(), is_32: bool) {
        let image = Spec { has_files: false, ..if is_32 { FAT32 } else { FAT16 } }.make();
        let mut rig = Rig::mounted(image.disk.clone());
        let mut model = Tree::new();
        for (number, change) in (0..).zip(changes) {
            let (found, due) = match &change {
                Change::Put(path, bytes, replaces) => {
                    let data = data(number, *bytes);
                    let found = rig.put(path, &data, *replaces);
                    (found, put(&mut model, path, data, *replaces))
                }
                Change::PutPieces(path, bytes) => {
                    let data = data(number, *bytes);
                    (put_pieces(&mut rig, path, &data), put(&mut model, path, data, true))
                }
                Change::MakeDirectory(path) => {
                    (rig.make_directory(path), make_directory(&mut model, path))
                }
                Change::Rename(from, to, replaces) => {
                    let found = rig.rename(from, to, *replaces);
                    (found, rename(&mut model, from, to, *replaces))
                }
                Change::Remove(path) => (rig.remove(path), remove(&mut model, path)),
                Change::Record => {
                    rig.record(20, 3000);
                    (Ok(()), Ok(()))
                }
                Change::RemoveOldest => (rig.remove_oldest().map(drop), Ok(())),
                Change::Remount => {
                    rig.remount();
                    (Ok(()), Ok(()))
                }
            };
            prop_assert_eq!(found, due, "{:?} of {:#?}", change, model.keys());
            check(&rig.disk, image.start).map_err(TestCaseError::fail)?;
        }
        fsck(&rig.disk, image.start).map_err(TestCaseError::fail)?;
        let mut found = tree(&rig.disk, image.start);
        found.retain(|path, _| !path.starts_with("REC00000"));
        prop_assert_eq!(found, model);
    }
}
