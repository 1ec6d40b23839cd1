//! `rrd_graph` and `rrd_graph_v`.

use std::ffi::{c_char, c_double, c_int};
use std::io::Write;

use cli::verb::graph::SavedGraph;
use cli::{Args, Failure, Result, Tool};
use rrd::info::{InfoItem, Value};

use crate::boundary::{Stdout, call_by_words, give};
use crate::errors;
use crate::info::{Info, List};
use crate::memory;

/// `rrdgraph(1)`. `*prdata` gets the output of PRINT, ended by NULL, or NULL when nothing was printed. The image goes
/// to its file, to `stream` if that is not NULL, or to standard output when the file is called `-`.
///
/// # Safety
/// `argv` is NULL or has `argc` C strings; `stream` is NULL or open; the other pointers are NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_graph(
    argc: c_int,
    argv: *const *const c_char,
    prdata: *mut *mut *mut c_char,
    xsize: *mut c_int,
    ysize: *mut c_int,
    stream: *mut libc::FILE,
    ymin: *mut c_double,
    ymax: *mut c_double,
) -> c_int {
    let make = |tool: &mut Tool, args: Args<'_>| {
        let graph = SavedGraph::make(tool, args)?;
        graph.check_saved()?;
        if graph.output.report.is_empty() && graph.output.printed.is_empty() {
            // Compat: nothing to draw and nothing to print is a failure without a text.
            return Err(Failure::default());
        }
        if graph.file == b"-" {
            show(graph.output.bytes.as_deref().unwrap_or_default(), stream)?;
        }
        let mut printed: Vec<*mut c_char> =
            graph.info.iter().chain(&graph.output.printed).map(|text| memory::text(text)).collect();
        // SAFETY: each output pointer is NULL or writable, by this function's contract; `give` skips NULL.
        unsafe {
            if !printed.is_empty() && !prdata.is_null() {
                printed.push(std::ptr::null_mut());
                prdata.write(memory::copy(&printed));
            }
            give(xsize, graph.output.size.0 as c_int);
            give(ysize, graph.output.size.1 as c_int);
            give(ymin, number(&graph.output.report, "value_min"));
            give(ymax, number(&graph.output.report, "value_max"));
        }
        Ok(0)
    };
    // SAFETY: as above; `argv` has `argc` C strings.
    unsafe {
        give(prdata, std::ptr::null_mut());
        call_by_words(-1, argc, argv, make)
    }
}

/// Writes an image to an open stream, or to standard output when that is NULL.
fn show(image: &[u8], stream: *mut libc::FILE) -> Result {
    if stream.is_null() {
        let written = Stdout.write_all(image).and_then(|()| Stdout.flush());
        return written.map_err(|error| Failure::new(cli::failure::system_text(&error)));
    }
    // SAFETY: the stream is not NULL and open, by `rrd_graph`'s contract, and the image has the length that is passed.
    let written = unsafe { libc::fwrite(image.as_ptr().cast(), 1, image.len(), stream) };
    if written == image.len() { Ok(()) } else { Err(Failure::new("cannot write the image to the stream")) }
}

fn number(report: &[InfoItem], key: &str) -> f64 {
    let found = report.iter().find(|item| item.key == key);
    match found.map(|item| &item.value) {
        Some(Value::Number(value)) => *value,
        _ => f64::NAN,
    }
}

/// As [`rrd_graph`], and returns everything there is to report, including the image when it is called `-`. NULL for an
/// error, except that the graph cannot be written.
///
/// # Safety
/// `argv` is NULL or has `argc` C strings, the first of which is ignored.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_graph_v(argc: c_int, argv: *const *const c_char) -> *mut Info {
    let make = |tool: &mut Tool, args: Args<'_>| {
        let graph = SavedGraph::make(tool, args)?;
        // A graph that cannot be written is reported, too.
        if let Err(failure) = graph.check_saved() {
            errors::keep(failure.text());
        }
        let mut list: List = graph.output.report.iter().collect();
        if let Some(info) = &graph.info {
            list.add(&InfoItem { key: "image_info".to_string(), value: Value::Text(info.clone()) });
        }
        if let Some(bytes) = graph.output.bytes.as_deref().filter(|_| graph.file == b"-") {
            list.add_blob("image", bytes);
        }
        Ok(list.into_raw())
    };
    // SAFETY: `argv` has `argc` C strings, by this function's contract.
    unsafe { call_by_words(std::ptr::null_mut(), argc, argv, make) }
}
