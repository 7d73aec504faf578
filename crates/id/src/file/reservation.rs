use std::path::Path;
use std::process;
use std::string::ToString;

use crate::file::FileError;
use crate::file::files::Files;
use crate::node::Node;
use crate::window::{Lease, Record, Retired, Window, WindowConfig, WindowEnd};

/// A node held by a lock file, with its window recorded in a second file.
///
/// The files are `LAYOUT-NODE.lock` and `LAYOUT-NODE.window` in the folder. Dropped without
/// [`release`](Lease::release), the node is free at once, and its next holder waits for the end of
/// the window.
///
/// Each write first checks that the files are still its own. Once they are not, each call fails
/// with [`FileError::Lost`], and the window ends at its last recorded end.
#[must_use = "a node dropped is free for others, and its window is not extended"]
#[derive(Debug)]
pub struct ReservationFile {
    node: Node,
    record: Record,
    /// The contents of the file, unless the attempt was written.
    on_disk: Record,
    /// The last record that was written, with or without success.
    attempt: Option<Record>,
    lost: bool,
    end: WindowEnd,
    config: WindowConfig,
    files: Files,
    /// The ID of the process. A forked process has another one.
    process: u32,
}

impl ReservationFile {
    /// Takes the node and records its first window, which begins at the end of the last recorded
    /// one, or now if that is later. Makes the folder and the files if they do not exist.
    ///
    /// # Errors
    /// [`FileError::Held`] if the node is held, [`FileError::Copied`] if the folder is a copy,
    /// [`FileError::Begin`] or [`FileError::Record`] if the record is unusable, [`FileError::Io`]
    /// if the file system fails.
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

    /// Makes the folder, copied or restored, the node's recorded location. The rest of the record
    /// stays unchanged. Returns `false` if the folder has no record of the node.
    ///
    /// The operator promises that no process works with the original any more, or that none there
    /// holds this node.
    ///
    /// # Errors
    /// [`FileError::Held`] if the node is held, [`FileError::Record`] if its record is invalid,
    /// [`FileError::Io`] if the file system fails.
    pub fn adopt(folder: &Path, node: &Node) -> Result<bool, FileError> {
        let files = Files::lock(folder, node)?;
        let location = files.folder_identity()?.to_string();
        match files.read()? {
            Some(record) => files.write(&record.moved_to(&location)).map(|()| true),
            None => Ok(false),
        }
    }

    /// The last record that was written successfully.
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

    /// Writes, unless another holder may have taken the node. The lock file in the folder must be
    /// the locked one, and the record must be one that this lease wrote.
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
