//! Finds the fonts of this host through libfontconfig, which is opened at run time if there is one.
//!
//! RRDtool's Pango asks the same library, so that generic families (`Sans`, `Courier`) are the same font. The first query
//! takes 8 to 12 ms, later ones 0.3 ms.

use std::ffi::{CStr, CString, c_char, c_int};
use std::path::PathBuf;
use std::ptr;

use fontconfig_sys::constants::{FC_CHARSET, FC_FAMILY, FC_FILE, FC_INDEX, FC_SLANT, FC_WEIGHT, FC_WIDTH};
use fontconfig_sys::statics::LIB_RESULT;
use fontconfig_sys::{Fc, FcCharSet, FcFontSet, FcMatchPattern, FcPattern, FcResultMatch, FcResultNoMatch};

use super::description::Description;

/// Slant of italic fonts, in fontconfig's numbers.
const ITALIC: c_int = 100;

/// A font file of this host.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Found {
    pub(super) path: PathBuf,
    pub(super) index: u32,
    pub(super) family: String,
}

/// The font for `wanted`, and for each of `characters` the best font that has it. Empty without libfontconfig or
/// fonts.
pub(super) fn find(wanted: &Description, characters: &str) -> Option<(Found, Vec<Option<Found>>)> {
    if cfg!(target_feature = "crt-static") {
        // A static executable cannot open a library safely.
        return None;
    }
    let library = LIB_RESULT.as_ref().ok()?;
    let pattern = Pattern::of(library, wanted)?;
    let set = pattern.sorted()?;
    let fonts = set.fonts();
    let first = fonts.iter().find_map(|font| pattern.prepared(*font))?;
    let each = characters.chars().map(|character| {
        fonts.iter().find(|font| has(library, **font, character)).and_then(|font| pattern.prepared(*font))
    });
    let each = each.collect();
    Some((first, each))
}

/// Whether the font of `pattern` has `character`.
fn has(library: &Fc, pattern: *mut FcPattern, character: char) -> bool {
    let mut characters: *mut FcCharSet = ptr::null_mut();
    // SAFETY: `pattern` is one of a living font set; the set of characters that comes back belongs to it.
    unsafe {
        (library.FcPatternGetCharSet)(pattern, FC_CHARSET.as_ptr(), 0, &raw mut characters) == FcResultMatch
            && (library.FcCharSetHasChar)(characters, u32::from(character)) != 0
    }
}

/// A query pattern, owned.
struct Pattern<'a> {
    library: &'a Fc,
    pattern: *mut FcPattern,
}

impl<'a> Pattern<'a> {
    /// `wanted`, completed by the configuration of the host.
    fn of(library: &'a Fc, wanted: &Description) -> Option<Pattern<'a>> {
        // SAFETY: without arguments; starts the library, or does nothing when it runs.
        if unsafe { (library.FcInit)() } == 0 {
            return None;
        }
        // SAFETY: without arguments.
        let pattern = unsafe { (library.FcPatternCreate)() };
        if pattern.is_null() {
            return None;
        }
        let owned = Pattern { library, pattern };
        for family in &wanted.families {
            let Ok(family) = CString::new(family.as_str()) else { continue };
            // SAFETY: both strings end with a zero and are copied.
            unsafe { (library.FcPatternAddString)(pattern, FC_FAMILY.as_ptr(), family.as_ptr().cast()) };
        }
        let slant = if wanted.italic { ITALIC } else { 0 };
        let numbers =
            [(FC_WEIGHT, weight(wanted.weight)), (FC_SLANT, slant), (FC_WIDTH, c_int::from(wanted.stretch))];
        // SAFETY: the pattern lives; the null configuration is the current one.
        unsafe {
            for (name, value) in numbers {
                (library.FcPatternAddInteger)(pattern, name.as_ptr(), value);
            }
            (library.FcConfigSubstitute)(ptr::null_mut(), pattern, FcMatchPattern);
            (library.FcDefaultSubstitute)(pattern);
        }
        Some(owned)
    }

    /// All fonts, best first, without those that add no characters.
    fn sorted(&self) -> Option<Set<'a>> {
        let mut result = FcResultNoMatch;
        // SAFETY: the pattern lives; no set of characters is asked for.
        let set = unsafe {
            (self.library.FcFontSort)(ptr::null_mut(), self.pattern, 1, ptr::null_mut(), &raw mut result)
        };
        (!set.is_null()).then_some(Set { library: self.library, set })
    }

    /// File, index and family of one of the sorted fonts.
    fn prepared(&self, font: *mut FcPattern) -> Option<Found> {
        // SAFETY: both patterns live; the null configuration is the current one.
        let ready = unsafe { (self.library.FcFontRenderPrepare)(ptr::null_mut(), self.pattern, font) };
        if ready.is_null() {
            return None;
        }
        let ready = Pattern { library: self.library, pattern: ready };
        let path = PathBuf::from(ready.string(FC_FILE)?);
        let mut index: c_int = 0;
        // SAFETY: the pattern lives, and the number is written before the call is over.
        unsafe { (self.library.FcPatternGetInteger)(ready.pattern, FC_INDEX.as_ptr(), 0, &raw mut index) };
        // The upper half names an instance of a variable font.
        let index = u32::try_from(index).ok()? & 0xffff;
        Some(Found { path, index, family: ready.string(FC_FAMILY)? })
    }

    fn string(&self, name: &CStr) -> Option<String> {
        let mut text = ptr::null_mut();
        // SAFETY: the pattern lives; what comes back ends with a zero, belongs to it, and is copied at once.
        unsafe {
            if (self.library.FcPatternGetString)(self.pattern, name.as_ptr(), 0, &raw mut text)
                != FcResultMatch
            {
                return None;
            }
            Some(CStr::from_ptr(text.cast::<c_char>()).to_string_lossy().into_owned())
        }
    }
}

impl Drop for Pattern<'_> {
    fn drop(&mut self) {
        // SAFETY: `self` owns it, and nothing of it is used later.
        unsafe { (self.library.FcPatternDestroy)(self.pattern) };
    }
}

/// A set of fonts, owned.
struct Set<'a> {
    library: &'a Fc,
    set: *mut FcFontSet,
}

impl Set<'_> {
    fn fonts(&self) -> &[*mut FcPattern] {
        // SAFETY: the set lives as long as `self`; it holds `nfont` patterns.
        unsafe {
            let count = usize::try_from((*self.set).nfont).unwrap_or(0);
            if count == 0 { &[] } else { std::slice::from_raw_parts((*self.set).fonts, count) }
        }
    }
}

impl Drop for Set<'_> {
    fn drop(&mut self) {
        // SAFETY: `self` owns it, and nothing of it is used later.
        unsafe { (self.library.FcFontSetDestroy)(self.set) };
    }
}

/// fontconfig's number for a weight.
fn weight(css: u16) -> c_int {
    // Pairs of (CSS, fontconfig); linear between them.
    const SCALE: &[(f64, f64)] = &[
        (0.0, 0.0),
        (100.0, 0.0),
        (200.0, 40.0),
        (300.0, 50.0),
        (350.0, 55.0),
        (380.0, 75.0),
        (400.0, 80.0),
        (500.0, 100.0),
        (600.0, 180.0),
        (700.0, 200.0),
        (800.0, 205.0),
        (900.0, 210.0),
        (1000.0, 215.0),
    ];
    let css = f64::from(css);
    for pair in SCALE.windows(2) {
        let ((from, low), (to, high)) = (pair[0], pair[1]);
        if css <= to {
            return (low + (high - low) * (css - from) / (to - from)).round() as c_int;
        }
    }
    215
}
