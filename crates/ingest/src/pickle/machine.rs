//! The stack machine.

use super::opcode::forbidden;
use super::{ITEMS_MAX, PickleError};
use crate::number::Number;

/// Something on the stack. Copies of a list are the same list.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Item<'a> {
    Number(Number),
    /// As it stands in the message.
    Text(&'a [u8]),
    /// One that was written with escapes, by its index.
    Unescaped(u32),
    /// So many items of the arena.
    Tuple {
        start: u32,
        count: u32,
    },
    /// By its index.
    List(u32),
    /// None, True or False.
    Nothing,
}

/// The machine in the middle of a message.
#[derive(Debug)]
pub(super) struct Machine<'a> {
    input: &'a [u8],
    at: usize,
    stack: Vec<Item<'a>>,
    /// Lengths of the stack at its marks.
    marks: Vec<usize>,
    memo: Vec<Option<Item<'a>>>,
    /// The next key of the instruction that names none.
    memoized: usize,
    /// Items of tuples.
    arena: Vec<Item<'a>>,
    lists: Vec<Vec<Item<'a>>>,
    texts: Vec<Vec<u8>>,
    /// What has been made so far.
    made: usize,
}

type Done = Result<(), PickleError>;

impl<'a> Machine<'a> {
    pub(super) fn new(input: &'a [u8]) -> Self {
        Machine {
            input,
            at: 0,
            stack: Vec::new(),
            marks: Vec::new(),
            memo: Vec::new(),
            memoized: 0,
            arena: Vec::new(),
            lists: Vec::new(),
            texts: Vec::new(),
            made: 0,
        }
    }

