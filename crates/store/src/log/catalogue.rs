//! The bodies of the records that create, change and remove RRDs, and the compact encoding of a definition.
//!
//! `docs/format/log.md` describes the bytes. Each value has exactly one encoding, so the bytes of a
//! definition serve as its key; doubles keep every bit; decoders never panic and never allocate more than the
//! bytes at hand justify. They check the form, and that nothing divides by zero; whether a definition makes
//! sense was decided before it was logged. Records refer to RRDs by id; those that give a name or take it away carry
//! the name.

mod definition;

use rrd::content::Rrd;
use rrd::definition::Definition;
use rrd::live::{HeadShape, Live, Season};

pub use definition::{decode_definition, encode_definition, put_definition, take_definition};

use crate::codec::{Cursor, DecodeError, put_counted, put_double, put_signed};
use crate::streams::StreamPosition;
use rrd::codec::varint;

/// zstd level of an import. Rows that are mostly unknown or repeat compress well at any level; 3 is the
/// library's default.
const ZSTD_LEVEL: i32 = 3;
/// The largest uncompressed size of one RRD: what a 1 GiB `.rrd` file holds. A record that claims more is
/// refused before anything is allocated.
pub const RRD_BYTES_MAX: usize = 1 << 30;

/// A new RRD, which replaces any of the same name.
#[derive(Clone, Debug, PartialEq)]
pub struct Create<'a> {
    /// Its id.
    pub id: u32,
    /// Its name.
    pub name: &'a [u8],
    /// What it is.
    pub definition: Definition,
    /// Its start, in seconds since the epoch.
    pub start: i64,
}

impl<'a> Create<'a> {
    /// Appends the body of a record.
    pub fn encode(out: &mut Vec<u8>, id: u32, name: &[u8], definition: &Definition, start: i64) {
        varint::put(out, u64::from(id));
        put_counted(out, name);
        put_signed(out, start);
        put_definition(out, definition);
    }

    /// Decodes the body of a record.
    ///
    /// # Errors
    /// When the bytes are malformed.
    pub fn decode(body: &'a [u8]) -> Result<Self, DecodeError> {
        let mut cursor = Cursor::new(body);
        let id = cursor.number("the id")?;
        let name = cursor.counted_bytes("the name")?;
        let start = cursor.signed("the start")?;
        let definition = take_definition(&mut cursor)?;
        cursor.end()?;
        Ok(Create { id, name, definition, start })
    }
}

/// Changes by the arguments of `tune`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tune {
    /// The RRD.
    pub id: u32,
    /// The arguments that `rrdtune(1)` takes after the file name.
    pub args: Vec<String>,
}

impl Tune {
    /// Appends the body of a record.
    pub fn encode(out: &mut Vec<u8>, id: u32, args: &[String]) {
        varint::put(out, u64::from(id));
        varint::put(out, args.len() as u64);
        for arg in args {
            put_counted(out, arg.as_bytes());
        }
    }

    /// Decodes the body of a record.
    ///
    /// # Errors
    /// When the bytes are malformed.
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let mut cursor = Cursor::new(body);
        let id = cursor.number("the id")?;
        let args = (0..cursor.count(1, "the number of arguments")?)
            .map(|_| cursor.text("a word").map(str::to_owned))
            .collect::<Result<_, _>>()?;
        cursor.end()?;
        Ok(Tune { id, args })
    }
}

/// Removal of an RRD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delete<'a> {
    /// The RRD.
    pub id: u32,
    /// The name it had, unless an early build wrote the record.
    pub name: Option<&'a [u8]>,
}

impl<'a> Delete<'a> {
    /// Appends the body of a record.
    pub fn encode(out: &mut Vec<u8>, id: u32, name: Option<&[u8]>) {
        varint::put(out, u64::from(id));
        put_last_name(out, name);
    }

    /// Decodes the body of a record.
    ///
    /// # Errors
    /// When the bytes are malformed.
    pub fn decode(body: &'a [u8]) -> Result<Self, DecodeError> {
        let mut cursor = Cursor::new(body);
        let id = cursor.number("the id")?;
        let name = take_last_name(&mut cursor)?;
        Ok(Delete { id, name })
    }
}

/// Appends the name that an RRD had, the last thing in a body.
fn put_last_name(out: &mut Vec<u8>, name: Option<&[u8]>) {
    if let Some(name) = name {
        put_counted(out, name);
    }
}

fn take_last_name<'a>(cursor: &mut Cursor<'a>) -> Result<Option<&'a [u8]>, DecodeError> {
    let name = match cursor.left() {
        0 => None,
        _ => Some(cursor.counted_bytes("the name it had")?),
    };
    cursor.end()?;
    Ok(name)
}

/// A new name, which replaces any RRD that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rename<'a> {
    /// The RRD.
    pub id: u32,
    /// Its new name.
    pub name: &'a [u8],
    /// The name it had, unless an early build wrote the record.
    pub from: Option<&'a [u8]>,
}

