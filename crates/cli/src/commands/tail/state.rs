use std::{
    fs::{self, File, TryLockError},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::error::CliError;

/// The file that keeps a position. It is whole at any time: a new one replaces it.
#[derive(Debug)]
pub struct State {
    path: PathBuf,
    /// The position that is kept; `None` at first.
    pub position: Option<String>,
    _lock: File,
}

/// What is in it.
#[derive(Serialize, Deserialize)]
struct Kept {
    position: String,
}

impl State {
    /// Reads it, if it is there. Nobody else may use it meanwhile.
    ///
    /// # Errors
    /// [`CliError`] if it is something else, or in use.
    pub fn open(path: PathBuf) -> Result<Self, CliError> {
        let lock = lock(&beside(&path, "lock"))?;
        let position = match fs::read_to_string(&path) {
            Ok(text) => {
                let kept: Kept = serde_json::from_str(&text).map_err(|_| {
                    CliError::usage(format!(
                        "{} is no state of `driftline tail`; name another file with --state",
                        path.display()
                    ))
                })?;
                Some(kept.position)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(wrong(&path, &error)),
        };
        Ok(Self {
            path,
            position,
            _lock: lock,
        })
    }

    /// Keeps a position.
    ///
    /// # Errors
    /// [`CliError`] if it cannot be written: the one before is kept.
    pub fn keep(&mut self, position: &str) -> Result<(), CliError> {
        if self.position.as_deref() == Some(position) {
            return Ok(());
        }
        let kept = Kept {
            position: position.to_owned(),
        };
        let part = self.beside("part");
        let write = || {
            let mut file = File::create(&part)?;
            serde_json::to_writer(&mut file, &kept)?;
            file.write_all(b"\n")?;
            // Or a power cut could leave an empty file under the name.
            file.sync_data()?;
            fs::rename(&part, &self.path)
        };
        write().map_err(|error: io::Error| wrong(&self.path, &error))?;
        self.position = Some(kept.position);
        Ok(())
    }

    /// The path of a file that belongs to it.
    pub fn beside(&self, ending: &str) -> PathBuf {
        beside(&self.path, ending)
    }
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{ending}"));
    name.into()
}

fn lock(path: &Path) -> Result<File, CliError> {
    let file = File::create(path).map_err(|error| wrong(path, &error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(CliError::locked(format!(
            "another `driftline tail` uses this --state ({} is locked); name another file",
            path.display()
        ))),
        Err(TryLockError::Error(error)) => Err(wrong(path, &error)),
    }
}

fn wrong(path: &Path, error: &io::Error) -> CliError {
    let path = path.display();
    CliError::failed(format!(
        "the state {path} cannot be kept: {error}; name another file with --state"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_kept_and_found_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("alerts");
        let mut state = State::open(path.clone()).unwrap();
        assert_eq!(state.position, None);
        state.keep("1:5").unwrap();
        let locked = State::open(path.clone()).unwrap_err().to_string();
        assert!(locked.contains("another `driftline tail`"), "{locked}");
        drop(state);
        assert_eq!(State::open(path).unwrap().position.as_deref(), Some("1:5"));
    }

    #[test]
    fn another_file_is_not_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.txt");
        fs::write(&path, "buy milk").unwrap();
        let refused = State::open(path.clone()).unwrap_err();
        assert!(matches!(refused, CliError::Usage(_)), "{refused}");
        assert_eq!(fs::read_to_string(path).unwrap(), "buy milk");
    }
}
