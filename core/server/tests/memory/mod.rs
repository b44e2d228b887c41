//! A storage in memory, a connection in memory, and virtual time.
#![allow(dead_code, reason = "each test uses a part of it")]

pub mod client;
pub mod recorder;
pub mod socket;

use cardiograph_server::*;
use socket::Clock;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::task::Poll;

/// A file or directory.
#[derive(Clone, Debug)]
pub enum Node {
    Directory,
    File(Contents),
}

#[derive(Clone, Debug, Default)]
pub struct Contents {
    pub bytes: Vec<u8>,
    pub generation: u64,
    pub epoch: Option<u32>,
    pub is_growing: bool,
}

/// Path and new contents of a file.
pub type Replacement = (String, Vec<u8>);

/// Files in memory.
pub struct Memory {
    pub nodes: RefCell<BTreeMap<String, Node>>,
    pub recordings: RefCell<Vec<Recording>>,
    /// Bytes that each refresh appends to growing files; after the last ones, the files are finished.
    pub growth: RefCell<VecDeque<Vec<u8>>>,
    /// Maximum length of a piece.
    pub piece_bytes: Cell<usize>,
    pub room_bytes: Cell<u64>,
    /// Error of all further operations.
    pub failure: Cell<Option<Error>>,
    pub generation: Cell<u64>,
    pub uploads: Cell<u32>,
    /// Files that the next reads replace.
    pub when_read: RefCell<VecDeque<Replacement>>,
    /// Files that the next lists of directories replace.
    pub when_listed: RefCell<VecDeque<Option<Replacement>>>,
    /// Number of times that a commit waits before it takes effect.
    pub commit_polls: Cell<u32>,
    /// Lists have no epochs of finished recordings, as on a card.
    pub lists_without_epochs: Cell<bool>,
    /// Lists of directories also make growing files grow.
    pub grows_when_listed: Cell<bool>,
    /// Appends wait for this time, as those to a card.
    pub append_time: RefCell<Option<(Rc<Clock>, u32)>>,
    /// Number of further appends after which the card fails.
    pub appends_max: Cell<u32>,
}

impl Default for Memory {
    fn default() -> Self {
        Memory {
            nodes: RefCell::new([("/".to_string(), Node::Directory)].into()),
            recordings: RefCell::default(),
            growth: RefCell::default(),
            piece_bytes: Cell::new(700),
            room_bytes: Cell::new(1 << 20),
            failure: Cell::new(None),
            generation: Cell::new(0),
            uploads: Cell::new(0),
            when_read: RefCell::default(),
            when_listed: RefCell::default(),
            commit_polls: Cell::new(0),
            lists_without_epochs: Cell::new(false),
            grows_when_listed: Cell::new(false),
            append_time: RefCell::default(),
            appends_max: Cell::new(u32::MAX),
        }
    }
}

impl Memory {
    pub fn directory(&self, path: &str) {
        self.nodes
            .borrow_mut()
            .insert(path.to_string(), Node::Directory);
    }

    pub fn file(&self, path: &str, bytes: &[u8]) {
        self.generation.set(self.generation.get() + 1);
        let contents = Contents {
            bytes: bytes.to_vec(),
            generation: self.generation.get(),
            ..Contents::default()
        };
        self.nodes
            .borrow_mut()
            .insert(path.to_string(), Node::File(contents));
    }

    pub fn growing(&self, path: &str, bytes: &[u8], epoch: u32) {
        let contents = Contents {
            bytes: bytes.to_vec(),
            generation: 0,
            epoch: Some(epoch),
            is_growing: true,
        };
        self.nodes
            .borrow_mut()
            .insert(path.to_string(), Node::File(contents));
    }

    /// Adds a finished recording, as a file and to the index.
    pub fn recording(&self, path: &str, session: &str, day: Option<Day>, bytes: &[u8]) {
        self.file(path, bytes);
        self.recordings.borrow_mut().push(Recording {
            path: RecordingPath::try_from(path).unwrap(),
            session: SessionName::try_from(session).unwrap(),
            day,
            first_us: 1_000_000,
            last_us: 2_000_000,
            samples: 10,
            gaps: 1,
            lost: 2,
            stat: stat_of(&self.node(path).unwrap()),
        });
    }

    pub fn node(&self, path: &str) -> Option<Node> {
        self.nodes.borrow().get(path).cloned()
    }

    pub fn bytes(&self, path: &str) -> Option<Vec<u8>> {
        match self.node(path)? {
            Node::File(contents) => Some(contents.bytes),
            Node::Directory => None,
        }
    }

    pub fn paths(&self) -> Vec<String> {
        self.nodes.borrow().keys().cloned().collect()
    }

    fn check(&self) -> Result<(), Error> {
        self.failure.get().map_or(Ok(()), Err)
    }

