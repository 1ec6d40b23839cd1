//! `rrd_graph` and `rrd_graph_v`.

use std::ffi::{c_char, c_double, c_int};
use std::io::Write;

use rrd::info::{InfoItem, Value};
use tool::verb::graph::Graph;
use tool::{Done, Failure, Tool, Words};

use crate::boundary::{Stdout, call_by_words, give};
use crate::info::{Info, List};
use crate::memory;

/// `rrdgraph(1)`; `*prdata` gets what PRINT printed, behind it NULL, or NULL when nothing was printed. The image goes to
/// its file, to `stream` where that is not NULL, or to standard output where it is called `-`.
///
/// # Safety
/// `argv` is NULL or has `argc` C texts; `stream` is NULL or open; the other pointers are NULL or can be written.
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
    let make = |tool: &mut Tool, words: Words<'_>| {
        let graph = Graph::make(tool, words)?;
        graph.saved()?;
        if graph.report.is_empty() && graph.printed.is_empty() {
            // Compat: nothing to draw and nothing to print is a failure without a text.
            return Err(Failure::default());
        }
        if graph.file == b"-" {
            show(graph.bytes.as_deref().unwrap_or_default(), stream)?;
        }
        let mut printed: Vec<*mut c_char> =
            graph.info.iter().chain(&graph.printed).map(|text| memory::text(text)).collect();
        // SAFETY: the caller's promise.
        unsafe {
            if !printed.is_empty() && !prdata.is_null() {
                printed.push(std::ptr::null_mut());
                prdata.write(memory::copy(&printed));
            }
            give(xsize, graph.size.0 as c_int);
            give(ysize, graph.size.1 as c_int);
            give(ymin, number(&graph.report, "value_min"));
            give(ymax, number(&graph.report, "value_max"));
        }
        Ok(0)
    };
    // SAFETY: the caller's promise.
    unsafe {
        give(prdata, std::ptr::null_mut());
        call_by_words(-1, argc, argv, make)
    }
}

/// Writes an image to an open stream, else to standard output.
fn show(image: &[u8], stream: *mut libc::FILE) -> Done {
    if stream.is_null() {
        let written = Stdout.write_all(image).and_then(|()| Stdout.flush());
        return written.map_err(|error| Failure::new(tool::failure::system_text(&error)));
    }
    // SAFETY: the caller of `rrd_graph` promises an open stream.
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

/// The same, and all that there is to tell; the image itself when it is called `-`. NULL when it fails.
///
/// # Safety
/// `argv` is NULL or has `argc` C texts, the first of which is not looked at.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_graph_v(argc: c_int, argv: *const *const c_char) -> *mut Info {
    let make = |tool: &mut Tool, words: Words<'_>| {
        let graph = Graph::make(tool, words)?;
        graph.saved()?;
        let mut list: List = graph.report.iter().collect();
        if let Some(info) = &graph.info {
            list.add(&InfoItem { key: "image_info".to_string(), value: Value::Text(info.clone()) });
        }
        if let Some(bytes) = graph.bytes.as_deref().filter(|_| graph.file == b"-") {
            list.add_blob("image", bytes);
        }
        Ok(list.into_raw())
    };
    // SAFETY: the caller's promise.
    unsafe { call_by_words(std::ptr::null_mut(), argc, argv, make) }
}
