//! gmond's datagrams: XDR, which is big-endian words of four bytes.

/// Most pairs of extra data of a metric; a datagram has room for fewer.
const EXTRA_MAX: usize = 64;

const METADATA: u32 = 128;
const USHORT: u32 = 129;
const SHORT: u32 = 130;
const INT: u32 = 131;
const UINT: u32 = 132;
const STRING: u32 = 133;
const FLOAT: u32 = 134;
const DOUBLE: u32 = 135;
const REQUEST: u32 = 136;

/// Which metric of which host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricId<'a> {
    /// The sender's name of itself; of a spoofed metric `address:name`.
    pub host: &'a [u8],
    /// The metric.
    pub name: &'a [u8],
    /// Sent on behalf of another host.
    pub is_spoofed: bool,
}

/// What a metric is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricMetadata<'a> {
    /// Its type, such as `uint32`.
    pub kind: &'a [u8],
    /// Its name again.
    pub name: &'a [u8],
    /// Its unit.
    pub units: &'a [u8],
    /// How it changes.
    pub slope: u32,
    /// Seconds between reports, at most.
    pub tmax: u32,
    /// Seconds without a report after which it is gone; 0 = never.
    pub dmax: u32,
    /// Extra data.
    pub extra: Vec<(&'a [u8], &'a [u8])>,
}

/// A value as it travels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WireValue<'a> {
    /// Types 129 and 132.
    Unsigned(u32),
    /// Types 130 and 131.
    Signed(i32),
    /// Type 133.
    Text(&'a [u8]),
    /// Types 134 and 135.
    Float(f64),
}

/// A datagram.
#[derive(Clone, Debug, PartialEq)]
pub enum GmondMessage<'a> {
    /// What a metric is.
    Metadata(MetricId<'a>, MetricMetadata<'a>),
    /// A value with its `printf` format.
    Value(MetricId<'a>, &'a [u8], WireValue<'a>),
    /// A request for metadata.
    Request(MetricId<'a>),
}

/// The words of a slope in XML.
pub fn slope_name(slope: u32) -> &'static str {
    ["zero", "positive", "negative", "both", "unspecified", "derivative"]
        .get(slope as usize)
        .copied()
        .unwrap_or("unspecified")
}

struct Words<'a>(&'a [u8]);

impl<'a> Words<'a> {
    fn word(&mut self) -> Option<u32> {
        let (word, rest) = self.0.split_first_chunk::<4>()?;
        self.0 = rest;
        Some(u32::from_be_bytes(*word))
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        let length = self.word()? as usize;
        let (text, rest) = self.0.split_at_checked(length)?;
        // The last one's padding may be missing.
        self.0 = rest.get((4 - length % 4) % 4..).unwrap_or_default();
        Some(text)
    }

    fn double(&mut self) -> Option<f64> {
        let (high, low) = (self.word()?, self.word()?);
        Some(f64::from_bits(u64::from(high) << 32 | u64::from(low)))
    }
}

impl<'a> GmondMessage<'a> {
    /// Reads a datagram; none if it is not gmond's.
    pub fn decode(bytes: &'a [u8]) -> Option<Self> {
        let mut words = Words(bytes);
        let kind = words.word()?;
        if !(METADATA..=REQUEST).contains(&kind) {
            return None;
        }
        let (host, name) = (words.text()?, words.text()?);
        let id = MetricId { host, name, is_spoofed: words.word()? != 0 };
        if host.is_empty() || name.is_empty() {
            return None;
        }
        if kind == REQUEST {
            return Some(GmondMessage::Request(id));
        }
        if kind == METADATA {
            return Some(GmondMessage::Metadata(id, metadata(&mut words)?));
        }
        let format = words.text()?;
        let value = match kind {
            USHORT => WireValue::Unsigned(words.word()? & 0xffff),
            SHORT => WireValue::Signed(i32::from(words.word()? as i16)),
            INT => WireValue::Signed(words.word()? as i32),
            UINT => WireValue::Unsigned(words.word()?),
            STRING => WireValue::Text(words.text()?),
            FLOAT => WireValue::Float(f64::from(f32::from_bits(words.word()?))),
            DOUBLE => WireValue::Float(words.double()?),
            _ => return None,
        };
        Some(GmondMessage::Value(id, format, value))
    }
}

