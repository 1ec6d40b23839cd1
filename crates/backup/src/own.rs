//! The daemon's own files beside its store: tokens, assignments, saved graphs and views. They are small, and are sent when they have changed.
//!
//! A manifest names one object with their list ([`OwnList`]), which stays the same while they do. What is too large, or cannot be
//! read, or is left out by intent (archives of adopted files), the list names, so that an operator learns of it before it is needed.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use store::filenames;

use crate::objects::{ObjectError, Objects};
use crate::seal::SealError;

/// The longest file in bytes: assignments of a hundred thousand devices.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// The most bytes of all files.
const BYTES_MAX: u64 = 256 << 20;
/// The most files: twice the views that are listed.
const FILES_MAX: usize = 20_000;
/// A file that was changed so lately before it was read is read once more: a change at the same tick of its clock would not be seen.
const SETTLED: Duration = Duration::from_secs(3);
/// The name of the file of tokens in a backup.
const TOKENS: &str = "tokens";
/// The name of the file of assignments.
const ASSIGNMENTS: &str = "assignments";
/// What names of saved graphs and views begin with.
const GRAPHS: &str = "graphs/";
/// What they end with.
const GRAPH_ENDINGS: [&str; 2] = ["graph", "view"];

/// Where these files are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnPaths {
    /// The directory of the store, with archives of adopted files.
    pub store: PathBuf,
    /// The file of tokens: hashes, names and rights.
    pub tokens: PathBuf,
    /// Which agent polls which device.
    pub assignments: PathBuf,
    /// The directory of saved graphs and views, if there is one.
    pub graphs: Option<PathBuf>,
}

/// A list of such files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnList {
    /// What is in the backup.
    pub files: Vec<OwnFile>,
    /// What is not.
    pub left_out: Vec<LeftOut>,
}

/// A file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnFile {
    /// `tokens`, `assignments`, or `graphs/` and the name of the file.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// The object with its content.
    pub object: String,
}

/// A file that is in no backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Its name.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// The reason.
    pub why: String,
}

impl std::fmt::Display for LeftOut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({} bytes): {}", self.name.escape_debug(), self.bytes, self.why)
    }
}

impl OwnPaths {
    /// Where they are in a store without a configuration.
    pub fn in_store(store: &Path) -> OwnPaths {
        OwnPaths {
            store: store.to_owned(),
            tokens: store.join(TOKENS),
            assignments: store.join(ASSIGNMENTS),
            graphs: Some(store.join(GRAPHS)),
        }
    }

    /// The files that may be there, by name.
    fn candidates(&self) -> BTreeMap<String, PathBuf> {
        let mut files: BTreeMap<String, PathBuf> =
            [(TOKENS.to_string(), self.tokens.clone()), (ASSIGNMENTS.to_string(), self.assignments.clone())]
                .into();
        for name in self.graphs.iter().flat_map(|graphs| names_in(graphs)).filter(|name| is_graph(name)) {
            let (Some(text), Some(graphs)) = (name.to_str(), &self.graphs) else { continue };
            files.insert(format!("{GRAPHS}{text}"), graphs.join(text));
        }
        files
    }

    /// The archives of adopted files.
    fn adopted(&self) -> Vec<LeftOut> {
        let why = "an archive of adopted .rrd files; their RRDs are in the backup";
        let of = |name: &std::ffi::OsString| {
            filenames::adopted_day(name)?;
            let bytes = fs::metadata(self.store.join(name)).ok()?.len();
            Some(LeftOut { name: name.to_string_lossy().into_owned(), bytes, why: why.to_string() })
        };
        let mut adopted: Vec<LeftOut> = names_in(&self.store).iter().filter_map(of).collect();
        adopted.sort_by(|one, other| one.name.cmp(&other.name));
        adopted
    }
}

/// Where a file of this name goes in the directory of a store; `None` for a name that no backup has.
pub(crate) fn path_in_store(name: &str) -> Option<&str> {
    let is_graph = || name.strip_prefix(GRAPHS).is_some_and(|name| is_graph(OsStr::new(name)));
    (name == TOKENS || name == ASSIGNMENTS || is_graph()).then_some(name)
}