    /// Runs to the end; what remains is the result.
    pub(super) fn run(&mut self) -> Result<Item<'a>, PickleError> {
        loop {
            let offset = self.at;
            let opcode = self.byte()?;
            match opcode {
                b'.' => return self.pop(),
                0x80 => drop(self.byte()?),
                // A frame only says how much comes.
                0x95 => drop(self.take(8)?),
                b'(' => {
                    self.count(1)?;
                    self.marks.push(self.stack.len());
                }
                b'0' => drop(self.pop()?),
                b'1' => drop(self.drop_to_mark()?),
                b'2' => {
                    let top = *self.stack.last().ok_or_else(|| self.broken())?;
                    self.push(top)?;
                }
                b'N' | 0x88 | 0x89 => self.push(Item::Nothing)?,
                b'I' | b'J' | b'K' | b'M' | b'L' | 0x8a | 0x8b | b'F' | b'G' => self.number(opcode)?,
                b'S' | b'V' | b'T' | b'U' | b'X' | b'B' | b'C' | 0x8c | 0x8d | 0x8e => self.string(opcode)?,
                b')' | b't' | 0x85..=0x87 => self.tuple(opcode)?,
                b']' | b'l' | b'a' | b'e' => self.list(opcode)?,
                b'p' | b'q' | b'r' | 0x94 | b'g' | b'h' | b'j' => self.memo(opcode)?,
                byte => {
                    return Err(match forbidden(byte) {
                        Some(name) => PickleError::Forbidden { name, offset },
                        None => PickleError::NoOpcode { byte, offset },
                    });
                }
            }
        }
    }

    /// The items of a tuple or list.
    pub(super) fn sequence(&self, item: &Item<'a>) -> Option<&[Item<'a>]> {
        match *item {
            Item::Tuple { start, count } => self.arena.get(start as usize..(start + count) as usize),
            Item::List(index) => self.lists.get(index as usize).map(Vec::as_slice),
            _ => None,
        }
    }

    /// The bytes of a text.
    pub(super) fn text(&self, item: &Item<'a>) -> Option<&[u8]> {
        match *item {
            Item::Text(text) => Some(text),
            Item::Unescaped(index) => self.texts.get(index as usize).map(Vec::as_slice),
            _ => None,
        }
    }

    fn number(&mut self, opcode: u8) -> Done {
        let number = match opcode {
            b'I' => match self.line()? {
                b"00" | b"01" => return self.push(Item::Nothing),
                line => Number::of_text(line).ok_or_else(|| self.broken())?,
            },
            b'L' => {
                let line = self.line()?;
                Number::of_text(line.strip_suffix(b"L").unwrap_or(line)).ok_or_else(|| self.broken())?
            }
            b'F' => Number::of_text(self.line()?).ok_or_else(|| self.broken())?,
            b'J' => Number::from(i64::from(i32::from_le_bytes(self.array()?))),
            b'K' => Number::Unsigned(u64::from(self.byte()?)),
            b'M' => Number::Unsigned(u64::from(u16::from_le_bytes(self.array()?))),
            b'G' => Number::Float(f64::from_be_bytes(self.array()?)),
            0x8a => {
                let count = usize::from(self.byte()?);
                long(self.take(count)?)
            }
            _ => {
                let count = self.length4()?;
                long(self.take(count)?)
            }
        };
        self.push(Item::Number(number))
    }

    fn string(&mut self, opcode: u8) -> Done {
        let count = match opcode {
            b'S' | b'V' => {
                let line = self.line()?;
                let text = match opcode {
                    b'S' => quoted(line).ok_or_else(|| self.broken())?,
                    _ => line,
                };
                if !text.contains(&b'\\') {
                    return self.push(Item::Text(text));
                }
                self.texts.push(unescaped(text, opcode == b'V'));
                return self.push(Item::Unescaped(self.texts.len() as u32 - 1));
            }
            b'U' | b'C' | 0x8c => usize::from(self.byte()?),
            b'T' | b'X' | b'B' => self.length4()?,
            _ => usize::try_from(u64::from_le_bytes(self.array()?)).map_err(|_| self.broken())?,
        };
        let text = self.take(count)?;
        self.push(Item::Text(text))
    }

    fn tuple(&mut self, opcode: u8) -> Done {
        let from = match opcode {
            b')' => self.stack.len(),
            b't' => self.mark()?,
            _ => {
                let count = usize::from(opcode - 0x84);
                let from = self.stack.len().checked_sub(count).ok_or_else(|| self.broken())?;
                self.above_marks(from)?
            }
        };
        let start = self.arena.len();
        self.arena.extend_from_slice(&self.stack[from..]);
        let count = self.arena.len() - start;
        self.stack.truncate(from);
        // Below ITEMS_MAX, which is far below 2^32.
        self.push(Item::Tuple { start: start as u32, count: count as u32 })
    }

    fn list(&mut self, opcode: u8) -> Done {
        match opcode {
            b']' | b'l' => {
                let from = if opcode == b']' { self.stack.len() } else { self.mark()? };
                let items = self.stack.split_off(from);
                self.lists.push(items);
                self.push(Item::List(self.lists.len() as u32 - 1))
            }
            _ => {
                let from = match opcode {
                    b'a' => self.above_marks(self.stack.len().saturating_sub(1))?,
                    _ => self.mark()?,
                };
                let below = from.checked_sub(1).and_then(|index| self.stack.get(index));
                let Some(Item::List(list)) = below.copied() else { return Err(self.broken()) };
                let list = self.lists.get_mut(list as usize);
                list.into_iter().for_each(|list| list.extend_from_slice(&self.stack[from..]));
                self.stack.truncate(from);
                Ok(())
            }
        }
    }

    fn memo(&mut self, opcode: u8) -> Done {
        let key = match opcode {
            b'p' | b'g' => match Number::of_text(self.line()?) {
                Some(Number::Unsigned(key)) => usize::try_from(key).unwrap_or(usize::MAX),
                _ => return Err(self.broken()),
            },
            b'q' | b'h' => usize::from(self.byte()?),
            b'r' | b'j' => self.length4()?,
            _ => self.memoized,
        };
        if matches!(opcode, b'g' | b'h' | b'j') {
            let item = self.memo.get(key).copied().flatten().ok_or_else(|| self.broken())?;
            return self.push(item);
        }
        let top = *self.stack.last().ok_or_else(|| self.broken())?;
        if key >= ITEMS_MAX {
            return Err(PickleError::TooMany { offset: self.at });
        }
        if self.memo.len() <= key {
            self.memo.resize(key + 1, None);
        }
        self.memo[key] = Some(top);
        self.memoized += 1;
        Ok(())
    }

    fn push(&mut self, item: Item<'a>) -> Done {
        self.count(1)?;
        self.stack.push(item);
        Ok(())
    }

    fn pop(&mut self) -> Result<Item<'a>, PickleError> {
        let from = self.above_marks(self.stack.len().saturating_sub(1))?;
        if from == self.stack.len() {
            return Err(self.broken());
        }
        self.stack.pop().ok_or_else(|| self.broken())
    }

    /// `from`, if no mark lies above it.
    fn above_marks(&self, from: usize) -> Result<usize, PickleError> {
        match self.marks.last() {
            Some(mark) if *mark > from => Err(self.broken()),
            _ => Ok(from),
        }
    }

    /// Removes the last mark; the length of the stack there.
    fn mark(&mut self) -> Result<usize, PickleError> {
        let mark = self.marks.pop().ok_or_else(|| self.broken())?;
        if mark > self.stack.len() { Err(self.broken()) } else { Ok(mark) }
    }

    fn drop_to_mark(&mut self) -> Done {
        let mark = self.mark()?;
        self.stack.truncate(mark);
        Ok(())
    }

    fn count(&mut self, more: usize) -> Done {
        self.made += more;
        if self.made > ITEMS_MAX { Err(PickleError::TooMany { offset: self.at }) } else { Ok(()) }
    }

    fn broken(&self) -> PickleError {
        PickleError::Broken { offset: self.at }
    }

    fn byte(&mut self) -> Result<u8, PickleError> {
        Ok(self.array::<1>()?[0])
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], PickleError> {
        let bytes = self.take(N)?;
        bytes.try_into().map_err(|_| self.broken())
    }

    fn length4(&mut self) -> Result<usize, PickleError> {
        usize::try_from(u32::from_le_bytes(self.array()?)).map_err(|_| self.broken())
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], PickleError> {
        let end = self.at.checked_add(count).filter(|end| *end <= self.input.len());
        let bytes = end.map(|end| &self.input[self.at..end]).ok_or_else(|| self.broken())?;
        self.at += count;
        Ok(bytes)
    }

    fn line(&mut self) -> Result<&'a [u8], PickleError> {
        let rest = &self.input[self.at..];
        let end = memchr::memchr(b'\n', rest).ok_or_else(|| self.broken())?;
        self.at += end + 1;
        Ok(&rest[..end])
    }
}

