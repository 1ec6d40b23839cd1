//! `rrd_info_t`: lists of keys and values, made, printed and freed.

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
/// A whole number.
pub const INTEGER: c_int = 3;
/// Bytes.
pub const BLOB: c_int = 4;

/// `rrd_blob_t`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Blob {
    /// How many bytes.
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
    /// What it is called.
    pub key: *mut c_char,
    /// Which value it has.
    pub kind: c_int,
    /// The value.
    pub value: InfoValue,
    /// The next one, or NULL.
    pub next: *mut Info,
}

/// A list in the making.
pub struct List {
    first: *mut Info,
    last: *mut Info,
}

impl List {
    /// Goes on behind the list that `first` begins; NULL is an empty one.
    ///
    /// # Safety
    /// `first` is NULL or a list of ours.
    pub unsafe fn behind(first: *mut Info) -> List {
        let mut last = first;
        // SAFETY: the caller's promise.
        while !last.is_null() && unsafe { !(*last).next.is_null() } {
            // SAFETY: the same.
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
        // SAFETY: the item is new, and the last one is ours.
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
            Value::Count(count) => self.push(key, COUNT, InfoValue { count: *count }),
            Value::Text(text) => self.push(key, TEXT, InfoValue { text: memory::text(text) }),
        }
    }

    /// Appends a whole number.
    pub fn add_integer(&mut self, key: &str, integer: c_int) {
        self.push(memory::text(key.as_bytes()), INTEGER, InfoValue { integer });
    }

    /// Appends bytes.
    pub fn add_blob(&mut self, key: &str, content: &[u8]) {
        let blob = Blob { size: content.len() as c_ulong, bytes: memory::copy(content) };
        self.push(memory::text(key.as_bytes()), BLOB, InfoValue { blob });
    }

    /// The list, which is the caller's to free.
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

/// Appends an item behind `info` and gives it; texts and blobs are copied, the key is kept as it is.
///
/// # Safety
/// `info` is NULL or an item of ours; `key` came from C's allocator; `value` is of `kind`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_info_push(
    info: *mut Info,
    key: *mut c_char,
    kind: c_int,
    value: InfoValue,
) -> *mut Info {
    // SAFETY: the caller's promise.
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
/// `info` is NULL or a list that was not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn rrd_info_free(info: *mut Info) {
    let mut item = info;
    while !item.is_null() {
        // SAFETY: the caller's promise.
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
        // SAFETY: the caller's promise; each kind has its value.
        unsafe {
            text.extend_from_slice(bytes((*item).key).unwrap_or_default());
            text.extend_from_slice(b" = ");
            let value = (*item).value;
            match (*item).kind {
                VALUE => rrd::format::push_tool(&mut text, value.value),
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
    // Nobody to tell: the function gives nothing.
    Stdout.write_all(&text).ok();
}