fn names_in(directory: &Path) -> Vec<std::ffi::OsString> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.file_name()).collect()
}

/// Whether a name is that of a saved graph or view, which is a plain one.
fn is_graph(name: &OsStr) -> bool {
    let path = Path::new(name);
    let ending = path.extension().and_then(OsStr::to_str);
    let is_plain = path.file_name() == Some(name) && !name.as_encoded_bytes().starts_with(b".");
    is_plain && ending.is_some_and(|ending| GRAPH_ENDINGS.contains(&ending))
}

/// What changes when a file does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(found: &Metadata) -> Stamp {
        Stamp {
            inode: found.ino(),
            bytes: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        }
    }

    fn is_settled(&self, now: SystemTime) -> bool {
        let now = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        let last = self.modified.0.max(self.changed.0);
        // A time to come tells nothing.
        i64::try_from(now).is_ok_and(|now| now.saturating_sub(last) >= SETTLED.as_secs() as i64)
    }
}

/// Reads the files, those again that have changed.
#[derive(Debug)]
pub(crate) struct OwnReader {
    paths: OwnPaths,
    /// Contents that were read, by name: what the files were then, and the objects.
    known: HashMap<String, (Stamp, String)>,
}

/// A file that was read, or has not changed since it was.
pub(crate) enum Looked {
    /// It is what this object has.
    Same(OwnFile),
    /// It has this content.
    Read(Vec<u8>),
    /// It is in no backup.
    Left(LeftOut),
}

impl OwnReader {
    pub(crate) fn new(paths: OwnPaths) -> Self {
        OwnReader { paths, known: HashMap::new() }
    }

    /// All files, by their names, in order; what is left out by intent comes with them.
    pub(crate) fn files(&mut self) -> (Vec<(String, PathBuf)>, Vec<LeftOut>) {
        let mut files: Vec<_> = self.paths.candidates().into_iter().collect();
        let mut left_out = self.paths.adopted();
        if files.len() > FILES_MAX {
            let why = format!("there are {} saved graphs and views; the last of them", files.len());
            left_out.push(LeftOut { name: files[FILES_MAX].0.clone(), bytes: 0, why });
            files.truncate(FILES_MAX);
        }
        self.known.retain(|name, _| files.binary_search_by(|file| file.0.cmp(name)).is_ok());
        (files, left_out)
    }

    /// Looks at a file, of which at most `room` bytes are wanted; `None`: there is none. `has` says whether the backup has an object.
    pub(crate) fn look(
        &mut self,
        name: &str,
        path: &Path,
        room: u64,
        has: impl Fn(&str) -> bool,
    ) -> Option<Looked> {
        let left =
            |bytes: u64, why: String| Some(Looked::Left(LeftOut { name: name.to_string(), bytes, why }));
        let found = match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => return left(0, error.to_string()),
            Ok(found) if !found.is_file() => return left(0, "it is no file".to_string()),
            Ok(found) => found,
        };
        let stamp = Stamp::of(&found);
        if stamp.bytes > FILE_BYTES_MAX.min(room) {
            return left(stamp.bytes, "it is too large".to_string());
        }
        if let Some((known, object)) = self.known.get(name)
            && *known == stamp
            && has(object)
        {
            let (name, object) = (name.to_string(), object.clone());
            return Some(Looked::Same(OwnFile { name, bytes: stamp.bytes, object }));
        }
        let mut content = Vec::new();
        // One that grows meanwhile is read again the next time.
        let read = File::open(path).and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut content));
        match read {
            Ok(_) => Some(Looked::Read(content)),
            Err(error) => left(stamp.bytes, error.to_string()),
        }
    }

    /// Remembers the object of a file that was read after `before`.
    pub(crate) fn remember(&mut self, file: &OwnFile, path: &Path, before: SystemTime) {
        let stamp = fs::metadata(path).map(|found| Stamp::of(&found));
        match stamp {
            Ok(stamp) if stamp.bytes == file.bytes && stamp.is_settled(before) => {
                self.known.insert(file.name.clone(), (stamp, file.object.clone()));
            }
            _ => drop(self.known.remove(&file.name)),
        }
    }
}

