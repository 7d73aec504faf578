use std::fs::{self, Metadata};
use std::io;
use std::path::Path;
use std::string::{String, ToString};
use std::time::UNIX_EPOCH;

/// Where a folder is: device and inode (on Unix), birth time (where the file system keeps one),
/// and canonical path.
///
/// A copy and a restored folder have another inode, or the same, used anew, with another birth
/// time. Moving a folder changes its path, and a restart of the machine may change the device's
/// number, but nothing in use changes both.
#[derive(Debug)]
pub(super) struct Place {
    device: u64,
    inode: u64,
    /// In Unix ns.
    created_at_ns: Option<u128>,
    path: String,
}

/// A file or folder as the file system numbers it: device and inode. Off Unix all are alike.
pub(super) type Number = (u64, u64);

impl Place {
    pub(super) fn of(folder: &Path) -> io::Result<Self> {
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

    /// Whether that text names this folder. A text without a birth time, as of a file system that
    /// keeps none, names it by the rest.
    pub(super) fn is_named_by(&self, text: &str) -> bool {
        let mut parts = text.splitn(3, ' ');
        let mut next = || parts.next().unwrap_or_default();
        let same_device = next() == self.device.to_string();
        let same_inode = next() == self.inode.to_string();
        let rest = next();
        let (created_at_ns, path) = rest
            .strip_prefix(CREATED_AT)
            .and_then(|rest| rest.split_once(' '))
            .map_or((None, rest), |(created_at, path)| {
                (created_at.parse::<u128>().ok(), path)
            });
        let same_birth = match (created_at_ns, self.created_at_ns) {
            (Some(recorded), Some(found)) => recorded == found,
            _ => true,
        };
        let same_path = path == self.path;
        if cfg!(unix) {
            same_inode && same_birth && (same_device || same_path)
        } else {
            same_birth && same_path
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} ", self.device, self.inode)?;
        if let Some(created_at_ns) = self.created_at_ns {
            write!(f, "{CREATED_AT}{created_at_ns} ")?;
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

/// No canonical path begins so.
const CREATED_AT: &str = "born_ns=";