/// A whole number of any length, in two's complement, its least byte first.
fn long(bytes: &[u8]) -> Number {
    let is_negative = bytes.last().is_some_and(|byte| byte & 0x80 != 0);
    if bytes.len() <= 16 {
        let mut wide = [if is_negative { 0xff } else { 0 }; 16];
        wide[..bytes.len()].copy_from_slice(bytes);
        let number = i128::from_le_bytes(wide);
        let unsigned = u64::try_from(number).map(Number::Unsigned);
        return unsigned
            .or_else(|_| i64::try_from(number).map(Number::Signed))
            .unwrap_or(Number::Float(number as f64));
    }
    // Beyond all that an RRD holds exactly: from its greatest byte down; infinite at last.
    let sum = bytes.iter().rev().fold(0.0_f64, |sum, byte| sum * 256.0 + f64::from(*byte));
    Number::Float(if is_negative { sum - 256_f64.powf(bytes.len() as f64) } else { sum })
}

/// A text of Python's between its quotation marks.
fn quoted(line: &[u8]) -> Option<&[u8]> {
    match line {
        [first @ (b'\'' | b'"'), text @ .., last] if first == last => Some(text),
        _ => None,
    }
}

/// A text without its escapes; of Unicode ones, only those by number count.
fn unescaped(text: &[u8], is_unicode: bool) -> Vec<u8> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte != b'\\' {
            plain.push(*byte);
            continue;
        }
        let digits = match (is_unicode, rest.first()) {
            (true, Some(b'u')) => 4,
            (true, Some(b'U')) => 8,
            (false, Some(b'x')) => 2,
            _ => 0,
        };
        let number = rest.get(1..1 + digits).filter(|_| digits > 0).and_then(hexadecimal);
        match (number, rest.first()) {
            (Some(number), _) => {
                match char::from_u32(number) {
                    Some(letter) if is_unicode => {
                        plain.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
                    }
                    _ => plain.push(number as u8),
                }
                rest = &rest[1 + digits..];
            }
            (None, Some(escaped)) if !is_unicode => {
                plain.push(match escaped {
                    b'n' => b'\n',
                    b't' => b'\t',
                    b'r' => b'\r',
                    other => *other,
                });
                rest = &rest[1..];
            }
            _ => plain.push(b'\\'),
        }
    }
    plain
}

fn hexadecimal(digits: &[u8]) -> Option<u32> {
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}