/// The most bytes that all files may have.
pub(crate) fn room() -> u64 {
    BYTES_MAX
}

impl OwnFile {
    /// What its object held.
    pub(crate) fn held(&self) -> String {
        format!("the daemon's own file {}", self.name.escape_debug())
    }

    fn left_out(&self, why: &str) -> LeftOut {
        LeftOut { name: self.name.clone(), bytes: self.bytes, why: why.to_string() }
    }

    /// A name that Roundel has not written.
    pub(crate) fn is_foreign(&self) -> LeftOut {
        self.left_out("no file of the daemon's has this name")
    }

    /// A second file of one name.
    pub(crate) fn is_there(&self) -> LeftOut {
        self.left_out("there is a file of this name already")
    }
}

impl OwnList {
    /// What a list's object holds.
    pub(crate) const HELD: &str = "the list of the daemon's own files (tokens, assignments, graphs, views)";

    /// The content of its object.
    ///
    /// # Errors
    /// Never, but as what encodes says.
    pub(crate) fn encode(&self) -> io::Result<Vec<u8>> {
        Ok(serde_json::to_vec(self)?)
    }

    /// Fetches the list of a manifest, which is empty where it names none.
    ///
    /// # Errors
    /// When it is missing or damaged, or the server fails.
    pub async fn fetch(objects: &Objects, object: Option<&str>) -> Result<OwnList, ObjectError> {
        let Some(object) = object else { return Ok(OwnList::default()) };
        let plain = objects.get(object).await?;
        serde_json::from_slice(&plain).map_err(|_| ObjectError::Bad(object.to_string(), SealError::Foreign))
    }
}

/// What became of the files in a restore.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnRestored {
    /// Names of files that were written.
    pub written: Vec<String>,
    /// Files that are not there, and why.
    pub left_out: Vec<LeftOut>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_nowhere_else() {
        for good in ["tokens", "assignments", "graphs/a b.view", "graphs/x.graph"] {
            assert_eq!(path_in_store(good), Some(good));
        }
        for bad in [
            "",
            "STORE",
            "graphs/",
            "graphs/../x.view",
            "graphs//x.view",
            "graphs/.view",
            "graphs/x",
            "/x.view",
        ] {
            assert_eq!(path_in_store(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_file_is_read_again_when_it_has_changed_or_may_have() {
        let place = tempfile::tempdir().unwrap();
        let paths = OwnPaths::in_store(place.path());
        let mut reader = OwnReader::new(paths.clone());
        let now = SystemTime::now();
        let looked =
            |reader: &mut OwnReader| reader.look(TOKENS, &paths.tokens, BYTES_MAX, |object| object == "o");
        assert!(looked(&mut reader).is_none());
        fs::write(&paths.tokens, "one").unwrap();
        let Some(Looked::Read(content)) = looked(&mut reader) else { panic!() };
        assert_eq!(content, b"one");
        let file = OwnFile { name: TOKENS.into(), bytes: 3, object: "o".into() };
        // Too young to be believed.
        reader.remember(&file, &paths.tokens, now);
        assert!(matches!(looked(&mut reader), Some(Looked::Read(_))));
        reader.remember(&file, &paths.tokens, now + 2 * SETTLED);
        assert!(matches!(looked(&mut reader), Some(Looked::Same(same)) if same == file));
        fs::write(&paths.tokens, "two").unwrap();
        assert!(matches!(looked(&mut reader), Some(Looked::Read(_))));
        let room = reader.look(TOKENS, &paths.tokens, 2, |_| true);
        assert!(
            matches!(room, Some(Looked::Left(left)) if left.to_string() == "tokens (3 bytes): it is too large")
        );
    }
}
