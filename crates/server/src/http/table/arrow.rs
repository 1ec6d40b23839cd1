//! Tables as an Arrow IPC stream: a schema, then a batch of rows for each piece.
//!
//! `time` is a timestamp in UTC at which the row ends: in seconds, in microseconds for steps below a second. Unknown values are null.
//! What stands before the rows in JSON is the schema's metadata.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, RecordBatch, TimestampMicrosecondArray, TimestampSecondArray};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema, TimeUnit};

use super::{Table, TableRows};
use crate::http::body::{PIECE_BYTES, Pieces};

/// The rows of a table, and the writer of their batches.
pub struct ArrowStream<R> {
    rows: R,
    units_per_second: u32,
    schema: Arc<Schema>,
    writer: StreamWriter<Vec<u8>>,
}

impl<R: TableRows> ArrowStream<R> {
    /// Writes the schema.
    ///
    /// # Errors
    /// When Arrow cannot express it, which no table of numbers leads to.
    pub fn new(table: Table<R>) -> Result<Self, ArrowError> {
        let unit = if table.units_per_second <= 1 { TimeUnit::Second } else { TimeUnit::Microsecond };
        let mut fields = vec![Field::new("time", DataType::Timestamp(unit, Some("UTC".into())), false)];
        fields.extend(table.columns.iter().map(|name| Field::new(name, DataType::Float64, true)));
        let metadata: HashMap<String, String> =
            table.head.into_iter().map(|(key, value)| (key, value.to_string())).collect();
        let schema = Arc::new(Schema::new(fields).with_metadata(metadata));
        let writer = StreamWriter::try_new(Vec::new(), &schema)?;
        Ok(ArrowStream { rows: table.rows, units_per_second: table.units_per_second, schema, writer })
    }

    /// Writes the next batch; false when no row is left.
    fn batch(&mut self) -> Result<bool, ArrowError> {
        let width = self.schema.fields().len();
        let mut times = Vec::new();
        let mut columns: Vec<Vec<Option<f64>>> = vec![Vec::new(); width - 1];
        let rows_max = (PIECE_BYTES / (8 * width)).max(1);
        let more = self.rows.each(|time, values| {
            times.push(time);
            for (column, value) in columns.iter_mut().zip(values) {
                column.push((!value.is_nan()).then_some(*value));
            }
            times.len() < rows_max
        });
        if !times.is_empty() {
            let mut arrays = vec![time_array(times, self.units_per_second)];
            arrays.extend(columns.into_iter().map(|column| Arc::new(Float64Array::from(column)) as Arc<_>));
            self.writer.write(&RecordBatch::try_new(Arc::clone(&self.schema), arrays)?)?;
        }
        if !more {
            self.writer.finish()?;
        }
        Ok(more)
    }
}

fn time_array(times: Vec<i64>, units_per_second: u32) -> ArrayRef {
    if units_per_second <= 1 {
        return Arc::new(TimestampSecondArray::from(times).with_timezone("UTC"));
    }
    let in_microseconds = |time: i64| (i128::from(time) * 1_000_000 / i128::from(units_per_second)) as i64;
    let times: Vec<i64> = times.into_iter().map(in_microseconds).collect();
    Arc::new(TimestampMicrosecondArray::from(times).with_timezone("UTC"))
}

impl<R: TableRows> Pieces for ArrowStream<R> {
    fn push(&mut self, out: &mut Vec<u8>) -> bool {
        let more = self.batch().unwrap_or_else(|error| {
            // The stream then lacks its end, which its reader sees.
            tracing::error!(%error, "a table cannot be written as Arrow");
            false
        });
        out.append(self.writer.get_mut());
        more
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float64Type, TimestampMicrosecondType, TimestampSecondType};
    use arrow_ipc::reader::StreamReader;

    use super::super::tests::table_of;
    use super::*;

    fn batches(units_per_second: u32, rows: Vec<(i64, Vec<f64>)>) -> (Schema, Vec<RecordBatch>, usize) {
        let mut stream = ArrowStream::new(table_of(units_per_second, rows)).unwrap();
        let (mut bytes, mut pieces) = (Vec::new(), 1);
        while stream.push(&mut bytes) {
            pieces += 1;
        }
        let reader = StreamReader::try_new(bytes.as_slice(), None).unwrap();
        let schema = reader.schema().as_ref().clone();
        (schema, reader.map(Result::unwrap).collect(), pieces)
    }

    #[test]
    fn rows_are_read_back_with_their_unknown_values() {
        let rows = vec![(10, vec![0.1, f64::NAN]), (20, vec![f64::NEG_INFINITY, 1e300])];
        let (schema, batches, _) = batches(1, rows);
        assert_eq!(schema.metadata()["step"], "10");
        let [batch] = &batches[..] else { panic!("{} batches", batches.len()) };
        assert_eq!(batch.column(0).as_primitive::<TimestampSecondType>().values()[..], [10, 20]);
        let (first, second) =
            (batch.column(1).as_primitive::<Float64Type>(), batch.column(2).as_primitive::<Float64Type>());
        assert_eq!(first.values()[..], [0.1, f64::NEG_INFINITY]);
        assert!(second.is_null(0) && second.value(1) == 1e300);
    }

    #[test]
    fn long_tables_come_in_pieces_and_short_steps_in_microseconds() {
        let rows: Vec<_> = (0..20_000).map(|row| (row, vec![row as f64, 1.5])).collect();
        let (_, batches, pieces) = batches(10, rows);
        assert!(pieces > 3 && batches.len() > 3, "{pieces} pieces, {} batches", batches.len());
        let times: Vec<i64> = batches
            .iter()
            .flat_map(|batch| batch.column(0).as_primitive::<TimestampMicrosecondType>().values().to_vec())
            .collect();
        assert_eq!(times, (0..20_000).map(|row| row * 100_000).collect::<Vec<_>>());
    }

    #[test]
    fn a_table_without_rows_is_a_stream() {
        let (schema, batches, _) = batches(1, Vec::new());
        assert_eq!((schema.fields().len(), batches.len()), (3, 0));
    }
}
