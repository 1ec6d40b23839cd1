//! Arrow IPC and Parquet: batches of columns.

use std::io::Write;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, StringArray, TimestampSecondArray};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema, TimeUnit};
use parquet::arrow::ArrowWriter;

use crate::error::QueryError;
use crate::format::{Block, Format, Heading, Sink};

/// Lines per batch: some megabytes. Guessed.
const LINES_MAX: usize = 1 << 16;

/// A sink for one of the two formats.
pub(crate) fn sink<'w>(
    format: Format,
    heading: &Heading,
    out: &'w mut (dyn Write + Send),
) -> Result<Box<dyn Sink + 'w>, QueryError> {
    let mut fields = vec![Field::new(heading.key, DataType::Utf8, false)];
    fields.extend(heading.labels.iter().map(|name| Field::new(name, DataType::Utf8, true)));
    if heading.times {
        fields.push(Field::new("time", DataType::Timestamp(TimeUnit::Second, Some("UTC".into())), false));
    }
    fields.extend(heading.columns.iter().map(|name| Field::new(name, DataType::Float64, true)));
    fields.extend(heading.texts.iter().map(|name| Field::new(name, DataType::Utf8, false)));
    let schema = Arc::new(Schema::new(fields));
    let writer = if format == Format::Arrow {
        Writer::Arrow(Box::new(StreamWriter::try_new(out, &schema).map_err(arrow_failed)?))
    } else {
        let writer = ArrowWriter::try_new(out, Arc::clone(&schema), None).map_err(parquet_failed)?;
        Writer::Parquet(Some(Box::new(writer)))
    };
    let columns = vec![Vec::new(); heading.columns.len()];
    let texts = vec![Vec::new(); heading.texts.len()];
    let labels = vec![Vec::new(); heading.labels.len()];
    Ok(Box::new(Columnar {
        schema,
        has_times: heading.times,
        writer,
        names: Vec::new(),
        labels,
        times: Vec::new(),
        columns,
        texts,
    }))
}

/// A growing batch, and where it is written.
struct Columnar<'w> {
    schema: Arc<Schema>,
    has_times: bool,
    writer: Writer<'w>,
    names: Vec<String>,
    labels: Vec<Vec<Option<String>>>,
    times: Vec<i64>,
    columns: Vec<Vec<f64>>,
    texts: Vec<Vec<String>>,
}

enum Writer<'w> {
    Arrow(Box<StreamWriter<&'w mut (dyn Write + Send)>>),
    /// `None` once it is finished.
    Parquet(Option<Box<ArrowWriter<&'w mut (dyn Write + Send)>>>),
}

impl Columnar<'_> {
    fn flush(&mut self) -> Result<(), QueryError> {
        if self.names.is_empty() {
            return Ok(());
        }
        let mut arrays: Vec<ArrayRef> = vec![Arc::new(StringArray::from(std::mem::take(&mut self.names)))];
        for labels in &mut self.labels {
            arrays.push(Arc::new(StringArray::from(std::mem::take(labels))));
        }
        if self.has_times {
            let times = TimestampSecondArray::from(std::mem::take(&mut self.times)).with_timezone("UTC");
            arrays.push(Arc::new(times));
        }
        for column in &mut self.columns {
            let known = column.drain(..).map(|value| (!value.is_nan()).then_some(value));
            arrays.push(Arc::new(known.collect::<Float64Array>()));
        }
        for texts in &mut self.texts {
            arrays.push(Arc::new(StringArray::from(std::mem::take(texts))));
        }
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), arrays).map_err(arrow_failed)?;
        match &mut self.writer {
            Writer::Arrow(writer) => writer.write(&batch).map_err(arrow_failed),
            Writer::Parquet(Some(writer)) => writer.write(&batch).map_err(parquet_failed),
            Writer::Parquet(None) => Ok(()),
        }
    }
}

impl Sink for Columnar<'_> {
    fn add(&mut self, block: &Block) -> Result<(), QueryError> {
        self.names.extend(std::iter::repeat_n(block.name.clone(), block.lines()));
        for (column, label) in self.labels.iter_mut().zip(&block.labels) {
            let label = Some(label).filter(|label| !label.is_empty());
            column.extend(std::iter::repeat_n(label.cloned(), block.lines()));
        }
        self.times.extend_from_slice(&block.times);
        for (column, values) in self.columns.iter_mut().zip(&block.columns) {
            column.extend_from_slice(values);
        }
        for (column, text) in self.texts.iter_mut().zip(&block.texts) {
            column.push(text.clone());
        }
        if self.names.len() >= LINES_MAX { self.flush() } else { Ok(()) }
    }

    fn finish(&mut self) -> Result<(), QueryError> {
        self.flush()?;
        match &mut self.writer {
            Writer::Arrow(writer) => writer.finish().map_err(arrow_failed),
            Writer::Parquet(writer) => match writer.take() {
                Some(writer) => writer.close().map(|_| ()).map_err(parquet_failed),
                None => Ok(()),
            },
        }
    }
}

fn arrow_failed(error: ArrowError) -> QueryError {
    QueryError::Output(std::io::Error::other(error))
}

fn parquet_failed(error: parquet::errors::ParquetError) -> QueryError {
    QueryError::Output(std::io::Error::other(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::Float64Type;
    use arrow_ipc::reader::StreamReader;

    fn written(format: Format, blocks: usize) -> Vec<u8> {
        let (columns, texts) = (vec!["in".into()], Vec::new());
        let labels = Vec::new();
        let heading = Heading { key: "rrd", labels, times: true, columns, texts, name_bytes_max: 1 };
        let mut out: Vec<u8> = Vec::new();
        let mut sink = sink(format, &heading, &mut out).expect("a sink");
        for number in 0..blocks {
            let name = format!("r{number}");
            let (times, columns) = (vec![10, 20], vec![vec![number as f64, f64::NAN]]);
            let block = Block { name, times, columns, ..Block::default() };
            sink.add(&block).expect("written");
        }
        sink.finish().expect("finished");
        drop(sink);
        out
    }

    #[test]
    fn arrow_reads_back() {
        let blocks = LINES_MAX;
        let bytes = written(Format::Arrow, blocks);
        let reader = StreamReader::try_new(bytes.as_slice(), None).expect("a stream");
        let (mut lines, mut unknown, mut sum) = (0, 0, 0.0);
        for batch in reader {
            let batch = batch.expect("a batch");
            let values = batch.column(2).as_primitive::<Float64Type>();
            lines += batch.num_rows();
            unknown += values.null_count();
            sum += values.iter().flatten().sum::<f64>();
        }
        assert_eq!((lines, unknown), (2 * blocks, blocks));
        assert_eq!(sum, (blocks * (blocks - 1) / 2) as f64);
    }

    #[test]
    fn parquet_has_all_lines_and_both_ends() {
        let bytes = written(Format::Parquet, 3);
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
        let reader = parquet::arrow::arrow_reader::ArrowReaderMetadata::load(
            &std::fs::File::open(kept(&bytes).path()).expect("a file"),
            Default::default(),
        );
        let metadata = reader.expect("metadata");
        assert_eq!(metadata.metadata().file_metadata().num_rows(), 6);
        assert_eq!(metadata.schema().field(1).name(), "time");
    }

    fn kept(bytes: &[u8]) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().expect("a file");
        file.write_all(bytes).expect("written");
        file
    }
}