    fn parent_exists(&self, path: &str) -> Result<(), Error> {
        let parent = match path.rfind('/') {
            Some(at) if at > 0 => &path[..at],
            _ => "/",
        };
        match self.node(parent) {
            Some(Node::Directory) => Ok(()),
            Some(_) => Err(Error::NotDirectory),
            None => Err(Error::NotFound),
        }
    }

    fn within(&self, path: &str) -> Vec<String> {
        let prefix = format!("{path}/");
        let nodes = self.nodes.borrow();
        nodes
            .keys()
            .filter(|key| key.starts_with(&prefix))
            .cloned()
            .collect()
    }
}

fn stat_of(node: &Node) -> Stat {
    match node {
        Node::Directory => Stat {
            kind: Kind::Directory,
            bytes: 0,
            modified_s: None,
            version: Version::Whole { generation: 0 },
            is_growing: false,
        },
        Node::File(contents) => Stat {
            kind: Kind::File,
            bytes: contents.bytes.len() as u64,
            modified_s: Some(1_000_000_000),
            version: match contents.epoch {
                Some(epoch) => Version::Appended { epoch },
                None => Version::Whole {
                    generation: contents.generation,
                },
            },
            is_growing: contents.is_growing,
        },
    }
}

/// Lets other futures run.
async fn yield_once() {
    let mut has_yielded = false;
    std::future::poll_fn(|context| match std::mem::replace(&mut has_yielded, true) {
        true => Poll::Ready(()),
        false => {
            context.waker().wake_by_ref();
            Poll::Pending
        }
    })
    .await;
}

pub struct File {
    path: String,
    stat: Stat,
}

pub struct Listing {
    names: VecDeque<(String, Stat)>,
}

pub struct Upload {
    path: String,
    bytes: Vec<u8>,
}

impl Storage for Memory {
    type File = File;
    type Listing = Listing;
    type Upload = Upload;
    type Bytes<'a> = Vec<u8>;

    async fn open(&self, path: &str) -> Result<File, Error> {
        self.check()?;
        let node = self.node(path).ok_or(Error::NotFound)?;
        Ok(File {
            path: path.to_string(),
            stat: stat_of(&node),
        })
    }

    fn stat(&self, file: &File) -> Stat {
        file.stat
    }

    async fn refresh(&self, file: &mut File) -> Result<(), Error> {
        self.check()?;
        let more = self.growth.borrow_mut().pop_front();
        let mut nodes = self.nodes.borrow_mut();
        let Some(Node::File(contents)) = nodes.get_mut(&file.path) else {
            return Err(Error::Changed);
        };
        match more {
            Some(more) => contents.bytes.extend(more),
            None => contents.is_growing = false,
        }
        file.stat = stat_of(&nodes[&file.path]);
        Ok(())
    }

    async fn read(&self, file: &File, offset: u64, bytes_max: usize) -> Result<Vec<u8>, Error> {
        self.check()?;
        let node = self.node(&file.path).ok_or(Error::Changed)?;
        if stat_of(&node).version != file.stat.version {
            return Err(Error::Changed);
        }
        if let Some((path, bytes)) = self.when_read.borrow_mut().pop_front() {
            self.file(&path, &bytes);
        }
        let Node::File(Contents { bytes, .. }) = node else {
            return Err(Error::IsDirectory);
        };
        let bytes = &bytes[..file.stat.bytes as usize];
        let rest = &bytes[(offset as usize).min(bytes.len())..];
        Ok(rest[..rest.len().min(bytes_max).min(self.piece_bytes.get())].to_vec())
    }

    async fn list(&self, directory: &str) -> Result<Listing, Error> {
        self.check()?;
        match self.node(directory) {
            None => return Err(Error::NotFound),
            Some(Node::File(_)) => return Err(Error::NotDirectory),
            Some(Node::Directory) => (),
        }
        let prefix = match directory {
            "/" => "/".to_string(),
            directory => format!("{directory}/"),
        };
        if let Some(Some((path, bytes))) = self.when_listed.borrow_mut().pop_front() {
            self.file(&path, &bytes);
        }
        if self.grows_when_listed.get()
            && let Some(more) = self.growth.borrow_mut().pop_front()
        {
            for node in self.nodes.borrow_mut().values_mut() {
                if let Node::File(contents) = node
                    && contents.is_growing
                {
                    contents.bytes.extend(&more);
                }
            }
        }
        let nodes = self.nodes.borrow();
        let names = nodes.iter().filter_map(|(path, node)| {
            let name = path.strip_prefix(&prefix)?;
            let is_direct = !name.is_empty() && !name.contains('/');
            let mut stat = stat_of(node);
            if self.lists_without_epochs.get() && !stat.is_growing {
                stat.version = Version::Whole { generation: 1 };
            }
            is_direct.then(|| (name.to_string(), stat))
        });
        Ok(Listing {
            names: names.collect(),
        })
    }

