//! One Parquet file: columns name, ds, cf, step (seconds), time (milliseconds, UTC), value; sorted in that order.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::builder::StringDictionaryBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int32Type, TimestampMillisecondType};
use arrow_array::{ArrayRef, Float64Array, RecordBatch, TimestampMillisecondArray};
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{
    ArrowReaderOptions, ParquetRecordBatchReader, ParquetRecordBatchReaderBuilder,
};
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::{Compression, Encoding};
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::WriterProperties;
use parquet::schema::types::ColumnPath;
use rrd::definition::Cf;

use super::{DatasetError, Group};
use crate::rows::{MS, Run};

/// Rows of a batch in memory.
const BATCH_ROWS: usize = 1 << 16;
/// Rows of a row group: what DuckDB and Spark give one thread at least, some megabytes compressed.
const GROUP_ROWS: usize = 1 << 20;
/// The key of the file's metadata that tells from what it was made.
const SOURCE: &str = "roundel.source";
/// The columns, in order.
const COLUMNS: [&str; 6] = ["name", "ds", "cf", "step", "time", "value"];

fn parquet_failed(path: &Path) -> impl Fn(parquet::errors::ParquetError) -> DatasetError {
    move |error| DatasetError::Parquet(path.to_path_buf(), error.to_string())
}

/// A file while it is written.
pub(super) struct Writer {
    path: PathBuf,
    schema: Arc<Schema>,
    writer: ArrowWriter<File>,
    texts: [StringDictionaryBuilder<Int32Type>; 3],
    steps: Vec<f64>,
    times: Vec<i64>,
    values: Vec<f64>,
    rows: u64,
}

impl Writer {
    /// Begins a file; `source` is kept in it, see [`Reader::source`].
    pub fn new(path: &Path, source: &str) -> Result<Self, DatasetError> {
        let text = || DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
        let utc = DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()));
        let types = [text(), text(), text(), DataType::Float64, utc, DataType::Float64];
        let fields = COLUMNS.iter().zip(types).map(|(name, kind)| Field::new(*name, kind, false));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let column = |name: &str| ColumnPath::from(name);
        let sorting =
            (0..5).map(|column_idx| SortingColumn { column_idx, descending: false, nulls_first: false });
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_max_row_group_row_count(Some(GROUP_ROWS))
            .set_column_dictionary_enabled(column("time"), false)
            .set_column_encoding(column("time"), Encoding::DELTA_BINARY_PACKED)
            .set_sorting_columns(Some(sorting.collect()))
            .set_created_by(concat!("roundel ", env!("CARGO_PKG_VERSION")).to_string())
            .set_key_value_metadata(Some(vec![KeyValue::new(SOURCE.to_string(), source.to_string())]))
            .build();
        let file = File::create(path).map_err(|error| DatasetError::Io(path.to_path_buf(), error))?;
        // Dictionaries are how texts are written, not what readers are to see.
        let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
        let writer = ArrowWriter::try_new_with_options(file, Arc::clone(&schema), options)
            .map_err(parquet_failed(path))?;
        Ok(Writer {
            path: path.to_path_buf(),
            schema,
            writer,
            texts: std::array::from_fn(|_| StringDictionaryBuilder::new()),
            steps: Vec::new(),
            times: Vec::new(),
            values: Vec::new(),
            rows: 0,
        })
    }

    /// Adds a group; groups come in the order of their keys.
    pub fn add(&mut self, group: &Group) -> Result<(), DatasetError> {
        for run in &group.runs {
            let mut from = 0;
            while from < run.times.len() {
                let count = (run.times.len() - from).min(BATCH_ROWS - self.times.len());
                for (column, text) in self.texts.iter_mut().zip([&*group.name, &group.ds, group.cf.name()]) {
                    column
                        .append_n(text, count)
                        .map_err(|error| DatasetError::Parquet(self.path.clone(), error.to_string()))?;
                }
                self.steps.extend(std::iter::repeat_n(run.step as f64 / MS as f64, count));
                self.times.extend_from_slice(&run.times[from..from + count]);
                self.values.extend_from_slice(&run.values[from..from + count]);
                from += count;
                if self.times.len() == BATCH_ROWS {
                    self.flush()?;
                }
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), DatasetError> {
        self.rows += self.times.len() as u64;
        let mut columns: Vec<ArrayRef> = Vec::with_capacity(COLUMNS.len());
        for text in &mut self.texts {
            columns.push(Arc::new(text.finish()));
        }
        columns.push(Arc::new(Float64Array::from(std::mem::take(&mut self.steps))));
        let times = TimestampMillisecondArray::from(std::mem::take(&mut self.times)).with_timezone("UTC");
        columns.push(Arc::new(times));
        columns.push(Arc::new(Float64Array::from(std::mem::take(&mut self.values))));
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns)
            .map_err(|error| DatasetError::Parquet(self.path.clone(), error.to_string()))?;
        self.writer.write(&batch).map_err(parquet_failed(&self.path))
    }

    /// Completes the file on the disk; returns its number of rows.
    pub fn finish(mut self) -> Result<u64, DatasetError> {
        self.flush()?;
        let file = self.writer.into_inner().map_err(parquet_failed(&self.path))?;
        file.sync_all().map_err(|error| DatasetError::Io(self.path, error))?;
        Ok(self.rows)
    }
}

