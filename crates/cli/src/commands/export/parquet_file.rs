//! Posts as Apache Parquet.

use std::{fs::File, io::Write, sync::Arc};

use parquet::{
    basic::{Compression, LogicalType, Repetition, TimeUnit, Type as PhysicalType, ZstdLevel},
    column::writer::ColumnWriter,
    data_type::ByteArray,
    errors::ParquetError,
    file::{
        properties::WriterProperties,
        reader::{FileReader as _, SerializedFileReader},
        writer::SerializedFileWriter,
    },
    record::{Field, reader::RowIter},
    schema::types::Type,
};

use super::{
    columns::{COLUMNS, Column, Kind, Value, place, row},
    record::Record,
};

/// A file of Parquet that is being written: a group of rows at a time.
pub struct ParquetFile<W: Write + Send> {
    writer: SerializedFileWriter<W>,
    /// The values of the rows of the next group, by column.
    columns: Vec<Vec<Value>>,
    bytes: usize,
}

impl<W: Write + Send> ParquetFile<W> {
    /// Begins a file.
    ///
    /// # Errors
    /// That of the write.
    pub fn new(out: W) -> Result<Self, ParquetError> {
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_created_by(concat!("driftline ", env!("CARGO_PKG_VERSION")).to_owned())
            .build();
        let fields: Result<Vec<_>, _> = COLUMNS.iter().map(field).collect();
        let schema = Type::group_type_builder("post")
            .with_fields(fields?)
            .build()?;
        Ok(Self {
            writer: SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))?,
            columns: COLUMNS.iter().map(|_| Vec::new()).collect(),
            bytes: 0,
        })
    }

    /// Adds a post.
    ///
    /// # Errors
    /// That of the write.
    pub fn write(&mut self, record: &Record) -> Result<(), ParquetError> {
        self.write_row(row(record))
    }

    /// Adds a row.
    ///
    /// # Errors
    /// That of the write.
    pub fn write_row(&mut self, row: [Value; COLUMNS.len()]) -> Result<(), ParquetError> {
        for (values, value) in self.columns.iter_mut().zip(row) {
            self.bytes += match &value {
                Value::Text(text) => text.len(),
                _ => size_of::<Value>(),
            };
            values.push(value);
        }
        if self.bytes > GROUP_BYTES {
            self.write_group()?;
        }
        Ok(())
    }

    /// Ends the file.
    ///
    /// # Errors
    /// That of the write.
    pub fn end(mut self) -> Result<W, ParquetError> {
        if !self.columns[0].is_empty() {
            self.write_group()?;
        }
        self.writer.into_inner()
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        let mut group = self.writer.next_row_group()?;
        for (column, values) in COLUMNS.iter().zip(&mut self.columns) {
            let Some(mut writer) = group.next_column()? else {
                break;
            };
            let values = std::mem::take(values);
            let levels: Vec<i16> = values
                .iter()
                .map(|value| i16::from(*value != Value::Null))
                .collect();
            let levels = column.is_optional.then_some(&*levels);
            let present = values.into_iter();
            match writer.untyped() {
                ColumnWriter::Int64ColumnWriter(writer) => {
                    let numbers = present.filter_map(|value| match value {
                        Value::Int(number) => Some(number),
                        _ => None,
                    });
                    let numbers: Vec<i64> = numbers.collect();
                    writer.write_batch(&numbers, levels, None)?;
                }
                ColumnWriter::BoolColumnWriter(writer) => {
                    let bools = present.filter_map(|value| match value {
                        Value::Bool(is_so) => Some(is_so),
                        _ => None,
                    });
                    let bools: Vec<bool> = bools.collect();
                    writer.write_batch(&bools, levels, None)?;
                }
                ColumnWriter::ByteArrayColumnWriter(writer) => {
                    let texts = present.filter_map(|value| match value {
                        Value::Text(text) => Some(ByteArray::from(text.into_bytes())),
                        _ => None,
                    });
                    let texts: Vec<ByteArray> = texts.collect();
                    writer.write_batch(&texts, levels, None)?;
                }
                _ => return Err(ParquetError::General("a column of another type".to_owned())),
            }
            writer.close()?;
        }
        group.close()?;
        self.bytes = 0;
        Ok(())
    }
}

/// The rows of a file, one after the other.
pub struct ParquetRows(RowIter<'static>);

impl ParquetRows {
    /// Opens a file, for some of its columns.
    ///
    /// # Errors
    /// That of the read, or that its columns are not these.
    pub fn open(file: File, is_read: impl Fn(&str) -> bool) -> Result<Self, ParquetError> {
        let reader = SerializedFileReader::new(file)?;
        let has_all = {
            let schema = reader.metadata().file_metadata().schema();
            let names = schema.get_fields().iter().map(|field| field.name());
            names.eq(COLUMNS.iter().map(|column| column.name))
        };
        if !has_all {
            let text = "the file has other columns than this program writes".to_owned();
            return Err(ParquetError::General(text));
        }
        let fields: Result<Vec<_>, _> = COLUMNS
            .iter()
            .filter(|column| is_read(column.name))
            .map(field)
            .collect();
        let schema = Type::group_type_builder("post")
            .with_fields(fields?)
            .build()?;
        let rows = RowIter::from_file_into(Box::new(reader)).project(Some(schema))?;
        Ok(Self(rows))
    }

    /// The next row, nulls where a column is not read; `None` at the end.
    ///
    /// # Errors
    /// That of the read.
    pub fn next(&mut self) -> Result<Option<[Value; COLUMNS.len()]>, ParquetError> {
        let Some(found) = self.0.next() else {
            return Ok(None);
        };
        let mut row = [const { Value::Null }; COLUMNS.len()];
        for (name, field) in found?.into_columns() {
            if let Some(value) = row.get_mut(place(&name)) {
                *value = match field {
                    Field::Null => Value::Null,
                    Field::Bool(is_so) => Value::Bool(is_so),
                    Field::Long(number) | Field::TimestampMillis(number) => Value::Int(number),
                    Field::Str(text) => Value::Text(text),
                    _ => {
                        let text = format!("the column {name} is of another type");
                        return Err(ParquetError::General(text));
                    }
                };
            }
        }
        Ok(Some(row))
    }
}

fn field(column: &Column) -> Result<Arc<Type>, ParquetError> {
    let (physical, logical) = match column.kind {
        Kind::Int => (PhysicalType::INT64, None),
        Kind::Time => (
            PhysicalType::INT64,
            Some(LogicalType::timestamp(true, TimeUnit::MILLIS)),
        ),
        Kind::Bool => (PhysicalType::BOOLEAN, None),
        Kind::Text => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
    };
    let repetition = match column.is_optional {
        true => Repetition::OPTIONAL,
        false => Repetition::REQUIRED,
    };
    let field = Type::primitive_type_builder(column.name, physical)
        .with_repetition(repetition)
        .with_logical_type(logical)
        .build()?;
    Ok(Arc::new(field))
}

/// After so many bytes of values a group of rows is written: what is held in memory.
const GROUP_BYTES: usize = 32 << 20;
