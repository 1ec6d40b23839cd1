//! Chooses fonts, and keeps the choices and the open files.
//!
//! A font is searched only when a text needs it, and only once. The embedded font and Debian's directory of the DejaVu
//! fonts are tried before libfontconfig, whose start takes longer than a whole graph.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use graph::picture::text::FontFile;

use super::description::Description;
use super::face::Face;
use super::fontconfig;

/// RRDtool's own font, version 2.37, as Debian has it.
static EMBEDDED: &[u8] = include_bytes!("../../fonts/DejaVuSansMono.ttf");
/// Its family.
const EMBEDDED_FAMILY: &str = "DejaVu Sans Mono";
/// Where Debian's fonts-dejavu-core puts its files.
const DEJAVU: &str = "/usr/share/fonts/truetype/dejavu";
/// The id of the embedded font. Other fonts get the next ids, which are the same in the whole process.
const EMBEDDED_ID: u64 = 0;
/// Most choices that are kept; then all are dropped, so that a hostile text cannot fill the memory.
const ANSWERS_MAX: usize = 4_096;
/// Greatest size of a font file in bytes; the largest collections of CJK fonts have 130 MiB.
const FILE_MAX: u64 = 256 << 20;

static NEXT_ID: AtomicU64 = AtomicU64::new(EMBEDDED_ID + 1);

/// Open fonts, and which font was chosen for what.
pub(super) struct FontCache {
    embedded: Arc<Face>,
    described: HashMap<Vec<u8>, Arc<Description>>,
    open: HashMap<(PathBuf, u32), Option<Arc<Face>>>,
    first: HashMap<Arc<Description>, Arc<Face>>,
    fallback: HashMap<(Arc<Description>, char), Option<Arc<Face>>>,
}

impl FontCache {
    pub(super) fn new() -> FontCache {
        let file = FontFile {
            bytes: Arc::new(EMBEDDED),
            index: 0,
            id: EMBEDDED_ID,
            family: Arc::from(EMBEDDED_FAMILY),
        };
        let embedded = Face::open(file, true).expect("the embedded font is a font: a test opens it");
        FontCache {
            embedded: Arc::new(embedded),
            described: HashMap::new(),
            open: HashMap::new(),
            first: HashMap::new(),
            fallback: HashMap::new(),
        }
    }

    /// Parses `text` as a font description.
    pub(super) fn description(&mut self, text: &[u8]) -> Arc<Description> {
        if let Some(known) = self.described.get(text) {
            return Arc::clone(known);
        }
        let described = Arc::new(Description::parse(&String::from_utf8_lossy(text)));
        forget(&mut self.described);
        self.described.insert(text.to_vec(), Arc::clone(&described));
        described
    }

    /// The font for texts in `wanted`.
    pub(super) fn face(&mut self, wanted: &Arc<Description>) -> Arc<Face> {
        if let Some(face) = self.first.get(wanted) {
            return Arc::clone(face);
        }
        let face = self.look_for(wanted);
        forget(&mut self.first);
        self.first.insert(Arc::clone(wanted), Arc::clone(&face));
        face
    }

    fn look_for(&mut self, wanted: &Description) -> Arc<Face> {
        match wanted.families.first().and_then(|family| dejavu_file(family, wanted)) {
            Some(None) => return Arc::clone(&self.embedded),
            Some(Some((path, family))) => {
                if let Some(face) = self.open(&path, 0, &family) {
                    return face;
                }
            }
            None => {}
        }
        let found = fontconfig::find(wanted, "").map(|(first, _)| first);
        let face = found.and_then(|found| self.open(&found.path, found.index, &found.family));
        face.unwrap_or_else(|| Arc::clone(&self.embedded))
    }

    /// A font that has `character`, which the font for `wanted` lacks. None if no font of the host has it.
    pub(super) fn fallback(&mut self, wanted: &Arc<Description>, character: char) -> Option<Arc<Face>> {
        let question = (Arc::clone(wanted), character);
        if let Some(face) = self.fallback.get(&question) {
            return face.clone();
        }
        let text = character.to_string();
        let found = fontconfig::find(wanted, &text).and_then(|(_, mut each)| each.pop().flatten());
        let mut face = found.and_then(|found| self.open(&found.path, found.index, &found.family));
        if face.is_none() && self.embedded.has(character) {
            face = Some(Arc::clone(&self.embedded));
        }
        forget(&mut self.fallback);
        self.fallback.insert(question, face.clone());
        face
    }

    /// The font in a file, which is opened once.
    fn open(&mut self, path: &Path, index: u32, family: &str) -> Option<Arc<Face>> {
        let key = (path.to_path_buf(), index);
        if let Some(face) = self.open.get(&key) {
            return face.clone();
        }
        let face = read(path, index, family).map(Arc::new);
        self.open.insert(key, face.clone());
        face
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place that reads a file: a font of this host")]
fn read(path: &Path, index: u32, family: &str) -> Option<Face> {
    let readable = fs::metadata(path).is_ok_and(|data| data.is_file() && data.len() <= FILE_MAX);
    let bytes = if readable { fs::read(path).ok()? } else { return None };
    let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
    Face::open(FontFile { bytes: Arc::new(bytes), index, id, family: Arc::from(family) }, false)
}

/// Where a DejaVu family is: embedded, or in Debian's file. None for other families.
fn dejavu_file(family: &str, wanted: &Description) -> Option<Option<(PathBuf, String)>> {
    const FAMILIES: [&str; 3] = [EMBEDDED_FAMILY, "DejaVu Sans", "DejaVu Serif"];
    let family = FAMILIES.into_iter().find(|known| known.eq_ignore_ascii_case(family))?;
    let bold = match wanted.weight {
        350..=500 => false,
        700 => true,
        _ => return None,
    };
    if wanted.stretch != 100 {
        return None;
    }
    if family == EMBEDDED_FAMILY && !bold && !wanted.italic {
        return Some(None);
    }
    let slanted = if family == "DejaVu Serif" { "Italic" } else { "Oblique" };
    let style = match (bold, wanted.italic) {
        (false, false) => String::new(),
        (true, false) => "-Bold".to_string(),
        (false, true) => format!("-{slanted}"),
        (true, true) => format!("-Bold{slanted}"),
    };
    let name = family.replace(' ', "");
    Some(Some((Path::new(DEJAVU).join(format!("{name}{style}.ttf")), family.to_string())))
}

/// Makes room for one more choice.
fn forget<K, V>(answers: &mut HashMap<K, V>) {
    if answers.len() >= ANSWERS_MAX {
        answers.clear();
    }
}
