//! Users and groups by name, dropping root privileges, and going to the background.
//!
//! The only user of `nix` in the daemon: `rustix` changes the user of one thread only, and has no `daemon`.

use std::io;

use nix::unistd::{Gid, Group, Uid, User};

/// The id of a user, given by name or number.
pub fn user_id(text: &str) -> Option<u32> {
    match text.parse() {
        Ok(id) => Some(id),
        Err(_) => User::from_name(text).ok().flatten().map(|user| user.uid.as_raw()),
    }
}

/// The id of a group, given by name or number.
pub fn group_id(text: &str) -> Option<u32> {
    match text.parse() {
        Ok(id) => Some(id),
        Err(_) => Group::from_name(text).ok().flatten().map(|group| group.gid.as_raw()),
    }
}

/// True when this process may change its user.
pub fn is_root() -> bool {
    Uid::effective().is_root()
}

/// Changes to `group`, then `user`, permanently. Must be called before any thread is started.
///
/// # Errors
/// When the system refuses, or root privileges could be regained afterwards.
pub fn drop_to(user: Option<u32>, group: Option<u32>) -> io::Result<()> {
    if user.is_none() && group.is_none() {
        return Ok(());
    }
    let found = user.and_then(|user| User::from_uid(Uid::from_raw(user)).ok().flatten());
    let group = group.map(Gid::from_raw).or(found.as_ref().map(|found| found.gid));
    if let Some(group) = group {
        nix::unistd::setgroups(&[group])?;
        nix::unistd::setgid(group)?;
    }
    if let Some(user) = user {
        nix::unistd::setuid(Uid::from_raw(user))?;
        if user != 0 && nix::unistd::setuid(Uid::from_raw(0)).is_ok() {
            return Err(io::Error::other("root privileges came back after they were dropped"));
        }
    }
    Ok(())
}

/// Moves to the background, keeping the working directory. Must be called before any thread is started.
///
/// # Errors
/// When the system cannot create a process.
pub fn to_background() -> io::Result<()> {
    Ok(nix::unistd::daemon(true, false)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_and_groups_are_found_by_name_and_number() {
        assert_eq!(user_id("root"), Some(0));
        assert_eq!(group_id("root"), Some(0));
        assert_eq!(user_id("4242"), Some(4242));
        assert_eq!(user_id("no such user"), None);
        assert_eq!(group_id("no such group"), None);
    }
}
