//! Names as clients write them, relative to the base directory.

use std::path::Path;

use store::name::RrdName;

/// The RRD that a client's argument names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedName {
    /// The RRD's name in the store.
    pub name: RrdName,
    /// The path shown in answers: the argument itself if absolute, else below the base directory.
    pub path: Vec<u8>,
}

/// Why an argument names no RRD, with the path shown in answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NameFailure {
    /// It leads outside the base directory.
    Denied(Vec<u8>),
    /// No RRD can have this name.
    Missing(Vec<u8>),
}

impl NameFailure {
    /// The path in question.
    pub fn path(&self) -> &[u8] {
        match self {
            NameFailure::Denied(path) | NameFailure::Missing(path) => path,
        }
    }
}

/// The base directory as a name; this type never accesses the disk.
#[derive(Clone, Debug)]
pub struct Names {
    /// With a trailing slash.
    base: Vec<u8>,
    /// The real path of the same directory, if the base was given through a symbolic link.
    real_base: Vec<u8>,
}

impl Names {
    /// Names relative to `base`, an absolute path whose real path is `real_base`.
    pub fn new(base: &Path, real_base: &Path) -> Self {
        Names { base: with_slash(base), real_base: with_slash(real_base) }
    }

    /// The base directory with a trailing slash.
    pub fn base(&self) -> &[u8] {
        &self.base
    }

    /// The path of an argument, as answers show it.
    pub fn path(&self, word: &[u8]) -> Vec<u8> {
        if word.starts_with(b"/") { word.to_vec() } else { [&self.base, word].concat() }
    }

    /// The RRD that an argument names.
    ///
    /// Compat: `../` anywhere is refused, as in rrdcached with `-B`; a path outside the base directory is
    /// always refused, since the store has nothing there.
    ///
    /// # Errors
    /// When it leads outside the base directory, or no RRD can have that name.
    pub fn resolve(&self, word: &[u8]) -> Result<ResolvedName, NameFailure> {
        let path = self.path(word);
        let relative = if word.starts_with(b"/") {
            let inside = word.strip_prefix(&*self.base).or_else(|| word.strip_prefix(&*self.real_base));
            match inside {
                Some(inside) => inside,
                None => return Err(NameFailure::Denied(path)),
            }
        } else {
            word
        };
        if relative.windows(3).any(|three| three == b"../") {
            return Err(NameFailure::Denied(path));
        }
        // An absolute remainder ("/base//a.rrd") is still inside.
        let slashes = relative.iter().take_while(|&&byte| byte == b'/').count();
        match RrdName::new(&relative[slashes..]) {
            Ok(name) => Ok(ResolvedName { name, path }),
            Err(_) => Err(NameFailure::Missing(path)),
        }
    }
}

fn with_slash(path: &Path) -> Vec<u8> {
    use std::os::unix::ffi::OsStrExt;
    let mut bytes = path.as_os_str().as_bytes().to_vec();
    while bytes.last() == Some(&b'/') {
        bytes.pop();
    }
    bytes.push(b'/');
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        Names::new(Path::new("/var/lib/rrd/"), Path::new("/srv/rrd"))
    }

    #[test]
    fn names_are_relative_to_the_base() {
        let check = |word: &str, name: &str, path: &str| {
            let named = names().resolve(word.as_bytes()).expect(word);
            assert_eq!((named.name.as_bytes(), &*named.path), (name.as_bytes(), path.as_bytes()), "{word}");
        };
        check("a.rrd", "a.rrd", "/var/lib/rrd/a.rrd");
        check("./d//a.rrd", "d/a.rrd", "/var/lib/rrd/./d//a.rrd");
        check("/var/lib/rrd/d/a.rrd", "d/a.rrd", "/var/lib/rrd/d/a.rrd");
        check("/var/lib/rrd//a.rrd", "a.rrd", "/var/lib/rrd//a.rrd");
        check("/srv/rrd/a.rrd", "a.rrd", "/srv/rrd/a.rrd");
        check("a..b", "a..b", "/var/lib/rrd/a..b");
    }

    #[test]
    fn no_name_leads_out_of_the_base() {
        for word in ["/etc/passwd", "../x", "a/../b", "/var/lib/rrdx/a", "/var/lib/rrd/../x", "/"] {
            let failure = names().resolve(word.as_bytes()).expect_err(word);
            assert!(matches!(failure, NameFailure::Denied(_)), "{word}");
        }
        for word in ["", ".", "..", "a/..", "/var/lib/rrd/", "a\0b"] {
            let failure = names().resolve(word.as_bytes()).expect_err(word);
            assert!(matches!(failure, NameFailure::Missing(_)), "{word}");
        }
    }
}