fn metadata<'a>(words: &mut Words<'a>) -> Option<MetricMetadata<'a>> {
    let (kind, name, units) = (words.text()?, words.text()?, words.text()?);
    let (slope, tmax, dmax) = (words.word()?, words.word()?, words.word()?);
    let count = words.word()? as usize;
    let mut extra = Vec::new();
    for _ in 0..count.min(EXTRA_MAX) {
        extra.push((words.text()?, words.text()?));
    }
    Some(MetricMetadata { kind, name, units, slope, tmax, dmax, extra })
}

fn push_text(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(&(text.len() as u32).to_be_bytes());
    out.extend_from_slice(text);
    out.resize(out.len() + (4 - text.len() % 4) % 4, 0);
}

/// A request for the metadata of a metric: what a receiver answers to values that it does not know.
pub fn encode_request(id: MetricId<'_>) -> Vec<u8> {
    let mut out = REQUEST.to_be_bytes().to_vec();
    push_text(&mut out, id.host);
    push_text(&mut out, id.name);
    out.extend_from_slice(&u32::from(id.is_spoofed).to_be_bytes());
    out
}

/// The text of a value by its sender's `printf` format: what gmond puts into its XML, and what gmetad stores. A format that
/// is not one conversion of a number is replaced by the plain one of the value.
pub fn format_value(format: &[u8], value: WireValue<'_>) -> Vec<u8> {
    let conversion = format.strip_prefix(b"%").and_then(|rest| {
        let (&last, middle) = rest.split_last()?;
        let digits = middle.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'.').count();
        let is_length = middle[digits..].iter().all(|byte| b"hl".contains(byte));
        let precision =
            middle[..digits].iter().position(|&byte| byte == b'.').map(|at| &middle[at + 1..digits]);
        let width = middle[..digits].split(|&byte| byte == b'.').next().unwrap_or_default();
        let number = |text: &[u8]| {
            std::str::from_utf8(text).ok().and_then(|text| text.parse::<usize>().ok()).unwrap_or(0)
        };
        is_length.then(|| (last, number(width).min(64), precision.map(|text| number(text).min(64))))
    });
    let text = match (value, conversion) {
        (WireValue::Text(text), _) => return text.to_vec(),
        (WireValue::Float(number), Some((b'f' | b'F', _, precision))) => {
            format!("{number:.*}", precision.unwrap_or(6))
        }
        (WireValue::Float(number), Some((b'e' | b'g', _, precision))) => {
            let mut out = Vec::new();
            rrd::format::push_general(&mut out, number, precision.unwrap_or(6).clamp(1, 17));
            String::from_utf8_lossy(&out).into_owned()
        }
        (WireValue::Float(number), _) => format!("{number:.6}"),
        (WireValue::Unsigned(number), _) => number.to_string(),
        (WireValue::Signed(number), Some((b'u', ..))) => (number as u32).to_string(),
        (WireValue::Signed(number), _) => number.to_string(),
    };
    let width = conversion.map_or(0, |conversion| conversion.1);
    format!("{text:>width$}").into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_their_sender_s_format() {
        let check = |format: &str, value, want: &str| {
            assert_eq!(String::from_utf8(format_value(format.as_bytes(), value)).unwrap(), want, "{format}");
        };
        check("%.1f", WireValue::Float(4.25), "4.2");
        check("%.2f", WireValue::Float(0.005), "0.01");
        check("%f", WireValue::Float(1.0), "1.000000");
        check("%5.1f", WireValue::Float(1.0), "  1.0");
        check("%u", WireValue::Unsigned(u32::MAX), "4294967295");
        check("%hu", WireValue::Unsigned(7), "7");
        check("%d", WireValue::Signed(-7), "-7");
        check("%s", WireValue::Text(b"Linux"), "Linux");
        check("%n%s", WireValue::Float(1.5), "1.500000");
        check("", WireValue::Unsigned(3), "3");
    }

    #[test]
    fn a_request_is_read_back() {
        let id = MetricId { host: b"h:1", name: b"load", is_spoofed: true };
        assert_eq!(GmondMessage::decode(&encode_request(id)), Some(GmondMessage::Request(id)));
        for bytes in
            [&b""[..], &[0, 0, 0, 128], &[0, 0, 0, 136, 255, 255, 255, 255], &[0, 0, 0, 137, 0, 0, 0, 0]]
        {
            assert_eq!(GmondMessage::decode(bytes), None);
        }
    }
}
