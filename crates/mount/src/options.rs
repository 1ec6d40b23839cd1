//! What `-o` says, as `mount(8)` passes it on.

use std::path::PathBuf;

/// How a store is mounted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Nothing can be changed.
    pub read_only: bool,
    /// Other users may use it, too.
    pub allow_other: bool,
    /// The owner of everything, instead of the placeholders'.
    pub user: Option<u32>,
    /// The group of everything.
    pub group: Option<u32>,
    /// Where files live that are no RRDs.
    pub extra: Option<PathBuf>,
}

/// Options of `mount(8)` and of fstab that say nothing here, or what is so anyway.
const IGNORED: &[&str] = &[
    "rw",
    "defaults",
    "auto",
    "noauto",
    "user",
    "nouser",
    "users",
    "owner",
    "group",
    "nofail",
    "_netdev",
    "dev",
    "nodev",
    "suid",
    "nosuid",
    "exec",
    "noexec",
    "atime",
    "noatime",
    "relatime",
    "norelatime",
    "async",
    "default_permissions",
];

impl Options {
    /// Adds options, separated by commas.
    ///
    /// # Errors
    /// The one that is unknown or has no value, for people.
    pub fn add(&mut self, text: &str) -> Result<(), String> {
        for word in text.split(',').filter(|word| !word.is_empty()) {
            let (key, value) = word.split_once('=').map_or((word, None), |(key, value)| (key, Some(value)));
            let number = || {
                value
                    .and_then(|value| value.parse().ok())
                    .ok_or_else(|| format!("option {key} needs a number: {key}=33"))
            };
            match key {
                "ro" => self.read_only = true,
                "allow_other" => self.allow_other = true,
                "uid" => self.user = Some(number()?),
                "gid" => self.group = Some(number()?),
                "extra" => {
                    let directory = value.filter(|value| !value.is_empty());
                    let directory =
                        directory.ok_or("option extra needs a directory: extra=/var/lib/extra")?;
                    self.extra = Some(PathBuf::from(directory));
                }
                "comment" => {}
                _ if IGNORED.contains(&key) || key.starts_with("x-") || key.starts_with("X-") => {}
                _ => {
                    return Err(format!(
                        "option {word:?} is unknown; known are ro, allow_other, uid=, gid= and extra="
                    ));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_those_of_mount() {
        let mut options = Options::default();
        options.add("rw,noauto,x-systemd.requires=roundel.service,allow_other").unwrap();
        options.add("uid=33,gid=34,extra=/srv/extra,ro,_netdev").unwrap();
        let want = Options {
            read_only: true,
            allow_other: true,
            user: Some(33),
            group: Some(34),
            extra: Some("/srv/extra".into()),
        };
        assert_eq!(options, want);
    }

    #[test]
    fn what_is_unknown_is_refused() {
        for text in ["uid=www-data", "uid", "extra", "extra=", "hard", "ro,sync=7"] {
            assert!(Options::default().add(text).is_err(), "{text}");
        }
    }
}
