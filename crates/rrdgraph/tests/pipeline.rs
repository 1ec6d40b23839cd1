//! The pipeline over rows in memory: stages, limits, and what each caller gets.

#![allow(clippy::unwrap_used, reason = "a test may stop")]

use std::error::Error as StdError;

use graph::eval::EvalError;
use graph::plan::{Request, Rows, TimeRange};
use roundel_rrdgraph::{Error, Evaluator, Graph, GraphContext, Limits, Output, Renderer};
use rrd::fetch::FetchRows;

type Refusal = Box<dyn StdError + Send + Sync>;

/// `x.rrd` has one data source, `in`, with the values 0, 1, 2 and so on. Other files are missing.
#[derive(Default)]
struct Memory {
    fetches: usize,
    /// Values that were reserved.
    reserved: u64,
    /// Most values that may be reserved.
    reserve_max: Option<u64>,
}

impl Rows for Memory {
    fn fetch(&mut self, request: &Request) -> Result<FetchRows, Refusal> {
        self.fetches += 1;
        if request.file != b"x.rrd" {
            return Err("no such file".into());
        }
        let values = (0..20).map(f64::from).collect();
        Ok(FetchRows {
            start: START,
            end: END,
            step: 10,
            units_per_second: 1,
            ds_names: vec!["in".to_string()],
            values,
        })
    }

    fn reserve(&mut self, values: u64) -> Result<(), Refusal> {
        self.reserved += values;
        match self.reserve_max {
            Some(max) if self.reserved > max => Err("too much".into()),
            _ => Ok(()),
        }
    }
}

const START: i64 = 1_000_000_000;
const END: i64 = START + 200;

fn words(options: &str, elements: &str) -> Vec<Vec<u8>> {
    let line = format!("- --start {START} --end {END} {options} {elements}");
    line.split_ascii_whitespace().map(|word| word.as_bytes().to_vec()).collect()
}

fn render(rows: &mut Memory, options: &str, elements: &str, limits: Limits) -> Result<Output, Error> {
    let words = words(options, elements);
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    let graph = Graph::parse(&words, GraphContext::at(END), limits)?;
    graph.render(rows, &Renderer::default(), true)
}

const LINE: &str = "DEF:a=x.rrd:in:LAST LINE:a#f00 PRINT:a:MAX:%.0lf";

#[test]
fn the_format_decides_between_image_and_table() {
    let check = |format: &str, head: &[u8], has_size: bool| {
        let rows = &mut Memory::default();
        let output = render(rows, &format!("-a {format}"), LINE, Limits::default()).unwrap();
        assert!(output.bytes.unwrap().starts_with(head), "{format}");
        assert_eq!(output.size != (0, 0), has_size, "{format}");
        assert_eq!(output.printed, [b"19".to_vec()], "{format}");
        assert_eq!(rows.fetches, 1, "{format}");
    };
    check("PNG", b"\x89PNG", true);
    check("SVG", b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg", true);
    check("PDF", b"%PDF", true);
    check("EPS", b"%!PS-Adobe", true);
    check("CSV", b"\"time\"", false);
    check("XML", b"<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>\n\n<xport>", false);
    check("JSON", b"{ \"about\"", false);
}

#[test]
fn a_picture_that_is_not_painted_has_a_size_only() {
    let words = words("", LINE);
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    let graph = Graph::parse(&words, GraphContext::at(END), Limits::default()).unwrap();
    let output = graph.render(&mut Memory::default(), &Renderer::default(), false).unwrap();
    assert_eq!((output.bytes, output.failure), (None, None));
    assert!(output.size.0 > 400 && output.size.1 > 100, "{:?}", output.size);
}

#[test]
fn limits_are_checked_before_anything_is_fetched() {
    let check = |options: &str, limits: Limits, good: bool| {
        let rows = &mut Memory::default();
        let result = render(rows, options, LINE, limits);
        assert_eq!(result.is_ok(), good, "{options}");
        if !good {
            assert_eq!(rows.fetches, 0, "{options}");
        }
    };
    let values = Limits { values_max: 1000, ..Limits::default() };
    check("-w 1000", values, true);
    check("-w 1001", values, false);
    // Of the whole image: 400 by 100 pixels, and what is around the canvas.
    let pixels = Limits { pixels_max: Some(200_000.0), ..Limits::default() };
    check("", pixels, true);
    check("-m 3", pixels, false);
}

#[test]
fn missing_rows_are_reserved_before_they_are_made() {
    let elements = "DEF:a=gone.rrd:in:LAST LINE:a#f00";
    let refused = render(&mut Memory::default(), "", elements, Limits::default());
    assert!(matches!(refused, Err(Error::Eval(EvalError::Rows(_)))));
    let rows = &mut Memory::default();
    assert!(render(rows, "-Z", elements, Limits::default()).unwrap().bytes.is_some());
    assert!(rows.reserved > 0);
    let rows = &mut Memory { reserve_max: Some(rows.reserved - 1), ..Memory::default() };
    assert!(matches!(render(rows, "-Z", elements, Limits::default()), Err(Error::Eval(EvalError::Rows(_)))));
}

#[test]
fn exports_have_their_legend_or_the_variables_name() {
    let elements = ["DEF:a=x.rrd:in:LAST", "CDEF:b=a,2,*", "XPORT:b:twice", "XPORT:a"];
    let range = TimeRange { start: START, end: END, step: 1 };
    let evaluator = Evaluator::parse(&elements, range, GraphContext::at(END)).unwrap();
    assert_eq!(evaluator.exports(), [(1, b"twice".to_vec()), (0, b"a".to_vec())]);
    let data = evaluator.evaluate(&mut Memory::default()).unwrap();
    let table = evaluator.table(&data).unwrap();
    assert_eq!(table.row(START + 20).collect::<Vec<_>>(), [2.0, 1.0]);
    let none = Evaluator::parse(&elements[..2], range, GraphContext::at(END)).unwrap();
    assert!(none.exports().is_empty() && none.table(&data).is_err());
}
