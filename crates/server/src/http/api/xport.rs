//! Computed rows of several RRDs: `rrdxport(1)` for programs.

use axum::response::Response;
use graph::eval::{Data, EvalError};
use graph::language::check_span;
use graph::plan::TimeRange;
use render::{ImageError, PdfError};
use rrdgraph::{Error, Evaluator, GraphContext};
use serde_json::Map;

use super::{Api, range};
use crate::http::failure::Failure;
use crate::http::query::Query;
use crate::http::rows::{Budget, Source};
use crate::http::table::{Form, Table, TableRows};

/// Default number of rows, as in `rrdxport(1)`.
const ROWS_DEFAULT: u64 = 400;
/// The most arguments of one request.
pub const ARGUMENTS_MAX: usize = 2_000;

/// `GET` and `POST /api/v1/xport`
///
/// # Errors
/// 4xx and 503, as in `openapi.json`.
pub async fn xport(api: &Api, mut query: Query) -> Result<Response, Failure> {
    let arguments = arguments(&mut query)?;
    let form = Form::from_name(query.text("format").as_deref())?;
    let step = query.number("step", 0)?;
    let rows = query.number("maxrows", ROWS_DEFAULT)?.max(10);
    let now = api.service.now();
    let (start, end) = range(&mut query, now)?;
    check_span(start, end).map_err(Failure::bad)?;
    query.finish()?;
    api.work.run(|| table(api, &arguments, TimeRange::new(start, end, step, rows), now, form)).await
}

/// The values of `arg`, each an argument as `rrdtool` takes it.
///
/// # Errors
/// 400 when there are none, 413 when there are too many.
pub fn arguments(query: &mut Query) -> Result<Vec<Vec<u8>>, Failure> {
    let arguments = query.take_all("arg");
    if arguments.is_empty() {
        return Err(Failure::bad("nothing to do: give arg=DEF:... and arg=XPORT:... (rrdxport(1))"));
    }
    if arguments.len() > ARGUMENTS_MAX {
        return Err(Failure::too_much(format!("more than {ARGUMENTS_MAX} arguments")));
    }
    Ok(arguments)
}

fn table(
    api: &Api,
    arguments: &[Vec<u8>],
    range: TimeRange,
    now: i64,
    form: Form,
) -> Result<Response, Failure> {
    let evaluator = Evaluator::parse(arguments, range, GraphContext::at(now)).map_err(Failure::bad)?;
    let budget = Budget::new(&api.service.memory);
    let mut source = Source { service: &api.service, budget: &budget };
    let data = evaluator.evaluate(&mut source).map_err(|error| of_graph(error.into()))?;
    let rows = evaluator.table(&data).map_err(Failure::bad)?;
    // Its text is made as the client reads.
    budget.count(rows.rows().saturating_mul(rows.legends.len() as u64))?;
    let mut head = Map::new();
    head.insert("start".to_string(), rows.start.into());
    head.insert("end".to_string(), rows.end.into());
    head.insert("step".to_string(), rows.step.into());
    let name = |(_, name): (usize, Vec<u8>)| String::from_utf8_lossy(&name).into_owned();
    let table = Table {
        head,
        columns: evaluator.exports().into_iter().map(name).collect(),
        units_per_second: 1,
        fresh_seconds: rows.step,
        rows: Exported { evaluator, data, next: 0 },
        form,
    };
    table.respond(budget.into_share())
}

/// The rows of the XPORTs.
struct Exported {
    evaluator: Evaluator,
    data: Data,
    next: u64,
}

impl TableRows for Exported {
    fn each(&mut self, mut row: impl FnMut(i64, &[f64]) -> bool) -> bool {
        let Ok(table) = self.evaluator.table(&self.data) else { return false };
        let mut values = Vec::with_capacity(table.legends.len());
        for index in self.next..table.rows() {
            self.next = index + 1;
            let time = table.time(index);
            values.clear();
            values.extend(table.row(time));
            if !row(time, &values) {
                break;
            }
        }
        self.next < table.rows()
    }
}

/// Converts an error of a graph or table; failures of rows keep their own status.
pub fn of_graph(error: Error) -> Failure {
    match error {
        Error::Options(error) => Failure::bad(error),
        Error::Language(error) => Failure::bad(error),
        Error::TooManyValues { shapes, width } => {
            Failure::too_much(format!("{shapes} elements in {width} columns are too many"))
        }
        error @ (Error::TooManyPixels { .. } | Error::Image(ImageError::TooBig(_))) => {
            Failure::too_much(error)
        }
        Error::Image(ImageError::Pdf(PdfError::Missing)) => Failure::missing("PDF", "pdf"),
        Error::Deadline => Budget::overdue(),
        Error::Eval(EvalError::Rows(error)) => match error.downcast::<Failure>() {
            Ok(failure) => *failure,
            Err(error) => Failure::refused(error),
        },
        error => Failure::refused(error),
    }
}
