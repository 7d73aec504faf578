//! Writing posts as lines.

use std::io::{self, BufWriter, Write};

use jiff::Timestamp;
use serde::Serialize;

use super::{
    columns::{COLUMNS, Kind, Value, row},
    format::Format,
    record::Record,
};
use crate::error::CliError;

/// Posts as lines of a format.
pub enum LineWriter<W: Write> {
    /// One JSON object a line.
    Jsonl(BufWriter<W>),
    /// Comma-separated values.
    Csv(Box<csv::Writer<W>>),
}

impl<W: Write> LineWriter<W> {
    /// Begins.
    ///
    /// # Errors
    /// [`CliError::Usage`] for a format that has no lines.
    pub fn new(format: Format, out: W) -> Result<Self, CliError> {
        match format {
            Format::Jsonl => Ok(Self::Jsonl(BufWriter::new(out))),
            Format::Csv => {
                let mut writer = csv::Writer::from_writer(out);
                let names = COLUMNS.iter().map(|column| column.name);
                let written = writer.write_record(names);
                written.map_err(|error| CliError::failed(format!("the export: {error}")))?;
                Ok(Self::Csv(Box::new(writer)))
            }
            #[cfg(feature = "parquet")]
            Format::Parquet => Err(CliError::usage(
                "Parquet files have no lines; name a folder for them with --out",
            )),
        }
    }

    /// Writes a post.
    ///
    /// # Errors
    /// That of the write.
    pub fn write(&mut self, record: &Record) -> io::Result<()> {
        match self {
            Self::Jsonl(out) => {
                serde_json::to_writer(&mut *out, record)?;
                out.write_all(b"\n")
            }
            Self::Csv(writer) => {
                let values = row(record);
                let cells = COLUMNS
                    .iter()
                    .zip(values)
                    .map(|(column, value)| match value {
                        Value::Null => String::new(),
                        Value::Bool(is_so) => is_so.to_string(),
                        Value::Text(text) => text,
                        Value::Int(number) if column.kind == Kind::Time => moment(number),
                        Value::Int(number) => number.to_string(),
                    });
                writer.write_record(cells).map_err(io::Error::other)
            }
        }
    }

    /// Writes a line of JSON that is no post.
    ///
    /// # Errors
    /// That of the write, or that the format has no such lines.
    pub fn write_json(&mut self, value: &impl Serialize) -> io::Result<()> {
        match self {
            Self::Jsonl(out) => {
                serde_json::to_writer(&mut *out, value)?;
                out.write_all(b"\n")
            }
            Self::Csv(_) => Err(io::Error::other("a table holds posts only")),
        }
    }

    /// Writes a whole line as it is.
    ///
    /// # Errors
    /// That of the write, or that the format has other lines.
    pub fn write_raw(&mut self, line: &[u8]) -> io::Result<()> {
        match self {
            Self::Jsonl(out) => out.write_all(line),
            Self::Csv(_) => Err(io::Error::other("a table has no lines of JSON")),
        }
    }

    /// Writes a row of a table as it is.
    ///
    /// # Errors
    /// That of the write, or that the format is no table.
    pub fn write_cells(&mut self, cells: &csv::StringRecord) -> io::Result<()> {
        match self {
            Self::Jsonl(_) => Err(io::Error::other("lines of JSON have no cells")),
            Self::Csv(writer) => writer.write_record(cells).map_err(io::Error::other),
        }
    }

    /// Ends, and gives back what it wrote to.
    ///
    /// # Errors
    /// That of the last write.
    pub fn end(self) -> io::Result<W> {
        match self {
            Self::Jsonl(out) => out.into_inner().map_err(io::Error::from),
            Self::Csv(writer) => writer
                .into_inner()
                .map_err(|error| io::Error::other(error.to_string())),
        }
    }

    /// Hands on what is buffered.
    ///
    /// # Errors
    /// That of the write.
    pub fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Jsonl(out) => out.flush(),
            Self::Csv(writer) => writer.flush(),
        }
    }
}

/// A moment by RFC 3339.
pub fn moment(unix_ms: i64) -> String {
    let moment = Timestamp::from_millisecond(unix_ms);
    moment.map_or_else(
        |_| unix_ms.to_string(),
        |moment| moment.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string(),
    )
}
