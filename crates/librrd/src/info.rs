//! `rrd_info_t`: lists of keys and values, created, printed and freed.

use std::ffi::{c_char, c_double, c_int, c_uchar, c_ulong};
use std::io::Write;

use rrd::info::{InfoItem, Value};

use crate::boundary::Stdout;
use crate::memory::{self, bytes};

/// `rrd_info_type_t`
pub const VALUE: c_int = 0;
/// A count.
pub const COUNT: c_int = 1;
/// A text.
pub const TEXT: c_int = 2;
/// An `int`.
pub const INTEGER: c_int = 3;
/// Bytes.
pub const BLOB: c_int = 4;

/// `rrd_blob_t`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Blob {
    /// Number of bytes.
    pub size: c_ulong,
    /// The bytes.
    pub bytes: *mut c_uchar,
}

/// `rrd_infoval_t`
#[repr(C)]
#[derive(Clone, Copy)]
pub union InfoValue {
    /// Of [`COUNT`].
    pub count: c_ulong,
    /// Of [`VALUE`].
    pub value: c_double,
    /// Of [`TEXT`].
    pub text: *mut c_char,
    /// Of [`INTEGER`].
    pub integer: c_int,
    /// Of [`BLOB`].
    pub blob: Blob,
}

/// `rrd_info_t`
#[repr(C)]
pub struct Info {
    /// The name of the item.
    pub key: *mut c_char,
    /// The kind of its value.
    pub kind: c_int,
    /// Its value.
    pub value: InfoValue,
    /// The next item, or NULL.
    pub next: *mut Info,
}

/// A list under construction.
pub struct List {
    first: *mut Info,
    last: *mut Info,
}

impl List {
    /// Continues the list that starts at `first`; NULL is an empty one.
    ///
    /// # Safety
    /// `first` is NULL or one of our lists.
    pub unsafe fn behind(first: *mut Info) -> List {
        let mut last = first;
        // SAFETY: `last` is not NULL and an item of the list, whose `next` is NULL or its next item.
        while !last.is_null() && unsafe { !(*last).next.is_null() } {
            // SAFETY: as above.
            last = unsafe { (*last).next };
        }
        List { first, last }
    }

    /// An empty list.
    pub fn new() -> List {
        List { first: std::ptr::null_mut(), last: std::ptr::null_mut() }
    }

    fn push(&mut self, key: *mut c_char, kind: c_int, value: InfoValue) {
        let item: *mut Info = memory::zeroed(1);
        // SAFETY: `item` was just allocated for one value, and `last` is an item of this list.
        unsafe {
            item.write(Info { key, kind, value, next: std::ptr::null_mut() });
            if self.last.is_null() {
                self.first = item;
            } else {
                (*self.last).next = item;
            }
        }
        self.last = item;
    }

    /// Appends an item.
    pub fn add(&mut self, item: &InfoItem) {
        let key = memory::text(item.key.as_bytes());
        match &item.value {
            Value::Number(value) => self.push(key, VALUE, InfoValue { value: *value }),
            Value::Moment(moment) => self.push(key, VALUE, InfoValue { value: moment.as_f64() }),
            Value::Count(count) => self.push(key, COUNT, InfoValue { count: *count }),
            Value::Text(text) => self.push(key, TEXT, InfoValue { text: memory::text(text) }),
        }
    }

    /// Appends an `int`.
    pub fn add_integer(&mut self, key: &str, integer: c_int) {
        self.push(memory::text(key.as_bytes()), INTEGER, InfoValue { integer });
    }

    /// Appends bytes.
    pub fn add_blob(&mut self, key: &str, content: &[u8]) {
        let blob = Blob { size: content.len() as c_ulong, bytes: memory::copy(content) };
        self.push(memory::text(key.as_bytes()), BLOB, InfoValue { blob });
    }

    /// The list, which the caller frees.
    pub fn into_raw(self) -> *mut Info {
        self.first
    }
}

impl<'a> FromIterator<&'a InfoItem> for List {
    fn from_iter<I: IntoIterator<Item = &'a InfoItem>>(items: I) -> List {
        let mut list = List::new();
        items.into_iter().for_each(|item| list.add(item));
        list
    }
}

/// Appends an item to `info` and returns it. Texts and blobs are copied; the item owns the key.
///
/// # Safety
/// `info` is NULL or one of our items; `key` came from C's allocator; `value` is of `kind`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_info_push(
    info: *mut Info,
    key: *mut c_char,
    kind: c_int,
    value: InfoValue,
) -> *mut Info {
    // SAFETY: the field read is the one of `kind`; texts are C strings and blobs have `size` bytes, by this function's
    // contract.
    let value = unsafe {
        match kind {
            TEXT => InfoValue { text: memory::text(bytes(value.text).unwrap_or_default()) },
            BLOB if value.blob.bytes.is_null() => value,
            BLOB => {
                let content = std::slice::from_raw_parts(value.blob.bytes, value.blob.size as usize);
                InfoValue { blob: Blob { size: value.blob.size, bytes: memory::copy(content) } }
            }
            _ => value,
        }
    };
    let mut list = List { first: info, last: info };
    list.push(key, kind, value);
    list.last
}

/// Frees a list.
///
/// # Safety
/// `info` is NULL or a list that was not freed yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_info_free(info: *mut Info) {
    let mut item = info;
    while !item.is_null() {
        // SAFETY: `item` is not NULL and not freed yet; key and texts are from C's allocator, as all our items' are.
        unsafe {
            let next = (*item).next;
            match (*item).kind {
                TEXT => libc::free((*item).value.text.cast()),
                BLOB => libc::free((*item).value.blob.bytes.cast()),
                _ => {}
            }
            libc::free((*item).key.cast());
            libc::free(item.cast());
            item = next;
        }
    }
}

/// Prints a list as `rrdtool info` does, to C's standard output.
///
/// # Safety
/// `info` is NULL or a list.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_info_print(info: *mut Info) {
    let mut text = Vec::new();
    let mut item = info;
    while !item.is_null() {
        // SAFETY: `item` is a live item of the list, and the field read is the one of its kind.
        unsafe {
            text.extend_from_slice(bytes((*item).key).unwrap_or_default());
            text.extend_from_slice(b" = ");
            let value = (*item).value;
            match (*item).kind {
                VALUE => {
                    // Compat: as the program's locale writes numbers.
                    let mut number = Vec::new();
                    rrd::format::push_tool(&mut number, value.value);
                    let number =
                        String::from_utf8_lossy(&number).replace('.', &localtime::locale::decimal_point());
                    text.extend_from_slice(number.as_bytes());
                }
                COUNT => text.extend_from_slice(value.count.to_string().as_bytes()),
                INTEGER => text.extend_from_slice(value.integer.to_string().as_bytes()),
                TEXT => {
                    text.push(b'"');
                    text.extend_from_slice(bytes(value.text).unwrap_or_default());
                    text.push(b'"');
                }
                _ => {
                    text.extend_from_slice(format!("BLOB_SIZE:{}\n", value.blob.size).as_bytes());
                    if !value.blob.bytes.is_null() {
                        let size = value.blob.size as usize;
                        text.extend_from_slice(std::slice::from_raw_parts(value.blob.bytes, size));
                    }
                }
            }
            text.push(b'\n');
            item = (*item).next;
        }
    }
    // The function returns nothing, so an error cannot be reported.
    Stdout.write_all(&text).ok();
}
