//! Series that something else has computed (PromQL, Graphite), in the forms of a query: a line for each point.

use std::collections::BTreeSet;
use std::io::Write;

use crate::error::QueryError;
use crate::format::{Block, Format, Heading, sink};

/// What the columns of all series are called; a label of such a name gets [`PREFIX`].
const COLUMNS: [&str; 3] = ["series", "time", "value"];
/// Before the name of a label that a column has already.
const PREFIX: &str = "label_";

/// A series.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// What it is called, for people.
    pub name: String,
    /// Its labels, each once; in all forms but the table, each is a column.
    pub labels: Vec<(String, String)>,
    /// Seconds since the epoch, ascending.
    pub times: Vec<i64>,
    /// The values at these times, as many; NaN is unknown.
    pub values: Vec<f64>,
}

/// Writes series in their order.
///
/// # Errors
/// When the answer cannot be written, or the form is not compiled in.
pub fn write_series(format: Format, all: &[Series], out: &mut (dyn Write + Send)) -> Result<(), QueryError> {
    let names: BTreeSet<&str> =
        all.iter().flat_map(|series| &series.labels).map(|(name, _)| &**name).collect();
    let column = |name: &&str| match COLUMNS.contains(name) {
        true => format!("{PREFIX}{name}"),
        false => (*name).to_owned(),
    };
    let heading = Heading {
        key: COLUMNS[0],
        labels: names.iter().map(column).collect(),
        times: true,
        columns: vec![COLUMNS[2].to_owned()],
        texts: Vec::new(),
        name_bytes_max: all.iter().map(|series| series.name.len()).max().unwrap_or(0),
    };
    let mut sink = sink(format, heading, out)?;
    for series in all {
        let value = |name: &&str| {
            let label = series.labels.iter().find(|(label, _)| label == name);
            label.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        sink.add(&Block {
            name: series.name.clone(),
            labels: names.iter().map(value).collect(),
            times: series.times.clone(),
            columns: vec![series.values.clone()],
            texts: Vec::new(),
        })?;
    }
    sink.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(format: Format) -> Vec<u8> {
        let labels = |all: &[(&str, &str)]| {
            all.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
        };
        let all = [
            Series {
                name: "up{a=\"x\"}".into(),
                labels: labels(&[("__name__", "up"), ("a", "x,y"), ("time", "noon")]),
                times: vec![10, 20],
                values: vec![1.5, f64::NAN],
            },
            Series {
                name: "b".into(),
                labels: labels(&[("b", "z")]),
                times: vec![10],
                values: vec![f64::INFINITY],
            },
        ];
        let mut out = Vec::new();
        write_series(format, &all, &mut out).expect("written");
        out
    }

    #[test]
    fn labels_are_columns() {
        let text = |format| String::from_utf8(written(format)).expect("text");
        assert_eq!(
            text(Format::Csv),
            "series,__name__,a,b,label_time,time,value\n\"up{a=\"\"x\"\"}\",up,\"x,y\",,noon,10,1.5\n\
             \"up{a=\"\"x\"\"}\",up,\"x,y\",,noon,20,\nb,,,z,,10,inf\n"
        );
        assert_eq!(
            text(Format::Json),
            "[\n{\"series\":\"up{a=\\\"x\\\"}\",\"__name__\":\"up\",\"a\":\"x,y\",\"label_time\":\"noon\",\"time\":10,\"value\":1.5},\n\
             {\"series\":\"up{a=\\\"x\\\"}\",\"__name__\":\"up\",\"a\":\"x,y\",\"label_time\":\"noon\",\"time\":20,\"value\":null},\n\
             {\"series\":\"b\",\"b\":\"z\",\"time\":10,\"value\":null}\n]\n"
        );
        assert_eq!(
            text(Format::Table),
            "series           time         value\nup{a=\"x\"}          10           1.5\nup{a=\"x\"}          20             -\n\
             b                  10           inf\n"
        );
        #[cfg(feature = "arrow")]
        {
            assert!(written(Format::Parquet).starts_with(b"PAR1"));
            use arrow_array::Array;
            let bytes = written(Format::Arrow);
            let reader = arrow_ipc::reader::StreamReader::try_new(bytes.as_slice(), None).expect("a stream");
            let batch = reader.into_iter().next().expect("a batch").expect("whole");
            assert_eq!((batch.num_rows(), batch.num_columns()), (3, 7));
            assert_eq!(batch.column(3).null_count(), 2, "two points of a series without the label b");
        }
    }
}