impl<'a> Rename<'a> {
    /// Appends the body of a record.
    pub fn encode(out: &mut Vec<u8>, id: u32, name: &[u8], from: Option<&[u8]>) {
        varint::put(out, u64::from(id));
        put_counted(out, name);
        put_last_name(out, from);
    }

    /// Decodes the body of a record.
    ///
    /// # Errors
    /// When the bytes are malformed.
    pub fn decode(body: &'a [u8]) -> Result<Self, DecodeError> {
        let mut cursor = Cursor::new(body);
        let id = cursor.number("the id")?;
        let name = cursor.counted_bytes("the name")?;
        let from = take_last_name(&mut cursor)?;
        Ok(Rename { id, name, from })
    }
}

/// How far a stream has been applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// Everything up to here is durable in the logs of all shards.
    pub position: StreamPosition,
}

impl<'a> Stream<'a> {
    /// Appends the body of a record.
    pub fn encode(out: &mut Vec<u8>, name: &[u8], position: StreamPosition) {
        put_counted(out, name);
        varint::put(out, position.epoch);
        varint::put(out, position.sequence);
    }

    /// Decodes the body of a record.
    ///
    /// # Errors
    /// When the bytes are malformed.
    pub fn decode(body: &'a [u8]) -> Result<Self, DecodeError> {
        let mut cursor = Cursor::new(body);
        let name = cursor.counted_bytes("the name")?;
        let epoch = cursor.varint("the epoch")?;
        let sequence = cursor.varint("the number")?;
        cursor.end()?;
        Ok(Stream { name, position: StreamPosition { epoch, sequence } })
    }
}

/// What the RRDs of some ids are at this position. It changes nothing: a copy that finds something else knows that it is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyCheck {
    /// The first id.
    pub first: u32,
    /// How many ids, of which some may be unused.
    pub count: u32,
    /// Their hash, as the state computes it.
    pub hash: u64,
}

impl CopyCheck {
    /// Appends the body of a record.
    pub fn encode(&self, out: &mut Vec<u8>) {
        varint::put(out, u64::from(self.first));
        varint::put(out, u64::from(self.count));
        out.extend_from_slice(&self.hash.to_le_bytes());
    }

    /// Decodes the body of a record.
    ///
    /// # Errors
    /// When the bytes are malformed.
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let mut cursor = Cursor::new(body);
        let [first, count] = [cursor.number("the first id")?, cursor.number("the number of ids")?];
        let bad = cursor.bad("a hash");
        let hash = u64::from_le_bytes(cursor.take_rest().try_into().map_err(|_| bad)?);
        Ok(CopyCheck { first, count, hash })
    }
}

/// Here every copy of the shard hashes the RRDs of some ids, with all of their rows, and keeps the hashes for who compares them. It changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowCheck {
    /// Under which number the hashes are kept.
    pub number: u64,
    /// The first id.
    pub first: u32,
    /// How many ids, of which some may be unused.
    pub count: u32,
}

impl RowCheck {
    /// Appends the body of a record.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.number.to_le_bytes());
        varint::put(out, u64::from(self.first));
        varint::put(out, u64::from(self.count));
    }

    /// Decodes the body of a record.
    ///
    /// # Errors
    /// When the bytes are malformed.
    pub fn decode(body: &[u8]) -> Result<Self, DecodeError> {
        let mut cursor = Cursor::new(body);
        let mut number = [0; 8];
        number.copy_from_slice(cursor.bytes(8, "the number of a check")?);
        let [first, count] = [cursor.number("the first id")?, cursor.number("the number of ids")?];
        cursor.end()?;
        Ok(RowCheck { number: u64::from_le_bytes(number), first, count })
    }
}

/// A whole RRD, which replaces any of the same name.
#[derive(Clone, Debug, PartialEq)]
pub struct Import<'a> {
    /// Its id.
    pub id: u32,
    /// Its name.
    pub name: &'a [u8],
    /// Its content.
    pub rrd: Rrd,
}

impl<'a> Import<'a> {
    /// Appends the body of a record. Takes one more copy of the RRD in memory.
    ///
    /// # Errors
    /// The uncompressed size of an RRD beyond [`RRD_BYTES_MAX`]; nothing is appended then.
    pub fn encode(out: &mut Vec<u8>, id: u32, name: &[u8], rrd: &Rrd) -> Result<(), usize> {
        let plain = encode_rrd(rrd);
        if plain.len() > RRD_BYTES_MAX {
            return Err(plain.len());
        }
        varint::put(out, u64::from(id));
        put_counted(out, name);
        varint::put(out, plain.len() as u64);
        let packed = zstd::bulk::compress(&plain, ZSTD_LEVEL);
        out.extend_from_slice(&packed.expect("zstd packs any bytes into a buffer of its own"));
        Ok(())
    }

