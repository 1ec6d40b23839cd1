//! Rows of several RRDs, computed with: `rrdxport(1)` for programs.

use axum::response::Response;
use graph::eval::{EvalError, evaluate};
use graph::language::{Element, Script, Setting, check_span};
use graph::plan::Frame;
use graph::xport::Table as Rows;
use rrd::rpn::Surroundings;
use serde_json::Map;

use super::{Api, range};
use crate::http::failure::Failure;
use crate::http::query::Query;
use crate::http::rows::{Budget, Source};
use crate::http::table::{Form, Table};

/// Rows when nobody says, as in `rrdxport(1)`.
const ROWS_DEFAULT: u64 = 400;
/// Arguments of one request.
pub const ARGUMENTS_MAX: usize = 2_000;

/// `GET` and `POST /api/v1/xport`
pub async fn xport(api: &Api, mut query: Query) -> Result<Response, Failure> {
    let arguments = arguments(&mut query)?;
    let form = Form::from_name(query.text("format").as_deref())?;
    let step = query.number("step", 0)?;
    let rows = query.number("maxrows", ROWS_DEFAULT)?.max(10);
    let now = api.service.now();
    let (start, end) = range(&mut query, now)?;
    check_span(start, end).map_err(Failure::bad)?;
    query.finish()?;
    api.work.run(|| table(api, &arguments, Frame::new(start, end, step, rows), now, form)).await
}

/// The values of `arg`, each an argument as `rrdtool` takes it.
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

fn table(api: &Api, arguments: &[Vec<u8>], frame: Frame, now: i64, form: Form) -> Result<Response, Failure> {
    let calendar = &localtime::Local;
    let Frame { start, end, .. } = frame;
    let script = Script::parse(arguments, Setting { start, end, now, calendar }).map_err(Failure::bad)?;
    let budget = Budget::default();
    let surroundings = Surroundings { now, first_weekday: 0, calendar };
    let mut source = Source { service: &api.service, budget: &budget };
    let data = evaluate(&script, frame, &mut source, &surroundings).map_err(of_eval)?;
    let rows =
        Rows::new(&script, frame, &data).ok_or_else(|| Failure::bad("no XPORT found, nothing to do"))?;
    budget.take(rows.rows().saturating_mul(rows.legends.len() as u64))?;
    let mut head = Map::new();
    head.insert("start".to_string(), rows.start.into());
    head.insert("end".to_string(), rows.end.into());
    head.insert("step".to_string(), rows.step.into());
    let table = Table {
        head,
        columns: columns(&script, &rows),
        units_per_second: 1,
        rows: (0..rows.rows()).map(|index| rows.time(index)).map(|time| (time, rows.row(time))),
        fresh_seconds: rows.step,
        form: &form,
    };
    Ok(table.respond())
}

/// The legends; where one is empty, the name of its variable.
fn columns(script: &Script, rows: &Rows<'_>) -> Vec<String> {
    let mut legends = rows.legends.iter();
    let mut names = Vec::with_capacity(rows.legends.len());
    for element in &script.elements {
        let Element::Xport(xport) = element else { continue };
        let variable = || {
            let symbol = rrd::rpn::Symbol::Series(xport.series);
            script.variables().iter().find(|variable| variable.symbol == symbol)
        };
        let legend = legends.next().filter(|legend| !legend.is_empty()).map(|legend| legend.to_vec());
        let name = legend.or_else(|| variable().map(|variable| variable.name.clone()));
        names.push(String::from_utf8_lossy(&name.unwrap_or_default()).into_owned());
    }
    names
}

/// A failure of the rows keeps its own status.
pub fn of_eval(error: EvalError) -> Failure {
    match error {
        EvalError::Rows(error) => match error.downcast::<Failure>() {
            Ok(failure) => *failure,
            Err(error) => Failure::refused(error),
        },
        error => Failure::refused(error),
    }
}
