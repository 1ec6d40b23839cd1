//! A graph as a table of its rows.

use graph::picture::options::{ImageFormat, Options, XGrid};
use graph::print::Printed;
use graph::xport::{Form, GraphForm, Setting, Table, Written, of_graph};
use rrd::info::{InfoItem, Value};

use super::{Computed, Made, failure};
use crate::failure::{Done, Failure};

/// How the rows are written; `None` when a picture is wanted.
pub(super) fn form(options: &Options) -> Option<GraphForm> {
    let json = |show_time| GraphForm::Marked(Form { json: true, show_time, numbered: false });
    let xml = |numbered| GraphForm::Marked(Form { json: false, show_time: true, numbered });
    match options.format {
        ImageFormat::Png | ImageFormat::Svg | ImageFormat::Eps | ImageFormat::Pdf => None,
        ImageFormat::Xml => Some(xml(false)),
        ImageFormat::XmlEnum => Some(xml(true)),
        ImageFormat::Json => Some(json(options.json_time)),
        ImageFormat::JsonTime => Some(json(true)),
        ImageFormat::Csv => Some(GraphForm::Separated(b',')),
        ImageFormat::Tsv => Some(GraphForm::Separated(b'\t')),
        ImageFormat::Ssv => Some(GraphForm::Separated(b';')),
    }
}

/// Makes the table, and then what PRINT prints.
///
/// # Errors
/// RRDtool's text: nothing to write, or a PRINT.
pub(super) fn make(computed: &Computed<'_>, form: GraphForm) -> Done<Made> {
    let Computed { asked, script, frame, data, dates, .. } = *computed;
    let table = Table::of_graph(script, frame, data);
    let table = table.ok_or_else(|| Failure::new("no XPORT found, nothing to do"))?;
    let time_format = match &asked.options.x_grid {
        XGrid::Own { format, .. } => Some(format.as_slice()),
        _ => None,
    };
    let setting = Setting { form, time_format, times: dates, base: f64::from(asked.options.base) };
    let mut bytes = Vec::new();
    // Writing to memory does not fail.
    match of_graph(script, &table, data, setting, &mut bytes).map_err(failure)? {
        Written::UpTo(message) => return Err(Failure::new(message)),
        Written::All | Written::Nothing => {}
    }
    let printed = Printed::of(script, data, dates, asked.options.base).map_err(failure)?.outside;
    let count = |key: &str, value: u64| InfoItem { key: key.to_string(), value: Value::Count(value) };
    let mut report = vec![
        count("graph_start", table.start as u64),
        count("graph_end", table.end as u64),
        count("graph_step", table.step),
    ];
    report.extend(printed.iter().enumerate().map(|(number, text)| InfoItem {
        key: format!("print[{number}]"),
        value: Value::Text(text.clone()),
    }));
    Ok(Made { bytes: Some(bytes), sized: true, printed, report, ..Made::default() })
}
