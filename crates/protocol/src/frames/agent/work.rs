//! Work: the devices that the store gives to an agent, each for an *assignment*, a number that is never given twice.

use super::super::{FrameError, HEADER_BYTES, Reader, begin, finish, push};
use super::session::{PROFILE, WORK, WORK_WANTED};
use super::{STORE_BODY_BYTES_MAX, TAGS_MAX, is_agent_name};

/// Bytes of one device's settings.
pub const SETTINGS_BYTES_MAX: usize = 512 << 10;
/// Devices of all frames of an agent's work: ten times as many as an agent was measured with.
pub const DEVICES_MAX: usize = 200_000;

/// Bytes of a profile's name: a path.
pub const PROFILE_NAME_BYTES_MAX: usize = 4_096;
/// Bytes of a profile: ten times as many as the largest that is built in.
pub const PROFILE_BYTES_MAX: usize = 64 << 10;
/// Profiles of an agent's work. Guessed: a site has some for each maker of its devices.
pub const PROFILES_MAX: usize = 1_000;

/// More frames follow.
const FLAG_MORE: u8 = 1;
/// Bytes before a device's settings.
const DEVICE_BYTES: usize = 12;

/// A device that an agent is to poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AssignedDevice<'a> {
    /// The assignment that its readings name; never 0.
    pub assignment: u64,
    /// Its settings: JSON, with the keys of `[[snmp]]`.
    pub settings: &'a [u8],
}

/// A profile that devices of an agent name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GivenProfile<'a> {
    /// What the devices call it.
    pub name: &'a str,
    /// TOML with the keys of a file of profiles, except `mibs`: its objects are numbers.
    pub text: &'a str,
}

/// Some of an agent's devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkPart<'a> {
    /// Another part follows.
    pub has_more: bool,
    /// The devices.
    pub devices: Vec<AssignedDevice<'a>>,
}

/// Decodes the body of [`WORK_WANTED`].
pub(super) fn tags<'a>(mut reader: Reader<'a>) -> Result<Vec<&'a [u8]>, FrameError> {
    let count = usize::from(reader.u16("a number of tags")?);
    if count > TAGS_MAX {
        return Err(FrameError::Value("a number of tags"));
    }
    let one = |_| {
        let bytes = usize::from(reader.u16("a tag")?);
        let tag = reader.bytes(bytes, "a tag")?;
        if is_agent_name(tag) { Ok(tag) } else { Err(FrameError::Value("a tag")) }
    };
    let tags = (0..count).map(one).collect::<Result<_, _>>()?;
    reader.end().map(|()| tags)
}

/// Decodes the body of [`PROFILE`].
pub(super) fn profile<'a>(mut reader: Reader<'a>) -> Result<GivenProfile<'a>, FrameError> {
    let bytes = usize::from(reader.u16("a profile's name")?);
    let name = reader.bytes(bytes, "a profile's name")?;
    let utf8 = |bytes| std::str::from_utf8(bytes).map_err(|_| FrameError::Value("a profile"));
    if bytes > PROFILE_NAME_BYTES_MAX || reader.0.len() > PROFILE_BYTES_MAX {
        return Err(FrameError::Value("a profile"));
    }
    Ok(GivenProfile { name: utf8(name)?, text: utf8(reader.0)? })
}

/// Appends [`PROFILE`]. Name and text have at most [`PROFILE_NAME_BYTES_MAX`] and [`PROFILE_BYTES_MAX`] bytes.
pub fn push_profile(out: &mut Vec<u8>, profile: &GivenProfile<'_>) {
    push(out, PROFILE, 0, |body| {
        body.extend_from_slice(&(profile.name.len() as u16).to_le_bytes());
        body.extend_from_slice(profile.name.as_bytes());
        body.extend_from_slice(profile.text.as_bytes());
    });
}

/// Decodes the body of [`WORK`], but for its end.
pub(super) fn part<'a>(reader: &mut Reader<'a>) -> Result<WorkPart<'a>, FrameError> {
    let [flags] = reader.array("flags")?;
    if flags & !FLAG_MORE != 0 {
        return Err(FrameError::Value("flags"));
    }
    let mut devices = Vec::new();
    for _ in 0..reader.u32("a number of devices")? {
        let assignment = reader.u64("an assignment")?;
        let bytes = reader.u32("a device")? as usize;
        let settings = reader.bytes(bytes, "the settings of a device")?;
        if assignment == 0 || bytes > SETTINGS_BYTES_MAX {
            return Err(FrameError::Value("a device"));
        }
        devices.push(AssignedDevice { assignment, settings });
    }
    Ok(WorkPart { has_more: flags == FLAG_MORE, devices })
}

