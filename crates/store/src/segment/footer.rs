//! Head and footer of a segment file: identification, sources, and the directory of blocks.
//!
//! The trailer, the last bytes of the file, is read first; its length field reveals a truncated file.

use super::block::SegmentSeal;
use super::{BLOCK_BYTES_MAX, Fault, SegmentError, SourceSummary, VERSION};
use crate::column::codec::ColumnHint;

/// First bytes of a segment.
pub(crate) const HEAD_MAGIC: [u8; 8] = *b"RNDLSEGM";
/// First bytes of the trailer.
pub(super) const TRAILER_MAGIC: [u8; 8] = *b"RNDLSEGF";

/// Bytes before the first block.
pub(super) const FILE_HEAD_BYTES: usize = 32;
pub(super) const HEAD_MAGIC_AT: usize = 0;
pub(super) const HEAD_VERSION_AT: usize = 8;
/// Version of the head; version 1 has zeros for the owner, and the blocks of version 2 do not name it.
pub(super) const HEAD_VERSION: u32 = 3;
pub(super) const HEAD_SEGMENT_ID_AT: usize = 16;
pub(super) const HEAD_OWNER_AT: usize = 24;
pub(super) const HEAD_CHECKSUM_AT: usize = 28;

/// Bytes of a source in the footer.
pub(super) const SOURCE_BYTES: usize = 64;
pub(super) const SOURCE_GROUP_AT: usize = 0;
pub(super) const SOURCE_SOURCE_AT: usize = 4;
pub(super) const SOURCE_DS_COUNT_AT: usize = 6;
pub(super) const SOURCE_UNITS_AT: usize = 8;
pub(super) const SOURCE_ZERO_AT: usize = 12;
pub(super) const SOURCE_STEP_AT: usize = 16;
pub(super) const SOURCE_PDP_PER_ROW_AT: usize = 24;
pub(super) const SOURCE_FIRST_ROW_AT: usize = 32;
pub(super) const SOURCE_END_ROW_AT: usize = 40;
pub(super) const SOURCE_ENTRY_COUNT_AT: usize = 48;
pub(super) const SOURCE_ENTRY_BYTES_AT: usize = 56;

/// Bytes of a block in the directory.
pub(super) const PLACE_BYTES: usize = 24;
pub(super) const PLACE_OFFSET_AT: usize = 0;
pub(super) const PLACE_SOURCE_AT: usize = 8;
pub(super) const PLACE_SLOT_AT: usize = 12;
pub(super) const PLACE_ROW_AT: usize = 16;
pub(super) const PLACE_ZERO_AT: usize = 20;

/// Bytes of the trailer.
pub(super) const TRAILER_BYTES: usize = 64;
pub(super) const TRAILER_MAGIC_AT: usize = 0;
pub(super) const TRAILER_VERSION_AT: usize = 8;
pub(super) const TRAILER_FOOTER_CHECKSUM_AT: usize = 12;
pub(super) const TRAILER_FILE_BYTES_AT: usize = 16;
pub(super) const TRAILER_FOOTER_OFFSET_AT: usize = 24;
pub(super) const TRAILER_SOURCE_COUNT_AT: usize = 32;
pub(super) const TRAILER_BLOCK_COUNT_AT: usize = 36;
pub(super) const TRAILER_SEGMENT_ID_AT: usize = 40;
pub(super) const TRAILER_ENTRY_COUNT_AT: usize = 48;
pub(super) const TRAILER_OWNER_AT: usize = 56;
pub(super) const TRAILER_CHECKSUM_AT: usize = 60;

/// Where a block begins, and its first run. It ends where the next block begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockPlace {
    pub offset: u64,
    /// Index into the sources.
    pub source_index: u32,
    pub slot: u32,
    /// First row, relative to the oldest row of the source; `u32::MAX` means that or more.
    pub row: u32,
}

/// The decoded footer.
#[derive(Debug)]
pub(super) struct Footer {
    pub segment_id: u64,
    pub footer_offset: u64,
    pub entry_count: u64,
    pub sources: Vec<SourceSummary>,
    pub directory: Vec<BlockPlace>,
}