    async fn next<'n>(
        &self,
        listing: &mut Listing,
        name: &'n mut NameBuffer,
    ) -> Result<Option<Entry<'n>>, Error> {
        self.check()?;
        let next = listing.names.pop_front();
        Ok(next.and_then(|(text, stat)| Entry::new(name, &text, stat)))
    }

    async fn create(&self, path: &str, bytes: Option<u64>) -> Result<Upload, Error> {
        self.check()?;
        self.parent_exists(path)?;
        match self.node(path) {
            Some(Node::Directory) => return Err(Error::IsDirectory),
            Some(Node::File(contents)) if contents.is_growing => return Err(Error::Recording),
            _ => (),
        }
        if bytes.unwrap_or(0) > self.room_bytes.get() {
            return Err(Error::Full);
        }
        self.uploads.set(self.uploads.get() + 1);
        Ok(Upload {
            path: path.to_string(),
            bytes: Vec::new(),
        })
    }

    async fn append(&self, upload: &mut Upload, bytes: &[u8]) -> Result<(), Error> {
        self.check()?;
        let time = self.append_time.borrow().clone();
        if let Some((clock, ms)) = time {
            clock.sleep_ms(ms).await;
        }
        match self.appends_max.get() {
            0 => return Err(Error::CardFailed),
            left => self.appends_max.set(left - 1),
        }
        upload.bytes.extend(bytes);
        match upload.bytes.len() as u64 > self.room_bytes.get() {
            true => Err(Error::Full),
            false => Ok(()),
        }
    }

    async fn commit(&self, upload: Upload, _: &str) -> Result<bool, Error> {
        self.uploads.set(self.uploads.get() - 1);
        self.check()?;
        for _ in 0..self.commit_polls.get() {
            yield_once().await;
        }
        let is_new = self.node(&upload.path).is_none();
        self.file(&upload.path, &upload.bytes);
        Ok(is_new)
    }

    fn write_bytes(&self) -> usize {
        match self.append_time.borrow().is_some() {
            true => 2048,
            false => 0,
        }
    }

    async fn discard(&self, _: Upload) {
        self.uploads.set(self.uploads.get() - 1);
    }

    async fn rename(&self, from: &str, to: &str) -> Result<(), Error> {
        self.check()?;
        self.parent_exists(to)?;
        let mut nodes = self.nodes.borrow_mut();
        let prefix = format!("{from}/");
        let moved: Vec<String> = nodes
            .keys()
            .filter(|key| *key == from || key.starts_with(&prefix))
            .cloned()
            .collect();
        let is_growing =
            |path: &String| matches!(&nodes[path], Node::File(contents) if contents.is_growing);
        if moved.is_empty() {
            return Err(Error::NotFound);
        }
        if moved.iter().any(is_growing) {
            return Err(Error::Recording);
        }
        if nodes.contains_key(to) {
            return Err(Error::Exists);
        }
        for path in moved {
            if let Some(node) = nodes.remove(&path) {
                nodes.insert(format!("{to}{}", &path[from.len()..]), node);
            }
        }
        Ok(())
    }

    async fn remove(&self, path: &str, is_recursive: bool) -> Result<(), Error> {
        self.check()?;
        let within = self.within(path);
        let mut nodes = self.nodes.borrow_mut();
        if !nodes.contains_key(path) {
            return Err(Error::NotFound);
        }
        if !within.is_empty() && !is_recursive {
            return Err(Error::NotEmpty);
        }
        let all = within.iter().map(String::as_str).chain([path]);
        let is_recorded = all
            .clone()
            .any(|path| matches!(&nodes[path], Node::File(contents) if contents.is_growing));
        if is_recorded {
            return Err(Error::Recording);
        }
        for path in all {
            nodes.remove(path);
        }
        Ok(())
    }

    fn copies(&self) -> bool {
        true
    }

    async fn copy(&self, from: &str, to: &str) -> Result<(), Error> {
        self.check()?;
        self.parent_exists(to)?;
        let mut nodes = self.nodes.borrow_mut();
        let copies: Vec<(String, Node)> = nodes
            .iter()
            .filter(|(path, _)| *path == from || path.starts_with(&format!("{from}/")))
            .map(|(path, node)| (format!("{to}{}", &path[from.len()..]), node.clone()))
            .collect();
        for (path, mut node) in copies {
            if let Node::File(contents) = &mut node {
                self.generation.set(self.generation.get() + 1);
                (contents.generation, contents.epoch) = (self.generation.get(), None);
                contents.is_growing = false;
            }
            nodes.insert(path, node);
        }
        Ok(())
    }

    async fn make_directory(&self, path: &str) -> Result<(), Error> {
        self.check()?;
        self.parent_exists(path)?;
        match self.node(path) {
            Some(_) => Err(Error::Exists),
            None => {
                self.directory(path);
                Ok(())
            }
        }
    }

    async fn record(&self, position: &mut Position) -> Result<Option<Recording>, Error> {
        self.check()?;
        let found = self.recordings.borrow().get(position.0 as usize).cloned();
        position.0 += u64::from(found.is_some());
        Ok(found)
    }
}