/// A file that an export wrote before, group by group.
pub(super) struct Reader {
    path: PathBuf,
    source: Option<String>,
    batches: ParquetRecordBatchReader,
    batch: Option<RecordBatch>,
    /// The next row of the batch.
    at: usize,
}

impl Reader {
    /// Begins to read.
    pub fn new(file: File, path: &Path) -> Result<Self, DatasetError> {
        let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
        let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(file, options)
            .map_err(parquet_failed(path))?;
        let names: Vec<&str> = builder.schema().fields().iter().map(|field| field.name().as_str()).collect();
        if names != COLUMNS {
            let why = format!("it has the columns {} and not {}", names.join(", "), COLUMNS.join(", "));
            return Err(DatasetError::Parquet(path.to_path_buf(), why));
        }
        let pairs = builder.metadata().file_metadata().key_value_metadata();
        let source = pairs.and_then(|pairs| pairs.iter().find(|pair| pair.key == SOURCE)?.value.clone());
        let batches = builder.with_batch_size(BATCH_ROWS).build().map_err(parquet_failed(path))?;
        Ok(Reader { path: path.to_path_buf(), source, batches, batch: None, at: 0 })
    }

    /// What the writer was told that the file is made from.
    pub fn source(&self) -> Option<&String> {
        self.source.as_ref()
    }

    /// The rows from the current one on that belong to `group`, or those of the group that begins there.
    fn take(&mut self, group: &mut Option<Group>) -> Result<bool, DatasetError> {
        let bad = |why: &str| DatasetError::Parquet(self.path.clone(), why.to_string());
        let Some(batch) = &self.batch else { return Ok(false) };
        let text = |column: usize| batch.column(column).as_string_opt::<i32>();
        let (Some(names), Some(sources), Some(functions)) = (text(0), text(1), text(2)) else {
            return Err(bad("its columns of texts have other types"));
        };
        let step = batch.column(3).as_primitive_opt::<Float64Type>();
        let time = batch.column(4).as_primitive_opt::<TimestampMillisecondType>();
        let value = batch.column(5).as_primitive_opt::<Float64Type>();
        let (Some(steps), Some(times), Some(values)) = (step, time, value) else {
            return Err(bad("its columns of numbers have other types"));
        };
        while self.at < batch.num_rows() {
            let row = self.at;
            let key = (names.value(row), sources.value(row), functions.value(row));
            let same = group.as_ref().map(|group| group.key() == key);
            if same == Some(false) {
                return Ok(true);
            }
            let group = match group {
                Some(group) => group,
                None => {
                    let cf = Cf::from_name(key.2).ok_or_else(|| bad("it has an unknown function"))?;
                    let (name, ds) = (key.0.to_string(), key.1.to_string());
                    group.insert(Group { name, ds, cf, runs: Vec::new() })
                }
            };
            let step = (steps.value(row) * MS as f64).round() as i64;
            if group.runs.last().is_none_or(|run| run.step != step) {
                let (ds, cf) = (group.ds.clone(), group.cf);
                group.runs.push(Run { ds, cf, step, times: Vec::new(), values: Vec::new(), newest: 0 });
            }
            if let Some(run) = group.runs.last_mut() {
                run.times.push(times.value(row));
                run.values.push(values.value(row));
            }
            self.at += 1;
        }
        self.batch = None;
        Ok(false)
    }
}

impl Iterator for Reader {
    type Item = Result<Group, DatasetError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut group = None;
        loop {
            if self.batch.is_none() {
                match self.batches.next() {
                    Some(Ok(batch)) => (self.batch, self.at) = (Some(batch), 0),
                    Some(Err(error)) => {
                        return Some(Err(DatasetError::Parquet(self.path.clone(), error.to_string())));
                    }
                    None => return group.map(Ok),
                }
            }
            match self.take(&mut group) {
                Ok(true) => return group.map(Ok),
                Ok(false) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }
}