/// The fixed-size part of the footer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trailer {
    pub footer_offset: u64,
    footer_checksum: u32,
    pub source_count: u32,
    pub block_count: u32,
    pub segment_id: u64,
    entry_count: u64,
    /// The tag of its shard; 0 = not known.
    pub owner: u32,
    version: u32,
}

/// What the bytes before the first block say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileHead {
    pub segment_id: u64,
    /// The tag of its shard; 0 = not known.
    pub owner: u32,
    version: u32,
}

impl FileHead {
    /// What its blocks are sealed with.
    pub(super) fn seal(&self) -> SegmentSeal {
        SegmentSeal::new(self.version, self.segment_id, self.owner)
    }
}

fn set32(bytes: &mut [u8], at: usize, value: u32) {
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
}

fn set64(bytes: &mut [u8], at: usize, value: u64) {
    bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
}

fn get16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn get32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn get64(bytes: &[u8], at: usize) -> u64 {
    u64::from(get32(bytes, at)) | u64::from(get32(bytes, at + 4)) << 32
}

/// The bytes before the first block.
pub(super) fn file_head(segment_id: u64, owner: u32) -> [u8; FILE_HEAD_BYTES] {
    head_of_version(HEAD_VERSION, segment_id, owner)
}

fn head_of_version(version: u32, segment_id: u64, owner: u32) -> [u8; FILE_HEAD_BYTES] {
    let mut bytes = [0; FILE_HEAD_BYTES];
    bytes[HEAD_MAGIC_AT..][..8].copy_from_slice(&HEAD_MAGIC);
    set32(&mut bytes, HEAD_VERSION_AT, version);
    set64(&mut bytes, HEAD_SEGMENT_ID_AT, segment_id);
    set32(&mut bytes, HEAD_OWNER_AT, owner);
    let checksum = crc32c::crc32c(&bytes[..HEAD_CHECKSUM_AT]);
    set32(&mut bytes, HEAD_CHECKSUM_AT, checksum);
    bytes
}

/// Reads the bytes before the first block; `None` if they are damaged.
pub(super) fn decode_file_head(bytes: &[u8; FILE_HEAD_BYTES]) -> Option<FileHead> {
    let (segment_id, owner) = (get64(bytes, HEAD_SEGMENT_ID_AT), get32(bytes, HEAD_OWNER_AT));
    let version = get32(bytes, HEAD_VERSION_AT);
    let is_known = (1..=HEAD_VERSION).contains(&version) && (version > 1 || owner == 0);
    let is_good = is_known && *bytes == head_of_version(version, segment_id, owner);
    is_good.then_some(FileHead { segment_id, owner, version })
}

/// Checks the bytes before the first block; they are needed only if the footer is lost.
pub(super) fn check_file_head(
    bytes: &[u8; FILE_HEAD_BYTES],
    segment_id: u64,
    owner: u32,
) -> Result<(), Fault> {
    let is_its = |head: FileHead| head.segment_id == segment_id && (head.owner == owner || head.version == 1);
    if decode_file_head(bytes).is_some_and(is_its) {
        return Ok(());
    }
    let want = file_head(segment_id, owner);
    let at = (0..FILE_HEAD_BYTES).find(|&at| bytes[at] != want[at]).unwrap_or(0);
    Err(Fault::new(at, format!("the head of segment {segment_id}"), bytes.escape_ascii().to_string()))
}

/// Encodes what follows the last block, from `footer_offset` on.
pub(super) fn encode(
    segment_id: u64,
    owner: u32,
    footer_offset: u64,
    entry_count: u64,
    sources: &[SourceSummary],
    directory: &[BlockPlace],
) -> Vec<u8> {
    let mut bytes =
        Vec::with_capacity(sources.len() * SOURCE_BYTES + directory.len() * PLACE_BYTES + TRAILER_BYTES);
    sources.iter().for_each(|source| bytes.extend_from_slice(&encode_source(source)));
    directory.iter().for_each(|place| bytes.extend_from_slice(&encode_place(place)));
    let trailer = Trailer {
        footer_offset,
        footer_checksum: crc32c::crc32c(&bytes),
        source_count: sources.len() as u32,
        block_count: directory.len() as u32,
        segment_id,
        entry_count,
        owner,
        version: VERSION,
    };
    let file_bytes = footer_offset + (bytes.len() + TRAILER_BYTES) as u64;
    bytes.extend_from_slice(&trailer.encode(file_bytes));
    bytes
}