/// Appends [`WORK_WANTED`].
pub fn push_work_wanted(out: &mut Vec<u8>, tags: &[String]) {
    push(out, WORK_WANTED, 0, |body| {
        body.extend_from_slice(&(tags.len() as u16).to_le_bytes());
        for tag in tags {
            body.extend_from_slice(&(tag.len() as u16).to_le_bytes());
            body.extend_from_slice(tag.as_bytes());
        }
    });
}

/// Appends [`WORK`]: as many frames as are needed, at least one. Settings have at most [`SETTINGS_BYTES_MAX`] bytes.
pub fn push_work<'a>(out: &mut Vec<u8>, devices: impl IntoIterator<Item = AssignedDevice<'a>>) {
    let mut devices = devices.into_iter().peekable();
    loop {
        let start = begin(out, WORK, 0);
        let body = start + HEADER_BYTES;
        out.extend_from_slice(&[0; 5]);
        let mut count = 0u32;
        while let Some(device) = devices
            .next_if(|device| out.len() - body + DEVICE_BYTES + device.settings.len() <= STORE_BODY_BYTES_MAX)
        {
            out.extend_from_slice(&device.assignment.to_le_bytes());
            out.extend_from_slice(&(device.settings.len() as u32).to_le_bytes());
            out.extend_from_slice(device.settings);
            count += 1;
        }
        out[body] = if devices.peek().is_some() { FLAG_MORE } else { 0 };
        out[body + 1..body + 5].copy_from_slice(&count.to_le_bytes());
        finish(out, start);
        if out[body] == 0 {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::scan;
    use super::super::session::{FromAgent, FromStore};
    use super::*;

    #[test]
    fn tags_round_trip() {
        let mut out = Vec::new();
        push_work_wanted(&mut out, &["hall".to_string(), "ups".to_string()]);
        assert_eq!(&out[12..], b"\x02\0\x04\0hall\x03\0ups");
        let frame = scan(&out, 100).unwrap().unwrap().0;
        assert_eq!(FromAgent::decode(frame), Ok(FromAgent::WorkWanted(vec![b"hall", b"ups"])));
        for end in 12..out.len() {
            let mut cut = out[..end].to_vec();
            finish(&mut cut, 0);
            assert!(FromAgent::decode(scan(&cut, 100).unwrap().unwrap().0).is_err(), "{end}");
        }
        out[16] = b' ';
        let frame = scan(&out, 100).unwrap().unwrap().0;
        assert_eq!(FromAgent::decode(frame), Err(FrameError::Value("a tag")));
    }

    #[test]
    fn profiles_round_trip_up_to_their_limits() {
        let decode = |name: &str, text: &str| {
            let mut out = Vec::new();
            push_profile(&mut out, &GivenProfile { name, text });
            let frame = scan(&out, STORE_BODY_BYTES_MAX).unwrap().unwrap().0;
            let decoded = FromStore::decode(frame);
            decoded.map(|found| assert_eq!(found, FromStore::Profile(GivenProfile { name, text })))
        };
        let longest = ["n".repeat(PROFILE_NAME_BYTES_MAX), "t".repeat(PROFILE_BYTES_MAX)];
        for (name, text) in [("", ""), ("/etc/acme.toml", "table = []"), (&longest[0], &longest[1])] {
            assert_eq!(decode(name, text), Ok(()));
        }
        let longer = longest.map(|text| text + "x");
        for (name, text) in [(longer[0].as_str(), ""), ("", &longer[1])] {
            assert_eq!(decode(name, text), Err(FrameError::Value("a profile")));
        }
    }

    #[test]
    fn work_has_as_many_frames_as_it_needs() {
        let settings: Vec<Vec<u8>> = (0..5u8).map(|number| vec![number; 400_000]).collect();
        let device = |(assignment, settings): (u64, _)| AssignedDevice { assignment, settings };
        for count in 0..=5 {
            let mut out = Vec::new();
            let want: Vec<_> =
                (1..).zip(settings.iter().map(Vec::as_slice)).take(count).map(device).collect();
            push_work(&mut out, want.iter().copied());
            let (mut rest, mut found, mut parts) = (out.as_slice(), Vec::new(), 0);
            let mut has_more = true;
            while has_more {
                let (frame, used) = scan(rest, STORE_BODY_BYTES_MAX).unwrap().unwrap();
                let Ok(FromStore::Work(part)) = FromStore::decode(frame) else { panic!("no work") };
                found.extend(part.devices);
                (rest, has_more, parts) = (&rest[used..], part.has_more, parts + 1);
            }
            assert_eq!((found, rest.len(), parts), (want, 0, count.div_ceil(2).max(1)));
        }
    }
}
