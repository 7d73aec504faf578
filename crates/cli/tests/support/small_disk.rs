//! A disk that is full for a while.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file uses a part of this"
)]

use std::{
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
    process::Command,
};

use rlimit::{INFINITY, Resource, prlimit};

use super::Running;

/// Where a data folder lies that can be filled.
///
/// Who may mount has a file system of its own, which is really full. Elsewhere the process's files
/// may not grow (`RLIMIT_FSIZE`), which fails writes alike and can be lifted while it runs.
/// `DRIFTLINE_TEST_NO_MOUNT=1` takes the second way everywhere.
pub struct SmallDisk {
    mounted: Option<PathBuf>,
}

impl SmallDisk {
    pub fn mount(folder: &Path) -> Self {
        fs::create_dir_all(folder).unwrap();
        let mounted = std::env::var_os("DRIFTLINE_TEST_NO_MOUNT").is_none()
            && Command::new("mount")
                .args(["-t", "tmpfs", "-o", "size=32m", "tmpfs"])
                .arg(folder)
                .output()
                .is_ok_and(|output| output.status.success());
        Self {
            mounted: mounted.then(|| folder.to_owned()),
        }
    }

    /// Fills it to the last byte.
    pub fn fill(&self, process: &Running) {
        let Some(folder) = &self.mounted else {
            return limit(process, 4096);
        };
        let mut file = File::create(folder.join("filled")).unwrap();
        let mut size = 1 << 20;
        while size > 0 {
            if file.write_all(&vec![0; size]).is_err() {
                size /= 2;
            }
        }
    }

    /// Whether it is a file system of its own.
    pub fn is_mounted(&self) -> bool {
        self.mounted.is_some()
    }

    /// Fills it but for these bytes, without an error of a write.
    pub fn fill_but(&self, left_bytes: u64) {
        let folder = self.mounted.as_ref().expect("a file system of its own");
        let disk = rustix::fs::statvfs(folder).unwrap();
        let size = disk.f_bavail * disk.f_frsize - left_bytes;
        let zeros = vec![0; usize::try_from(size).unwrap()];
        fs::write(folder.join("filled"), zeros).unwrap();
    }

    /// Takes away what fills it.
    pub fn give_room(&self, process: &Running) {
        match &self.mounted {
            Some(folder) => fs::remove_file(folder.join("filled")).unwrap(),
            None => limit(process, INFINITY),
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        if let Some(folder) = &self.mounted {
            // Lazily: a server that the test still runs has files open there.
            let _ = Command::new("umount").arg("-l").arg(folder).status();
        }
    }
}

fn limit(process: &Running, bytes: u64) {
    let process = i32::try_from(process.id()).unwrap();
    prlimit(process, Resource::FSIZE, Some((bytes, INFINITY)), None).unwrap();
}