/// Encodes the trailer of a footer whose `body` starts with `source_count` sources.
pub(super) fn encode_trailer(
    segment_id: u64,
    footer_offset: u64,
    body: &[u8],
    source_count: usize,
) -> [u8; TRAILER_BYTES] {
    let block_count = (body.len().saturating_sub(source_count * SOURCE_BYTES) / PLACE_BYTES) as u32;
    let footer_checksum = crc32c::crc32c(body);
    let source_count = source_count as u32;
    let trailer = Trailer {
        footer_offset,
        footer_checksum,
        source_count,
        block_count,
        segment_id,
        entry_count: 1,
        owner: 0,
        version: VERSION,
    };
    trailer.encode(footer_offset + (body.len() + TRAILER_BYTES) as u64)
}

impl Trailer {
    /// What the blocks are sealed with.
    pub(super) fn seal(&self) -> SegmentSeal {
        SegmentSeal::new(self.version, self.segment_id, self.owner)
    }

    fn encode(&self, file_bytes: u64) -> [u8; TRAILER_BYTES] {
        let mut bytes = [0; TRAILER_BYTES];
        bytes[TRAILER_MAGIC_AT..][..8].copy_from_slice(&TRAILER_MAGIC);
        set32(&mut bytes, TRAILER_VERSION_AT, self.version);
        set32(&mut bytes, TRAILER_FOOTER_CHECKSUM_AT, self.footer_checksum);
        set64(&mut bytes, TRAILER_FILE_BYTES_AT, file_bytes);
        set64(&mut bytes, TRAILER_FOOTER_OFFSET_AT, self.footer_offset);
        set32(&mut bytes, TRAILER_SOURCE_COUNT_AT, self.source_count);
        set32(&mut bytes, TRAILER_BLOCK_COUNT_AT, self.block_count);
        set64(&mut bytes, TRAILER_SEGMENT_ID_AT, self.segment_id);
        set64(&mut bytes, TRAILER_ENTRY_COUNT_AT, self.entry_count);
        set32(&mut bytes, TRAILER_OWNER_AT, self.owner);
        let checksum = crc32c::crc32c(&bytes[..TRAILER_CHECKSUM_AT]);
        set32(&mut bytes, TRAILER_CHECKSUM_AT, checksum);
        bytes
    }
}

fn encode_source(source: &SourceSummary) -> [u8; SOURCE_BYTES] {
    let mut bytes = [0; SOURCE_BYTES];
    set32(&mut bytes, SOURCE_GROUP_AT, source.group);
    bytes[SOURCE_SOURCE_AT..][..2].copy_from_slice(&source.source.to_le_bytes());
    bytes[SOURCE_DS_COUNT_AT..][..2].copy_from_slice(&source.ds_count.to_le_bytes());
    set32(&mut bytes, SOURCE_UNITS_AT, source.hint.units_per_second);
    set64(&mut bytes, SOURCE_STEP_AT, source.hint.step);
    set64(&mut bytes, SOURCE_PDP_PER_ROW_AT, source.hint.pdp_per_row);
    set64(&mut bytes, SOURCE_FIRST_ROW_AT, source.first_row as u64);
    set64(&mut bytes, SOURCE_END_ROW_AT, source.end_row as u64);
    set64(&mut bytes, SOURCE_ENTRY_COUNT_AT, source.entry_count);
    set64(&mut bytes, SOURCE_ENTRY_BYTES_AT, source.bytes);
    bytes
}