    /// Decodes the body of a record.
    ///
    /// # Errors
    /// When the bytes are malformed, or decompress to more than [`RRD_BYTES_MAX`].
    pub fn decode(body: &'a [u8]) -> Result<Self, DecodeError> {
        const PACKED: &str = "a packed RRD of the length given";
        let mut cursor = Cursor::new(body);
        let id = cursor.number("the id")?;
        let name = cursor.counted_bytes("the name")?;
        let length_at = cursor.bad("the length of an RRD, at most 1 GiB");
        let length: usize = cursor.number(length_at.expected)?;
        if length > RRD_BYTES_MAX {
            return Err(length_at);
        }
        let packed_at = cursor.bad(PACKED);
        let plain = unpack(cursor.take_rest(), length).ok_or(packed_at)?;
        // An error inside has no offset in the body, so it is reported at the start of the compressed bytes.
        let rrd = decode_rrd(&plain).map_err(|error| DecodeError { offset: packed_at.offset, ..error })?;
        Ok(Import { id, name, rrd })
    }
}

/// Decompresses exactly `length` bytes; the buffer grows only with what is really produced.
pub fn unpack(packed: &[u8], length: usize) -> Option<Vec<u8>> {
    use std::io::Read;
    let mut plain = Vec::new();
    let decoder = zstd::stream::read::Decoder::with_buffer(packed).ok()?;
    decoder.take(length as u64 + 1).read_to_end(&mut plain).ok()?;
    (plain.len() == length).then_some(plain)
}

/// The uncompressed encoding of an RRD: definition, head, seasons, archives.
pub fn encode_rrd(rrd: &Rrd) -> Vec<u8> {
    let row_bytes: usize = rrd.archives.iter().map(|rows| rows.len() * 8).sum();
    let mut out = Vec::with_capacity(row_bytes + rrd.live.words.len() * 8 + 1024);
    put_definition(&mut out, &rrd.definition);
    put_live(&mut out, &rrd.live);
    varint::put(&mut out, rrd.archives.len() as u64);
    for rows in &rrd.archives {
        put_doubles(&mut out, rows);
    }
    out
}

/// Appends a live head.
pub fn put_live(out: &mut Vec<u8>, live: &Live) {
    varint::put(out, live.words.len() as u64);
    for word in &live.words {
        out.extend_from_slice(&word.to_le_bytes());
    }
    varint::put(out, live.seasons.len() as u64);
    for season in &live.seasons {
        varint::put(out, season.rra as u64);
        varint::put(out, season.current_row);
        put_doubles(out, &season.values);
    }
}

/// Takes what [`put_live`] wrote for an RRD of this definition, whose head it must fit.
///
/// # Errors
/// When the bytes are malformed.
pub fn take_live(cursor: &mut Cursor<'_>, definition: &Definition) -> Result<Live, DecodeError> {
    let words_at = cursor.bad("as many words as the head of the definition has");
    let word_count = cursor.count(8, words_at.expected)?;
    let words = (0..word_count)
        .map(|_| cursor.double("a word of the head").map(f64::to_bits))
        .collect::<Result<_, _>>()?;
    let season_count = cursor.count(3, "the number of seasons")?;
    let mut seasons = Vec::new();
    for _ in 0..season_count {
        let rra_at = cursor.bad("an archive of the definition");
        let rra = cursor.number(rra_at.expected)?;
        if rra >= definition.rra.len() {
            return Err(rra_at);
        }
        let current_row = cursor.varint("the row of a season")?;
        seasons.push(Season { rra, current_row, values: take_doubles(cursor)? });
    }
    let live = Live { words, seasons };
    if HeadShape::of(definition).word_count() == live.words.len() { Ok(live) } else { Err(words_at) }
}

/// Decodes the uncompressed encoding of an RRD. Checks that the head has the length that the definition
/// demands, and that seasons and archives belong to archives of the definition.
///
/// # Errors
/// When the bytes are malformed.
pub fn decode_rrd(bytes: &[u8]) -> Result<Rrd, DecodeError> {
    let mut cursor = Cursor::new(bytes);
    let definition = take_definition(&mut cursor)?;
    let live = take_live(&mut cursor, &definition)?;
    let rra_count = definition.rra.len();
    let archives_at = cursor.bad("one set of rows for each archive");
    if cursor.count(1, archives_at.expected)? != rra_count {
        return Err(archives_at);
    }
    let archives = (0..rra_count).map(|_| take_doubles(&mut cursor)).collect::<Result<_, _>>()?;
    cursor.end()?;
    Ok(Rrd { definition, live, archives })
}

/// Appends values, with their count.
pub fn put_doubles(out: &mut Vec<u8>, values: &[f64]) {
    varint::put(out, values.len() as u64);
    for &value in values {
        put_double(out, value);
    }
}

/// Takes what [`put_doubles`] wrote.
///
/// # Errors
/// When the bytes are malformed.
pub fn take_doubles(cursor: &mut Cursor<'_>) -> Result<Vec<f64>, DecodeError> {
    let count = cursor.count(8, "the number of values")?;
    (0..count).map(|_| cursor.double("a value")).collect()
}

#[cfg(test)]
pub(super) mod tests;
