//! Files with an ID on each line.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, BufWriter, Read as _, Seek as _, Write as _},
};

use crate::error::CliError;

/// The lines of a file, or of standard input.
pub struct IdLines {
    name: String,
    lines: Box<dyn BufRead>,
    number: u64,
    /// What was read of standard input, if it is to be read again.
    kept: Option<BufWriter<File>>,
}

impl IdLines {
    /// Begins to read. What comes through standard input is kept in a temporary file if it `is_read_again`.
    ///
    /// # Errors
    /// [`CliError`] if the file cannot be read.
    pub fn open(name: &str, is_read_again: bool) -> Result<Self, CliError> {
        let is_piped = name == STDIN;
        let kept = match is_piped && is_read_again {
            true => Some(BufWriter::new(
                tempfile::tempfile().map_err(|error| unkept(&error))?,
            )),
            false => None,
        };
        Ok(Self {
            lines: match is_piped {
                true => Box::new(BufReader::new(io::stdin())),
                false => open(name)?,
            },
            name: name.to_owned(),
            number: 0,
            kept,
        })
    }

    /// The next line's number and the ID on it, which may be empty; `None` at the end.
    ///
    /// # Errors
    /// [`CliError`] if it cannot be read.
    pub fn next(&mut self) -> Result<Option<(u64, String)>, CliError> {
        let Some(line) = next_line(&mut self.lines, &self.name)? else {
            return Ok(None);
        };
        self.number += 1;
        let id = said(&line, self.number).to_owned();
        if let Some(kept) = &mut self.kept {
            writeln!(kept, "{id}").map_err(|error| unkept(&error))?;
        }
        Ok(Some((self.number, id)))
    }

    /// The name of the file in messages.
    pub fn name(&self) -> &str {
        shown(&self.name)
    }

    /// The same lines once more.
    ///
    /// # Errors
    /// [`CliError`] if they cannot be read.
    pub fn again(self) -> Result<Self, CliError> {
        let lines: Box<dyn BufRead> = match self.kept {
            Some(kept) => {
                let mut file = kept.into_inner().map_err(|error| unkept(error.error()))?;
                file.rewind().map_err(|error| unkept(&error))?;
                Box::new(BufReader::new(file))
            }
            None => open(&self.name)?,
        };
        Ok(Self {
            name: self.name,
            lines,
            number: 0,
            kept: None,
        })
    }
}

fn unkept(error: &io::Error) -> CliError {
    CliError::failed(format!(
        "a temporary file for the IDs cannot be used: {error}"
    ))
}

fn shown(name: &str) -> &str {
    match name {
        STDIN => "standard input",
        name => name,
    }
}

fn open(name: &str) -> Result<Box<dyn BufRead>, CliError> {
    let file = File::open(name).map_err(|error| unreadable(name, &error))?;
    Ok(Box::new(BufReader::new(file)))
}

/// A file that cannot be opened is a usage error; one that fails midway is not.
fn unreadable(name: &str, error: &io::Error) -> CliError {
    use io::ErrorKind::{IsADirectory, NotFound, PermissionDenied};
    let text = format!("{} cannot be read: {error}", shown(name));
    match error.kind() {
        IsADirectory => CliError::usage(format!(
            "{name} is a folder; name a file with an ID on each line"
        )),
        NotFound | PermissionDenied => CliError::Usage(text),
        _ => CliError::Failed(text),
    }
}

/// What a line says: the first one may begin with the mark of its encoding.
fn said(line: &str, number: u64) -> &str {
    let marked = line.strip_prefix('\u{feff}').filter(|_| number == 1);
    marked.unwrap_or(line).trim()
}

/// The next line; bytes that are no UTF-8 are shown as such, and what is too long for an ID is cut.
fn next_line(lines: &mut dyn BufRead, name: &str) -> Result<Option<String>, CliError> {
    let mut line = Vec::new();
    let read = lines
        .take(MAX_LINE)
        .read_until(b'\n', &mut line)
        .map_err(|error| unreadable(name, &error))?;
    if read as u64 == MAX_LINE && line.last() != Some(&b'\n') {
        let skipped = lines.skip_until(b'\n');
        skipped.map_err(|error| unreadable(name, &error))?;
    }
    Ok((read > 0).then(|| String::from_utf8_lossy(&line).into_owned()))
}

/// What names standard input.
const STDIN: &str = "-";
const MAX_LINE: u64 = 1024;

/// How many IDs a request to the server has at most.
pub(super) const CHUNK: usize = 2_000;
