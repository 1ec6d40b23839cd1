//! Fields of a protobuf message, one after the other; nothing is copied.

use super::OtlpError;

/// A message in place: its bytes, and where they begin in the body.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message<'a> {
    bytes: &'a [u8],
    offset: usize,
}

/// The value of a field.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wire<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(Message<'a>),
    Fixed32(u32),
}

impl<'a> Message<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Message { bytes, offset: 0 }
    }

    /// The fields in their order, up to the first that is broken.
    pub(super) fn fields(self) -> Fields<'a> {
        Fields { message: self, at: 0 }
    }

    /// The text that it is instead.
    pub(super) fn text(self) -> Result<&'a str, OtlpError> {
        std::str::from_utf8(self.bytes)
            .map_err(|error| OtlpError::Protobuf { offset: self.offset + error.valid_up_to() })
    }

    /// Whether it has bytes.
    pub(super) fn is_empty(self) -> bool {
        self.bytes.is_empty()
    }
}

impl<'a> Wire<'a> {
    /// The message of a field; another kind of field is an empty one.
    pub(super) fn message(self) -> Message<'a> {
        match self {
            Wire::Bytes(message) => message,
            _ => Message::new(&[]),
        }
    }

    /// The text of a field.
    pub(super) fn text(self) -> Result<&'a str, OtlpError> {
        self.message().text()
    }

    /// The number of a varint or a fixed one.
    pub(super) fn number(self) -> u64 {
        match self {
            Wire::Varint(number) | Wire::Fixed64(number) => number,
            Wire::Fixed32(number) => u64::from(number),
            Wire::Bytes(_) => 0,
        }
    }

    /// The float of a fixed one.
    pub(super) fn double(self) -> f64 {
        match self {
            Wire::Fixed64(bits) => f64::from_bits(bits),
            _ => 0.0,
        }
    }
}

/// Goes through the fields of a message.
#[derive(Debug)]
pub(super) struct Fields<'a> {
    message: Message<'a>,
    at: usize,
}

impl<'a> Fields<'a> {
    /// The number and value of the next field; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<(u64, Wire<'a>)>, OtlpError> {
        if self.at == self.message.bytes.len() {
            return Ok(None);
        }
        let key = self.varint()?;
        let value = match key & 7 {
            0 => Wire::Varint(self.varint()?),
            1 => Wire::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let length = self.varint()?;
                let length = usize::try_from(length).map_err(|_| self.broken())?;
                let offset = self.message.offset + self.at;
                Wire::Bytes(Message { bytes: self.take(length)?, offset })
            }
            5 => Wire::Fixed32(u32::from_le_bytes(self.array()?)),
            // Groups have not been used for many years, and OTLP has none.
            _ => return Err(self.broken()),
        };
        Ok(Some((key >> 3, value)))
    }

    fn broken(&self) -> OtlpError {
        OtlpError::Protobuf { offset: self.message.offset + self.at }
    }

    fn varint(&mut self) -> Result<u64, OtlpError> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.array::<1>()?[0];
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(self.broken())
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], OtlpError> {
        let bytes = self.take(N)?;
        bytes.try_into().map_err(|_| self.broken())
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], OtlpError> {
        let end = self.at.checked_add(count).filter(|end| *end <= self.message.bytes.len());
        let bytes = end.map(|end| &self.message.bytes[self.at..end]).ok_or_else(|| self.broken())?;
        self.at += count;
        Ok(bytes)
    }
}
