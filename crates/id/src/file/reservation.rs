use std::format;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::string::ToString;

use crate::file::FileError;
use crate::file::error::at;
use crate::file::place::Place;
use crate::node::Node;
use crate::window::{Lease, Record, Retired, Terms, Window, WindowEnd};

/// A node held through a lock file, with its window recorded in a file beside it.
///
/// The files are `LAYOUT-NODE.lock` and `LAYOUT-NODE.window` in the folder. Dropped without
/// [`release`](Lease::release), the node is free at once, and its next holder waits for the end
/// of the window.
#[derive(Debug)]
pub struct ReservationFile {
    node: Node,
    record: Record,
    end: WindowEnd,
    terms: Terms,
    files: Files,
    /// A forked process has another one.
    process: u32,
    /// Closing it releases the lock. It is never unlocked by hand: that would free the node of
    /// the parent in a forked process.
    _lock: File,
}

#[derive(Debug)]
struct Files {
    folder: PathBuf,
    lock: PathBuf,
    record: PathBuf,
    /// A record while it is being written.
    draft: PathBuf,
}

impl ReservationFile {
    /// Takes the node, and records its first window: from the end of the last one recorded, or
    /// from now if that is later. Makes the folder and the files where there are none.
    pub fn open(
        folder: &Path,
        node: Node,
        terms: Terms,
        now_us: i64,
    ) -> Result<(Self, Window), FileError> {
        let (files, lock) = Files::locked(folder, &node)?;
        let place = Place::of(&files.folder).map_err(at(&files.folder))?;
        let previous = files.read()?;
        if let Some(previous) = &previous
            && !place.is_named_by(previous.place())
        {
            return Err(FileError::Copied {
                path: files.record,
                recorded: previous.place().to_string(),
                found: place.to_string(),
            });
        }
        let place = place.to_string();
        let begun = Record::begin(previous.as_ref(), &node, &place, now_us, &terms);
        let record = begun.map_err(|error| FileError::Begin {
            path: files.record.clone(),
            error,
        })?;
        files.write(&record)?;
        let (window, end) = record.window(node);
        let reservation = Self {
            node,
            record,
            end,
            terms,
            files,
            process: process::id(),
            _lock: lock,
        };
        Ok((reservation, window))
    }

    /// Declares the folder, copied or restored, to be the node's place from now on. The operator promises
    /// that no process works with the original any more, or that it does not hold this node.
    /// Nothing else of the record changes.
    pub fn adopt(folder: &Path, node: &Node) -> Result<(), FileError> {
        let (files, _lock) = Files::locked(folder, node)?;
        let place = Place::of(&files.folder).map_err(at(&files.folder))?;
        match files.read()? {
            Some(record) => files.write(&record.moved_to(&place.to_string())),
            None => Ok(()),
        }
    }

    /// The record as last written.
    pub fn record(&self) -> &Record {
        &self.record
    }

    fn check_process(&self) -> Result<(), FileError> {
        if self.process == process::id() {
            Ok(())
        } else {
            Err(FileError::Forked)
        }
    }
}

impl Lease for ReservationFile {
    type Error = FileError;

    fn node(&self) -> &Node {
        &self.node
    }

    fn fence(&self) -> u64 {
        self.record.fence()
    }

    fn due_us(&self) -> i64 {
        self.record.due_us(&self.terms)
    }

    fn renew(&mut self, now_us: i64) -> Result<(), FileError> {
        self.check_process()?;
        if let Some(record) = self.record.extended(now_us, &self.terms) {
            self.files.write(&record)?;
            self.end.extend(record.until_us());
            self.record = record;
        }
        Ok(())
    }

    fn release(self, retired: Retired) -> Result<(), FileError> {
        self.check_process()?;
        if !self.end.belongs_to(&retired) {
            return Err(FileError::OtherWindow);
        }
        self.files.write(&self.record.ended(retired.until_us()))
    }
}

impl Files {
    /// The node's files and the lock on them.
    fn locked(folder: &Path, node: &Node) -> Result<(Self, File), FileError> {
        fs::create_dir_all(folder).map_err(at(folder))?;
        let path = |ending: &str| {
            let name = node.layout().name();
            folder.join(format!("{name}-{}.{ending}", node.number()))
        };
        let files = Self {
            folder: folder.to_path_buf(),
            lock: path("lock"),
            record: path("window"),
            draft: path("draft"),
        };
        let lock = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&files.lock)
            .map_err(at(&files.lock))?;
        match lock.try_lock() {
            Ok(()) => Ok((files, lock)),
            Err(TryLockError::WouldBlock) => Err(FileError::Held { path: files.lock }),
            Err(TryLockError::Error(error)) => Err(at(&files.lock)(error)),
        }
    }

    fn read(&self) -> Result<Option<Record>, FileError> {
        let bytes = match fs::read(&self.record) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(at(&self.record)(error)),
        };
        let text = std::string::String::from_utf8_lossy(&bytes);
        let record = Record::parse(&text).map_err(|error| FileError::Record {
            path: self.record.clone(),
            error,
        })?;
        Ok(Some(record))
    }

    /// Durable on return: the draft is synced before it takes the record's name, and the folder
    /// after. A rename replaces the record whole, so a crash leaves the old one or the new one.
    fn write(&self, record: &Record) -> Result<(), FileError> {
        let mut draft = File::create(&self.draft).map_err(at(&self.draft))?;
        let written = write!(draft, "{record}").and_then(|()| draft.sync_all());
        written.map_err(at(&self.draft))?;
        drop(draft);
        fs::rename(&self.draft, &self.record).map_err(at(&self.record))?;
        self.sync_folder()
    }

    #[cfg(unix)]
    fn sync_folder(&self) -> Result<(), FileError> {
        let folder = File::open(&self.folder).and_then(|folder| folder.sync_all());
        folder.map_err(at(&self.folder))
    }

    #[cfg(not(unix))]
    fn sync_folder(&self) -> Result<(), FileError> {
        Ok(())
    }
}
