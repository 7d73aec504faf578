use std::fs::{self, Metadata};
use std::io;
use std::path::Path;
use std::string::{String, ToString};
use std::time::UNIX_EPOCH;

/// The identity of a folder: device and inode (on Unix), creation time (if the file system records
/// one), and canonical path.
///
/// A copy or a restored folder has another inode, or a reused inode with another creation time.
/// Moving a folder changes its path. A restart of the machine may change the device's number. No
/// normal operation changes both.
#[derive(Debug)]
pub(super) struct FolderIdentity {
    device: u64,
    inode: u64,
    /// In Unix ns.
    created_at_ns: Option<u128>,
    path: String,
}

/// The device and inode of a file or folder. All are equal on systems other than Unix.
pub(super) type Number = (u64, u64);

impl FolderIdentity {
    pub(super) fn read(folder: &Path) -> io::Result<Self> {
        let path = fs::canonicalize(folder)?;
        let metadata = fs::metadata(&path)?;
        let (device, inode) = number(&metadata);
        let created_at = metadata.created().ok();
        let created_at_ns = created_at.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        Ok(Self {
            device,
            inode,
            created_at_ns: created_at_ns.map(|since| since.as_nanos()),
            path: path.to_string_lossy().escape_default().to_string(),
        })
    }

    /// True if `text` identifies this folder. A text without a creation time, from a file system
    /// that does not record it, is compared by the other parts.
    pub(super) fn is_named_by(&self, text: &str) -> bool {
        let mut parts = text.splitn(3, ' ');
        let mut next = || parts.next().unwrap_or_default();
        let same_device = next() == self.device.to_string();
        let same_inode = next() == self.inode.to_string();
        let rest = next();
        let (created_at_ns, path) = rest
            .strip_prefix(CREATED_AT_PREFIX)
            .and_then(|rest| rest.split_once(' '))
            .map_or((None, rest), |(created_at, path)| {
                (created_at.parse::<u128>().ok(), path)
            });
        let same_creation = match (created_at_ns, self.created_at_ns) {
            (Some(recorded), Some(found)) => recorded == found,
            _ => true,
        };
        let same_path = path == self.path;
        if cfg!(unix) {
            same_inode && same_creation && (same_device || same_path)
        } else {
            same_creation && same_path
        }
    }
}

impl std::fmt::Display for FolderIdentity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} ", self.device, self.inode)?;
        if let Some(created_at_ns) = self.created_at_ns {
            write!(f, "{CREATED_AT_PREFIX}{created_at_ns} ")?;
        }
        write!(f, "{}", self.path)
    }
}

#[cfg(unix)]
pub(super) fn number(metadata: &Metadata) -> Number {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

#[cfg(not(unix))]
pub(super) fn number(_: &Metadata) -> Number {
    (0, 0)
}

/// A prefix in records on disk. No canonical path begins with it.
const CREATED_AT_PREFIX: &str = "born_ns=";
