//! Placeholders: files that lie in the tree where programs expect `NAME.rrd`.
//!
//! A placeholder is a sparse regular file as long as the real `.rrd` would be. It begins with our own magic,
//! so that a stock rrdtool says "is not an RRD file" instead of reading old data, and names the store and the
//! RRD there. It holds no data: a lost or torn one is simply written again. So nothing here syncs. Layout:
//! `docs/format/placeholder.md`.
//!
//! Cost of a new one: openat, pwrite, ftruncate, close. Measured on one core of an AMD EPYC: 34,000/s on a
//! fresh ext4, 75,000 to 81,000/s on tmpfs. After 40,000 files were removed from that ext4 it is 1,500 to
//! 3,600/s for some minutes, all of it in the kernel's search for an inode (`recently_deleted`).

mod look;
mod own;

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};

use crate::file::Access;
use crate::handle::Handle;
use crate::name::{NAME_BYTES_MAX, RrdName};
use crate::tree::Tree;

pub use look::{FileId, Found};

/// The first bytes of every placeholder.
pub const MAGIC: [u8; 8] = *b"ROUNDELP";
/// The version of the format that this release writes.
pub const VERSION: u32 = 1;
/// Bytes before the name.
pub const HEADER_BYTES: usize = 40;

/// Bytes after the name: shard, id, and the CRC32C of everything up to there.
const NUMBER_BYTES: usize = 12;

const OFFSET_VERSION: usize = 8;
const OFFSET_NAME_BYTES: usize = 12;
const OFFSET_IDENTITY: usize = 16;
const OFFSET_CHECKSUM: usize = 32;
const OFFSET_RESERVED: usize = 36;

/// Identifies the store of a placeholder; random, drawn when the store is created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StoreIdentity(pub [u8; 16]);

impl std::fmt::Display for StoreIdentity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Which RRD of a store, whatever its name: it keeps this number when it is renamed, and no other RRD gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RrdNumber {
    /// The shard.
    pub shard: u32,
    /// The RRD's id there.
    pub id: u32,
}

/// The content of a placeholder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placeholder {
    /// The store.
    pub store: StoreIdentity,
    /// The name of the RRD there.
    pub name: RrdName,
    /// The RRD; `None` in a placeholder of release 0.1.
    pub rrd: Option<RrdNumber>,
}

/// Why a placeholder could not be written, removed or read.
#[derive(Debug)]
pub enum PlaceholderError {
    /// Another kind of file is there.
    Occupied {
        /// Its path in the tree.
        name: RrdName,
        /// True when that is a standard `.rrd` file.
        rrd_file: bool,
    },
    /// The placeholder there belongs to another store.
    Foreign {
        /// Its path in the tree.
        name: RrdName,
        /// The store it belongs to.
        store: StoreIdentity,
        /// This store.
        here: StoreIdentity,
    },
    /// Another release wrote it, in a format this one does not know.
    Version(u32),
    /// It has a placeholder's magic but is invalid.
    Damaged {
        /// What is invalid, with its offset.
        what: String,
    },
    /// A system call failed.
    Io {
        /// The path in question.
        path: String,
        /// The system's error.
        error: io::Error,
    },
}

impl std::fmt::Display for PlaceholderError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PlaceholderError::Occupied { name, rrd_file: true } => write!(
                f,
                "cannot write placeholder \"{name}\": a real .rrd file stands there; import it first \
                 (roundel import) or move it away"
            ),
            PlaceholderError::Occupied { name, rrd_file: false } => write!(
                f,
                "cannot write placeholder \"{name}\": something that is not a placeholder stands there; \
                 move it away"
            ),
            PlaceholderError::Foreign { name, store, here } => write!(
                f,
                "the placeholder \"{name}\" belongs to another store, {store}; this one is {here}: export the RRD \
                 there and import it here, or remove the file if that store is gone"
            ),
            PlaceholderError::Version(version) => write!(
                f,
                "placeholder has format version {version}; this release knows version {VERSION}: use the \
                 release that wrote it"
            ),
            PlaceholderError::Damaged { what } => write!(f, "placeholder is damaged: {what}"),
            PlaceholderError::Io { path, error } => write!(f, "cannot open placeholder \"{path}\": {error}"),
        }
    }
}

impl std::error::Error for PlaceholderError {}

/// Writes and removes the placeholders of one store in one tree.
#[derive(Debug)]
pub struct Placeholders {
    tree: Arc<Tree>,
    store: StoreIdentity,
    own: own::OwnWrites,
}

impl Placeholders {
    /// The placeholders of `store` under `tree`.
    pub fn new(tree: Arc<Tree>, store: StoreIdentity) -> Self {
        Placeholders { tree, store, own: own::OwnWrites::default() }
    }