fn decode_source(bytes: &[u8]) -> SourceSummary {
    SourceSummary {
        group: get32(bytes, SOURCE_GROUP_AT),
        source: get16(bytes, SOURCE_SOURCE_AT),
        ds_count: get16(bytes, SOURCE_DS_COUNT_AT),
        hint: ColumnHint {
            units_per_second: get32(bytes, SOURCE_UNITS_AT),
            step: get64(bytes, SOURCE_STEP_AT),
            pdp_per_row: get64(bytes, SOURCE_PDP_PER_ROW_AT),
        },
        first_row: get64(bytes, SOURCE_FIRST_ROW_AT) as i64,
        end_row: get64(bytes, SOURCE_END_ROW_AT) as i64,
        entry_count: get64(bytes, SOURCE_ENTRY_COUNT_AT),
        bytes: get64(bytes, SOURCE_ENTRY_BYTES_AT),
    }
}

fn encode_place(place: &BlockPlace) -> [u8; PLACE_BYTES] {
    let mut bytes = [0; PLACE_BYTES];
    set64(&mut bytes, PLACE_OFFSET_AT, place.offset);
    set32(&mut bytes, PLACE_SOURCE_AT, place.source_index);
    set32(&mut bytes, PLACE_SLOT_AT, place.slot);
    set32(&mut bytes, PLACE_ROW_AT, place.row);
    bytes
}

/// How many bytes of a segment of `file_bytes` follow its last block: what opening it reads. `read` fills a buffer from an
/// offset on.
///
/// # Errors
/// When the trailer cannot be read or is damaged.
pub fn end_bytes(
    file_bytes: u64,
    file: &str,
    read: &mut dyn FnMut(u64, &mut [u8]) -> std::io::Result<()>,
) -> Result<u64, SegmentError> {
    if file_bytes < (FILE_HEAD_BYTES + TRAILER_BYTES) as u64 {
        return Ok(file_bytes);
    }
    let offset = file_bytes - TRAILER_BYTES as u64;
    let mut trailer = [0; TRAILER_BYTES];
    read(offset, &mut trailer).map_err(|error| SegmentError::Io { file: file.into(), offset, error })?;
    Ok(file_bytes - decode_trailer(&trailer, file_bytes, file)?.footer_offset)
}

/// Decodes the last [`TRAILER_BYTES`] bytes of a file of `file_bytes`.
pub(super) fn decode_trailer(bytes: &[u8], file_bytes: u64, file: &str) -> Result<Trailer, SegmentError> {
    let base = file_bytes - TRAILER_BYTES as u64;
    let bad = |at, expected: String, got: String| Err(Fault::new(at, expected, got).in_file(file, base));
    if bytes[TRAILER_MAGIC_AT..][..8] != TRAILER_MAGIC {
        let got = bytes[..8].escape_ascii().to_string();
        return bad(TRAILER_MAGIC_AT, "the trailer RNDLSEGF of a whole segment".into(), got);
    }
    let (stored, computed) =
        (get32(bytes, TRAILER_CHECKSUM_AT), crc32c::crc32c(&bytes[..TRAILER_CHECKSUM_AT]));
    if stored != computed {
        return bad(TRAILER_CHECKSUM_AT, format!("checksum {stored:08x}"), format!("{computed:08x}"));
    }
    let version = get32(bytes, TRAILER_VERSION_AT);
    if version > VERSION {
        return Err(SegmentError::Newer { file: file.into(), version });
    }
    if version == 0 {
        return bad(TRAILER_VERSION_AT, format!("version 1 to {VERSION}"), version.to_string());
    }
    let owner = get32(bytes, TRAILER_OWNER_AT);
    if version == 1 && owner != 0 {
        return bad(TRAILER_OWNER_AT, "zero".into(), owner.to_string());
    }
    let stored_bytes = get64(bytes, TRAILER_FILE_BYTES_AT);
    if stored_bytes != file_bytes {
        let got = format!("{file_bytes} bytes");
        return bad(TRAILER_FILE_BYTES_AT, format!("a file of {stored_bytes} bytes"), got);
    }
    let trailer = Trailer {
        footer_offset: get64(bytes, TRAILER_FOOTER_OFFSET_AT),
        footer_checksum: get32(bytes, TRAILER_FOOTER_CHECKSUM_AT),
        source_count: get32(bytes, TRAILER_SOURCE_COUNT_AT),
        block_count: get32(bytes, TRAILER_BLOCK_COUNT_AT),
        segment_id: get64(bytes, TRAILER_SEGMENT_ID_AT),
        entry_count: get64(bytes, TRAILER_ENTRY_COUNT_AT),
        owner,
        version,
    };
    let body_bytes = u64::from(trailer.source_count) * SOURCE_BYTES as u64
        + u64::from(trailer.block_count) * PLACE_BYTES as u64;
    if trailer.footer_offset < FILE_HEAD_BYTES as u64
        || trailer.footer_offset.checked_add(body_bytes) != Some(base)
    {
        let got = trailer.footer_offset.to_string();
        return bad(TRAILER_FOOTER_OFFSET_AT, "the offset of the footer".into(), got);
    }
    Ok(trailer)
}

