//! Files that say what became of each ID.

use std::{
    fs::File,
    io::{self, BufWriter, Write as _},
    path::{Path, PathBuf},
};

use driftline_core::tracking::TrackOutcome;
use driftline_server::admin::ListOutcomes;
use serde_json::json;
use tempfile::TempPath;

use super::ids::IdLines;
use crate::{error::CliError, store_access::StoreAccess};

/// The files to write, which take their names once they are whole.
pub struct Outcomes {
    missing: Option<Part>,
    all: Option<Part>,
}

impl Outcomes {
    /// Creates the files that are asked for.
    ///
    /// # Errors
    /// [`CliError::Usage`] if one cannot be created.
    pub fn create(missing: Option<&Path>, all: Option<&Path>) -> Result<Option<Self>, CliError> {
        if missing.is_none() && all.is_none() {
            return Ok(None);
        }
        Ok(Some(Self {
            missing: missing.map(Part::create).transpose()?,
            all: all.map(Part::create).transpose()?,
        }))
    }

    /// Writes what became of each line.
    ///
    /// # Errors
    /// [`CliError`] if the store does not answer or a file cannot be written.
    pub async fn write(
        mut self,
        mut lines: IdLines,
        instance: &str,
        store_access: &mut StoreAccess,
    ) -> Result<(), CliError> {
        loop {
            let mut ids = Vec::with_capacity(CHUNK);
            while ids.len() < CHUNK
                && let Some((_, id)) = lines.next()?
            {
                if !id.is_empty() {
                    ids.push(id);
                }
            }
            if ids.is_empty() {
                break;
            }
            let request = ListOutcomes {
                instance: instance.to_owned(),
                ids: ids.clone(),
            };
            for (id, outcome) in ids.iter().zip(store_access.execute(request).await?) {
                self.take(id, outcome)?;
            }
        }
        for part in [self.missing, self.all].into_iter().flatten() {
            part.finish()?;
        }
        Ok(())
    }

    fn take(&mut self, id: &str, outcome: TrackOutcome) -> Result<(), CliError> {
        use TrackOutcome::{Deleted, Found, Waiting};
        if let Some(missing) = &mut self.missing
            && !matches!(outcome, Found | Deleted | Waiting)
        {
            missing.line(id)?;
        }
        match &mut self.all {
            Some(all) => all.line(&json!({ "id": id, "outcome": outcome }).to_string()),
            None => Ok(()),
        }
    }
}

/// A file under another name until it is whole. It is removed if it does not get there.
struct Part {
    path: PathBuf,
    part: TempPath,
    file: BufWriter<File>,
}

impl Part {
    fn create(path: &Path) -> Result<Self, CliError> {
        let mut name = path.as_os_str().to_owned();
        name.push(".part");
        let part = PathBuf::from(name);
        let created = File::create(&part).and_then(|file| {
            let removed_unless_kept = TempPath::try_from_path(&part)?;
            Ok((file, removed_unless_kept))
        });
        let (file, part) = created.map_err(|error| {
            CliError::usage(format!("{} cannot be written: {error}", part.display()))
        })?;
        Ok(Self {
            path: path.to_owned(),
            part,
            file: BufWriter::new(file),
        })
    }

    fn line(&mut self, text: &str) -> Result<(), CliError> {
        writeln!(self.file, "{text}").map_err(|error| unwritable(&self.path, &error))
    }

    fn finish(self) -> Result<(), CliError> {
        let (path, part) = (self.path, self.part);
        let file = self.file.into_inner().map_err(|error| error.into_error());
        file.and_then(|file| file.sync_all())
            .and_then(|()| part.persist(&path).map_err(|error| error.error))
            .map_err(|error| unwritable(&path, &error))
    }
}

fn unwritable(path: &Path, error: &io::Error) -> CliError {
    CliError::failed(format!("{} cannot be written: {error}", path.display()))
}

const CHUNK: usize = 1_000;
