use std::fs;
use std::io;
use std::path::Path;
use std::string::{String, ToString};

/// Where a folder is: device and inode (on Unix), and canonical path.
///
/// A copy and a restored folder have another inode. Moving a folder changes its path, and a
/// restart of the machine may change the device's number, but nothing in use changes both.
#[derive(Debug)]
pub(super) struct Place {
    device: u64,
    inode: u64,
    path: String,
}

impl Place {
    pub(super) fn of(folder: &Path) -> io::Result<Self> {
        let path = fs::canonicalize(folder)?;
        let (device, inode) = device_and_inode(&path)?;
        Ok(Self {
            device,
            inode,
            path: path.to_string_lossy().escape_default().to_string(),
        })
    }

    /// Whether that text names this folder.
    pub(super) fn is_named_by(&self, text: &str) -> bool {
        let mut parts = text.splitn(3, ' ');
        let mut next = || parts.next().unwrap_or_default();
        let same_device = next() == self.device.to_string();
        let same_inode = next() == self.inode.to_string();
        let same_path = next() == self.path;
        if cfg!(unix) {
            same_inode && (same_device || same_path)
        } else {
            same_path
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {}", self.device, self.inode, self.path)
    }
}

#[cfg(unix)]
fn device_and_inode(path: &Path) -> io::Result<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    let metadata = fs::metadata(path)?;
    Ok((metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn device_and_inode(_: &Path) -> io::Result<(u64, u64)> {
    Ok((0, 0))
}