/// Decodes the bytes between the last block and the trailer.
pub(super) fn decode(bytes: &[u8], trailer: &Trailer, file: &str) -> Result<Footer, SegmentError> {
    let in_file = |fault: Fault| fault.in_file(file, trailer.footer_offset);
    let (stored, computed) = (trailer.footer_checksum, crc32c::crc32c(bytes));
    if stored != computed {
        return Err(in_file(Fault::new(0, format!("checksum {stored:08x}"), format!("{computed:08x}"))));
    }
    let (source_bytes, place_bytes) = bytes.split_at(trailer.source_count as usize * SOURCE_BYTES);
    let unused = |records: &[u8], record_bytes, at| {
        records.chunks_exact(record_bytes).any(|record: &[u8]| get32(record, at) != 0)
    };
    if unused(source_bytes, SOURCE_BYTES, SOURCE_ZERO_AT) || unused(place_bytes, PLACE_BYTES, PLACE_ZERO_AT) {
        return Err(in_file(Fault::new(0, "zero in unused bytes", "other")));
    }
    let sources: Vec<SourceSummary> = source_bytes.chunks_exact(SOURCE_BYTES).map(decode_source).collect();
    let places = place_bytes.chunks_exact(PLACE_BYTES);
    let directory: Vec<BlockPlace> = places.map(decode_place).collect();
    let footer = Footer {
        segment_id: trailer.segment_id,
        footer_offset: trailer.footer_offset,
        entry_count: trailer.entry_count,
        sources,
        directory,
    };
    check(&footer).map_err(in_file)?;
    Ok(footer)
}

fn decode_place(bytes: &[u8]) -> BlockPlace {
    BlockPlace {
        offset: get64(bytes, PLACE_OFFSET_AT),
        source_index: get32(bytes, PLACE_SOURCE_AT),
        slot: get32(bytes, PLACE_SLOT_AT),
        row: get32(bytes, PLACE_ROW_AT),
    }
}

/// Checks what the reader relies on, even if the checksum is good.
fn check(footer: &Footer) -> Result<(), Fault> {
    let sorted = footer.sources.is_sorted_by(|a, b| (a.group, a.source) < (b.group, b.source));
    let sound = |source: &SourceSummary| source.first_row < source.end_row && source.ds_count > 0;
    if !sorted || !footer.sources.iter().all(sound) {
        return Err(Fault::new(0, "sources in order, with rows", "other"));
    }
    let at = footer.sources.len() * SOURCE_BYTES;
    let keys_sorted = footer
        .directory
        .is_sorted_by(|a, b| (a.source_index, a.slot, a.row) <= (b.source_index, b.slot, b.row));
    let sources_exist =
        footer.directory.iter().all(|place| (place.source_index as usize) < footer.sources.len());
    if !keys_sorted || !sources_exist {
        return Err(Fault::new(at, "blocks in the order of their keys", "other"));
    }
    let begins = footer.directory.first().map_or(footer.footer_offset, |place| place.offset);
    let offsets = footer.directory.iter().map(|place| place.offset);
    let ends = offsets.clone().skip(1).chain([footer.footer_offset]);
    let lengths_sound = offsets.zip(ends).all(|(from, to)| from < to && to - from <= BLOCK_BYTES_MAX as u64);
    if begins != FILE_HEAD_BYTES as u64 || !lengths_sound {
        return Err(Fault::new(at, "blocks that follow each other", "other"));
    }
    Ok(())
}