    /// Writes the placeholder of `name`, `rrd_bytes` long (the length of the real file), and creates the
    /// directories above it. An existing placeholder of this store is updated; any other file is kept.
    ///
    /// # Errors
    /// When another file is there, or the system fails.
    pub fn write(
        &self,
        name: &RrdName,
        rrd: Option<RrdNumber>,
        rrd_bytes: u64,
    ) -> Result<(), PlaceholderError> {
        let content = Placeholder { store: self.store, name: name.clone(), rrd };
        self.write_at(name, &content, rrd_bytes)?;
        self.own.note(name, rrd);
        Ok(())
    }

    fn write_at(
        &self,
        name: &RrdName,
        content: &Placeholder,
        rrd_bytes: u64,
    ) -> Result<(), PlaceholderError> {
        let header = encode(content);
        let file = match self.tree.create_file(name) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.open_to_replace(name)?,
            Err(error) => return Err(io_error(name, error)),
        };
        file.write_at(&header, 0)
            .and_then(|()| file.truncate(rrd_bytes.max(header.len() as u64)))
            .map_err(|error| io_error(name, error))
    }

    /// Removes the placeholder of `name`, if there is one.
    ///
    /// # Errors
    /// When another file is there, or the system fails.
    pub fn remove(&self, name: &RrdName) -> Result<(), PlaceholderError> {
        match self.open_to_replace(name) {
            Ok(_) => self.tree.remove(name).map_err(|error| io_error(name, error)),
            Err(PlaceholderError::Io { error, .. }) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The placeholder of `name` in this tree; `None` when there is no file or another kind.
    ///
    /// # Errors
    /// When it is invalid, of another version, or cannot be read.
    pub fn read(&self, name: &RrdName) -> Result<Option<Placeholder>, PlaceholderError> {
        match self.tree.open_file(name, Access::Read) {
            Ok(file) => decode(&read_front(&file).map_err(|error| io_error(name, error))?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(io_error(name, error)),
        }
    }

    /// True when there is a file of this name, a placeholder or another one.
    pub fn has_file(&self, name: &RrdName) -> bool {
        self.tree.exists(name)
    }

    /// Names of all files in the tree.
    ///
    /// # Errors
    /// When a directory cannot be read.
    pub fn names(&self) -> Result<Vec<Vec<u8>>, crate::tree::ListError> {
        crate::tree::list(&self.tree, b"", true, &mut |_| true)
    }

    /// Opens the file at `name` for writing if it may be replaced.
    fn open_to_replace(&self, name: &RrdName) -> Result<Handle, PlaceholderError> {
        let occupied = |rrd_file| PlaceholderError::Occupied { name: name.clone(), rrd_file };
        let file = match self.tree.open_file(name, Access::Write) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::IsADirectory => return Err(occupied(false)),
            Err(error) => return Err(io_error(name, error)),
        };
        let front = read_front(&file).map_err(|_| occupied(false))?;
        match decode(&front) {
            Ok(Some(found)) if found.store == self.store => Ok(file),
            Ok(Some(Placeholder { store, .. })) => {
                Err(PlaceholderError::Foreign { name: name.clone(), store, here: self.store })
            }
            // After a power loss, a placeholder may have its length but not all its bytes.
            Ok(None) if is_torn(&front) => Ok(file),
            Err(PlaceholderError::Damaged { .. }) => Ok(file),
            Ok(None) => Err(occupied(front.starts_with(b"RRD\0"))),
            Err(error) => Err(error),
        }
    }
}

/// The placeholder at any path; `None` when the file is of another kind.
///
/// # Errors
/// When it is invalid, of another version, or cannot be read.
pub fn read(path: &Path) -> Result<Option<Placeholder>, PlaceholderError> {
    let io = |error: io::Error| PlaceholderError::Io { path: path.display().to_string(), error };
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(path, flags, Mode::empty()).map_err(|error| io(error.into()))?;
    decode(&read_front(&Handle::System(file)).map_err(io)?)
}

/// Encodes the first bytes of a placeholder: header, name and number.
pub fn encode(Placeholder { store, name, rrd }: &Placeholder) -> Vec<u8> {
    let text = name.as_bytes();
    let mut bytes = vec![0; HEADER_BYTES];
    bytes[..MAGIC.len()].copy_from_slice(&MAGIC);
    put(&mut bytes, OFFSET_VERSION, &VERSION.to_le_bytes());
    put(&mut bytes, OFFSET_NAME_BYTES, &(text.len() as u32).to_le_bytes());
    put(&mut bytes, OFFSET_IDENTITY, &store.0);
    bytes.extend_from_slice(text);
    let checksum = checksum(&bytes);
    put(&mut bytes, OFFSET_CHECKSUM, &checksum.to_le_bytes());
    if let Some(RrdNumber { shard, id }) = rrd {
        bytes.extend(shard.to_le_bytes());
        bytes.extend(id.to_le_bytes());
        bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
    }
    bytes
}

/// Decodes the first bytes of a file; `None` when it is not a placeholder.
///
/// # Errors
/// When it is a placeholder, but invalid or of another version.
pub fn decode(bytes: &[u8]) -> Result<Option<Placeholder>, PlaceholderError> {
    if !bytes.starts_with(&MAGIC) {
        return Ok(None);
    }
    let damaged = |what: String| Err(PlaceholderError::Damaged { what });
    if bytes.len() < HEADER_BYTES {
        return damaged(format!("it ends at byte {} of its {HEADER_BYTES}-byte header", bytes.len()));
    }
    let version = word(bytes, OFFSET_VERSION);
    if version == 0 {
        return damaged("version 0 at byte 8".to_string());
    }
    if version != VERSION {
        return Err(PlaceholderError::Version(version));
    }
    let name_bytes = word(bytes, OFFSET_NAME_BYTES) as usize;
    if name_bytes > NAME_BYTES_MAX || bytes.len() < HEADER_BYTES + name_bytes {
        return damaged(format!("name of {name_bytes} bytes at byte 12 does not fit"));
    }
    let (bytes, rest) = bytes.split_at(HEADER_BYTES + name_bytes);
    if word(bytes, OFFSET_CHECKSUM) != checksum(bytes) {
        return damaged("checksum at byte 32 does not match".to_string());
    }
    if word(bytes, OFFSET_RESERVED) != 0 {
        return damaged("reserved bytes at byte 36 are not zero".to_string());
    }
    let Ok(name) = RrdName::new(&bytes[HEADER_BYTES..]) else {
        return damaged("name at byte 40 is not the name of an RRD".to_string());
    };
    let mut identity = [0; 16];
    identity.copy_from_slice(&bytes[OFFSET_IDENTITY..OFFSET_CHECKSUM]);
    let rrd = rest.get(..NUMBER_BYTES).and_then(|number| decode_number(bytes, number));
    Ok(Some(Placeholder { store: StoreIdentity(identity), name, rrd }))
}

/// The number after the name, unless a hole or something else follows.
fn decode_number(before: &[u8], number: &[u8]) -> Option<RrdNumber> {
    let checksum = crc32c::crc32c_append(crc32c::crc32c(before), &number[..8]);
    (word(number, 8) == checksum).then(|| RrdNumber { shard: word(number, 0), id: word(number, 4) })
}

/// True for a prefix of the magic, possibly empty, followed by zeros.
fn is_torn(front: &[u8]) -> bool {
    let there = front.iter().zip(MAGIC).take_while(|(byte, magic)| *byte == magic).count();
    front[there..].iter().all(|&byte| byte == 0)
}

/// CRC32C of header and name, with the checksum's own bytes as zero.
fn checksum(bytes: &[u8]) -> u32 {
    let front = crc32c::crc32c(&bytes[..OFFSET_CHECKSUM]);
    let zeroed = crc32c::crc32c_append(front, &[0; 4]);
    crc32c::crc32c_append(zeroed, &bytes[OFFSET_RESERVED..])
}

fn put(bytes: &mut [u8], offset: usize, field: &[u8]) {
    bytes[offset..offset + field.len()].copy_from_slice(field);
}

fn word(bytes: &[u8], offset: usize) -> u32 {
    u32::from_le_bytes([bytes[offset], bytes[offset + 1], bytes[offset + 2], bytes[offset + 3]])
}

fn io_error(name: &RrdName, error: io::Error) -> PlaceholderError {
    PlaceholderError::Io { path: name.to_string(), error }
}

fn read_front(file: &Handle) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; HEADER_BYTES + NAME_BYTES_MAX + NUMBER_BYTES];
    let count = file.read_up_to(&mut bytes, 0)?;
    bytes.truncate(count);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORE: StoreIdentity = StoreIdentity(*b"0123456789abcdef");

    fn name(text: &str) -> RrdName {
        RrdName::new(text.as_bytes()).unwrap()
    }

    fn of(store: StoreIdentity, text: &str) -> Placeholder {
        Placeholder { store, name: name(text), rrd: None }
    }

    fn placeholders() -> (tempfile::TempDir, Placeholders) {
        let directory = tempfile::tempdir().unwrap();
        let tree = Tree::open(directory.path()).unwrap();
        (directory, Placeholders::new(Arc::new(tree), STORE))
    }

    #[test]
    fn the_encoding_is_fixed() {
        let old = Placeholder { store: STORE, name: name("a/b.rrd"), rrd: None };
        let bytes = encode(&old);
        let mut want = b"ROUNDELP\x01\0\0\0\x07\0\0\x000123456789abcdef".to_vec();
        want.extend_from_slice(&[0xb8, 0x23, 0x43, 0x1d]);
        want.extend_from_slice(b"\0\0\0\0a/b.rrd");
        assert_eq!(bytes, want);
        assert_eq!(decode(&[&bytes[..], &[0; 100]].concat()).unwrap(), Some(old.clone()));
        let new = Placeholder { rrd: Some(RrdNumber { shard: 2, id: 77 }), ..old };
        want.extend_from_slice(b"\x02\0\0\0\x4d\0\0\0");
        let bytes = encode(&new);
        assert_eq!(bytes[..want.len()], want);
        assert_eq!(decode(&[&bytes[..], &[0; 100]].concat()).unwrap(), Some(new));
    }

    #[test]
    fn a_placeholder_round_trips_with_the_right_size_and_is_sparse() {
        use std::os::unix::fs::MetadataExt;
        let (directory, placeholders) = placeholders();
        let rrd = Some(RrdNumber { shard: 1, id: 5 });
        let want = Placeholder { store: STORE, name: name("host/a b.rrd"), rrd };
        for _ in 0..2 {
            placeholders.write(&want.name, want.rrd, 148_648).unwrap();
            let path = directory.path().join("host/a b.rrd");
            assert_eq!(read(&path).unwrap(), Some(want.clone()));
            let metadata = std::fs::metadata(&path).unwrap();
            assert_eq!(metadata.len(), 148_648);
            assert!(metadata.blocks() * 512 <= 4096, "{} blocks", metadata.blocks());
        }
        assert_eq!(placeholders.read(&want.name).unwrap(), Some(want.clone()));
        placeholders.remove(&want.name).unwrap();
        placeholders.remove(&want.name).unwrap();
        assert_eq!(placeholders.read(&want.name).unwrap(), None);
    }

    #[test]
    fn only_own_and_torn_placeholders_are_replaced() {
        let (directory, placeholders) = placeholders();
        let check = |content: &[u8], good: bool| {
            std::fs::write(directory.path().join("x.rrd"), content).unwrap();
            let written = placeholders.write(&name("x.rrd"), None, 1000);
            assert_eq!(written.is_ok(), good, "{content:?}: {written:?}");
            if !good {
                assert_eq!(std::fs::read(directory.path().join("x.rrd")).unwrap(), content);
                assert!(placeholders.remove(&name("x.rrd")).is_err());
            }
        };
        check(b"", true);
        check(&[0; 5000], true);
        check(&encode(&of(STORE, "x.rrd"))[..43], true);
        check(b"ROUND", true);
        check(&[b"ROU".as_slice(), &[0; 900]].concat(), true);
        check(&[MAGIC.as_slice(), &[0; 900]].concat(), true);
        check(b"RRD\x000003", false);
        check(b"my diary", false);
        check(&encode(&of(StoreIdentity([7; 16]), "x.rrd")), false);
        let mut newer = encode(&of(STORE, "x.rrd"));
        newer[OFFSET_VERSION] = 2;
        check(&newer, false);
        std::fs::create_dir(directory.path().join("d.rrd")).unwrap();
        assert!(matches!(
            placeholders.write(&name("d.rrd"), None, 9),
            Err(PlaceholderError::Occupied { .. })
        ));
    }

    #[test]
    fn an_existing_rrd_file_is_reported_with_advice() {
        let (directory, placeholders) = placeholders();
        std::fs::write(directory.path().join("x.rrd"), b"RRD\x000003").unwrap();
        let error = placeholders.write(&name("x.rrd"), None, 1000).unwrap_err().to_string();
        assert!(error.contains("import it first") && error.contains("x.rrd"), "{error}");
    }

    #[test]
    fn every_flipped_bit_is_detected() {
        let good = encode(&of(STORE, "a.rrd"));
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(!matches!(decode(&bad), Ok(Some(_))), "bit {bit}");
        }
        (0..good.len()).for_each(|length| assert!(!matches!(decode(&good[..length]), Ok(Some(_)))));
    }

    #[test]
    fn a_stock_rrdtool_says_it_is_no_rrd() {
        let mut tool = testkit::RrdTool::start().unwrap();
        let placeholders = Placeholders::new(Tree::open(tool.directory()).unwrap().into(), STORE);
        placeholders.write(&name("x.rrd"), None, 148_648).unwrap();
        let error = tool.run("info x.rrd").unwrap_err();
        assert!(error.contains("is not an RRD file"), "{error}");
    }
}
