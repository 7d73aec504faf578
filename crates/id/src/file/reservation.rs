use std::path::Path;
use std::process;
use std::string::ToString;

use crate::file::FileError;
use crate::file::files::Files;
use crate::node::Node;
use crate::window::{Lease, Record, Retired, Window, WindowConfig, WindowEnd};

/// A node held through a lock file, with its window recorded in a file next to it.
///
/// The files are `LAYOUT-NODE.lock` and `LAYOUT-NODE.window` in the folder. Dropped without
/// [`release`](Lease::release), the node is free at once, and its next holder waits for the end
/// of the window.
///
/// Before it writes, it makes sure that the files are still its own. Once they are not, each call
/// fails with [`FileError::Lost`], and the window ends where it was last recorded to.
#[must_use = "a node dropped is free for others, and its window is not extended"]
#[derive(Debug)]
pub struct ReservationFile {
    node: Node,
    record: Record,
    /// What the file holds, unless it is the attempt.
    on_disk: Record,
    /// What was written last, whether or not that succeeded.
    attempt: Option<Record>,
    lost: bool,
    end: WindowEnd,
    config: WindowConfig,
    files: Files,
    /// A forked process has another one.
    process: u32,
}

impl ReservationFile {
    /// Takes the node, and records its first window: from the end of the last one recorded, or
    /// from now if that is later. Makes the folder and the files where there are none.
    pub fn open(
        folder: &Path,
        node: Node,
        config: WindowConfig,
        now_us: i64,
    ) -> Result<(Self, Window), FileError> {
        let files = Files::lock(folder, &node)?;
        let identity = files.folder_identity()?;
        let previous = files.read()?;
        if let Some(previous) = &previous
            && !identity.is_named_by(previous.location())
        {
            return Err(FileError::Copied {
                path: files.record.clone(),
                recorded: previous.location().to_string(),
                found: identity.to_string(),
            });
        }
        let location = identity.to_string();
        let begun = Record::begin(previous.as_ref(), &node, &location, now_us, &config);
        let record = begun.map_err(|error| FileError::Begin {
            path: files.record.clone(),
            error,
        })?;
        files.write(&record)?;
        let (window, end) = record.window(node);
        let reservation = Self {
            node,
            on_disk: record.clone(),
            record,
            attempt: None,
            lost: false,
            end,
            config,
            files,
            process: process::id(),
        };
        Ok((reservation, window))
    }

    /// Declares the folder, copied or restored, to be the node's location from now on. The operator
    /// promises that no process works with the original any more, or that it does not hold this
    /// node. Nothing else of the record changes. `false` if the node has no record there.
    pub fn adopt(folder: &Path, node: &Node) -> Result<bool, FileError> {
        let files = Files::lock(folder, node)?;
        let location = files.folder_identity()?.to_string();
        match files.read()? {
            Some(record) => files.write(&record.moved_to(&location)).map(|()| true),
            None => Ok(false),
        }
    }

    /// The record as last written with success.
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

    /// Writes, if no other holder can have taken the node: the lock file in the folder is the locked
    /// one, and the record there is one that this lease wrote.
    fn write(&mut self, record: &Record) -> Result<(), FileError> {
        if self.lost || !self.is_held()? {
            self.lost = true;
            let path = self.files.lock.clone();
            return Err(FileError::Lost { path });
        }
        self.attempt = Some(record.clone());
        self.files.write(record)?;
        self.on_disk = record.clone();
        Ok(())
    }

    fn is_held(&mut self) -> Result<bool, FileError> {
        if !self.files.is_locked()? {
            return Ok(false);
        }
        match self.files.read()? {
            Some(found) if Some(&found) == self.attempt.as_ref() => {
                self.on_disk = found;
                Ok(true)
            }
            found => Ok(found.as_ref() == Some(&self.on_disk)),
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
        self.record.due_us(&self.config)
    }

    fn renew(&mut self, now_us: i64) -> Result<(), FileError> {
        self.check_process()?;
        if let Some(record) = self.record.extended(now_us, &self.config) {
            self.write(&record)?;
            self.end.extend(record.until_us());
            self.record = record;
        }
        Ok(())
    }

    fn release(mut self, retired: Retired) -> Result<(), FileError> {
        self.check_process()?;
        if !self.end.belongs_to(&retired) {
            return Err(FileError::OtherWindow);
        }
        self.write(&self.record.ended(retired.until_us()))
    }
}
