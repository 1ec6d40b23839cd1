//! Users and groups by name, the way from root to one of them, and into the background.
//!
//! The only place of the daemon that uses `nix`: `rustix` changes the user of one thread only, and has no `daemon`.

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

/// True when this process may become somebody else.
pub fn is_root() -> bool {
    Uid::effective().is_root()
}

/// Becomes `group`, then `user`, for good. Before any thread is started.
///
/// # Errors
/// When the system says no, or when root could be had back afterwards.
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

/// Goes to the background, in the working directory it is in. Before any thread is started.
///
/// # Errors
/// When the system gives no process.
pub fn to_background() -> io::Result<()> {
    Ok(nix::unistd::daemon(true, false)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_understood() {
        assert_eq!(user_id("root"), Some(0));
        assert_eq!(group_id("root"), Some(0));
        assert_eq!(user_id("4242"), Some(4242));
        assert_eq!(user_id("no such user"), None);
        assert_eq!(group_id("no such group"), None);
    }
}
