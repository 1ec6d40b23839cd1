//! MessagePack and Python's pickle (protocol 2), of the few kinds of values that answers have.

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// `None`.
    None,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Item>),
    /// A dictionary.
    Map(Vec<(&'static str, Item)>),
}

/// A value as MessagePack.
pub fn msgpack(item: &Item) -> Vec<u8> {
    let mut out = Vec::new();
    push_msgpack(&mut out, item);
    out
}

fn push_msgpack(out: &mut Vec<u8>, item: &Item) {
    match item {
        Item::None => out.push(0xc0),
        Item::Bool(value) => out.push(if *value { 0xc3 } else { 0xc2 }),
        Item::Int(value) => push_int(out, *value),
        Item::Float(value) => {
            out.push(0xcb);
            out.extend(value.to_be_bytes());
        }
        Item::Text(text) => push_str(out, text),
        Item::List(items) => {
            push_length(out, items.len(), 0x90, (0xdc, 0xdd));
            items.iter().for_each(|item| push_msgpack(out, item));
        }
        Item::Map(pairs) => {
            push_length(out, pairs.len(), 0x80, (0xde, 0xdf));
            for (key, value) in pairs {
                push_str(out, key);
                push_msgpack(out, value);
            }
        }
    }
}

/// The head of a list or dictionary: short ones have it in a byte.
fn push_length(out: &mut Vec<u8>, length: usize, short: u8, (two, four): (u8, u8)) {
    match length {
        0..16 => out.push(short | length as u8),
        16..0x1_0000 => {
            out.push(two);
            out.extend((length as u16).to_be_bytes());
        }
        _ => {
            out.push(four);
            out.extend((length as u32).to_be_bytes());
        }
    }
}

fn push_str(out: &mut Vec<u8>, text: &str) {
    match text.len() {
        length @ 0..32 => out.push(0xa0 | length as u8),
        length @ 32..256 => out.extend([0xd9, length as u8]),
        length => push_length(out, length, 0, (0xda, 0xdb)),
    }
    out.extend(text.as_bytes());
}

fn push_int(out: &mut Vec<u8>, value: i64) {
    match value {
        0..128 => out.push(value as u8),
        -32..0 => out.push(value as i8 as u8),
        128..0x100 => out.extend([0xcc, value as u8]),
        0x100..0x1_0000 => {
            out.push(0xcd);
            out.extend((value as u16).to_be_bytes());
        }
        0x1_0000..0x1_0000_0000 => {
            out.push(0xce);
            out.extend((value as u32).to_be_bytes());
        }
        _ => {
            out.push(0xd3);
            out.extend(value.to_be_bytes());
        }
    }
}

/// A value as a pickle of protocol 2.
pub fn pickle(item: &Item) -> Vec<u8> {
    let mut out = vec![0x80, 2];
    push_pickle(&mut out, item);
    out.push(b'.');
    out
}

fn push_pickle(out: &mut Vec<u8>, item: &Item) {
    match item {
        Item::None => out.push(b'N'),
        Item::Bool(value) => out.push(if *value { 0x88 } else { 0x89 }),
        Item::Int(value) => match i32::try_from(*value) {
            Ok(short) => {
                out.push(b'J');
                out.extend(short.to_le_bytes());
            }
            Err(_) => {
                out.extend([0x8a, 8]);
                out.extend(value.to_le_bytes());
            }
        },
        Item::Float(value) => {
            out.push(b'G');
            out.extend(value.to_be_bytes());
        }
        Item::Text(text) => push_unicode(out, text),
        Item::List(items) => {
            out.extend(b"](");
            items.iter().for_each(|item| push_pickle(out, item));
            out.push(b'e');
        }
        Item::Map(pairs) => {
            out.extend(b"}(");
            for (key, value) in pairs {
                push_unicode(out, key);
                push_pickle(out, value);
            }
            out.push(b'u');
        }
    }
}

fn push_unicode(out: &mut Vec<u8>, text: &str) {
    out.push(b'X');
    out.extend((text.len() as u32).to_le_bytes());
    out.extend(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_those_of_the_formats() {
        let item = Item::Map(vec![
            ("a", Item::List(vec![Item::None, Item::Float(1.5), Item::Int(300), Item::Int(-1)])),
            ("b", Item::Text("é".to_owned())),
        ]);
        assert_eq!(
            msgpack(&item),
            b"\x82\xa1a\x94\xc0\xcb\x3f\xf8\0\0\0\0\0\0\xcd\x01\x2c\xff\xa1b\xa2\xc3\xa9"
        );
        assert_eq!(
            pickle(&item),
            b"\x80\x02}(X\x01\0\0\0a](NG\x3f\xf8\0\0\0\0\0\0J\x2c\x01\0\0J\xff\xff\xff\xffeX\x01\0\0\0bX\x02\0\0\0\xc3\xa9u."
        );
        assert_eq!(msgpack(&Item::List(vec![Item::None; 20]))[..3], [0xdc, 0, 20]);
        assert_eq!(msgpack(&Item::Text("x".repeat(300)))[..3], [0xda, 1, 44]);
    }
}
