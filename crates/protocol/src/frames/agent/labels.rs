//! Labels: how the RRDs that an agent feeds are shown, such as the titles and legends of its mrtg.cfg.

use super::super::{FrameError, HEADER_BYTES, Reader, begin, finish};
use super::session::LABELS;

/// Bytes of a name in [`LABELS`]: a path.
pub const LABEL_NAME_BYTES_MAX: usize = 4_096;
/// Bytes of a label: a title and a few legends.
pub const LABEL_BYTES_MAX: usize = 16 << 10;
/// Bytes that a frame of labels has at most as an agent of ours sends it: a session's other frames need not wait long.
const FRAME_BYTES: usize = 256 << 10;

/// This frame begins a list of all labels: what was said before counts no more.
const FLAG_ALL: u8 = 1;

/// How an RRD is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GivenLabel<'a> {
    /// The RRD's name.
    pub name: &'a [u8],
    /// JSON: `title`, and `graph` with `unit`, `factor`, `base`, `upper` and `lines`.
    pub label: &'a [u8],
}

impl GivenLabel<'_> {
    /// True if a frame can hold it.
    pub fn is_short(&self) -> bool {
        self.name.len() <= LABEL_NAME_BYTES_MAX && self.label.len() <= LABEL_BYTES_MAX
    }
}

/// Some of an agent's labels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelsPart<'a> {
    /// What was said before counts no more.
    pub begins_all: bool,
    /// The labels.
    pub labels: Vec<GivenLabel<'a>>,
}

/// Decodes the body of [`LABELS`].
pub(super) fn part<'a>(mut reader: Reader<'a>) -> Result<LabelsPart<'a>, FrameError> {
    let [flags] = reader.array("flags")?;
    if flags & !FLAG_ALL != 0 {
        return Err(FrameError::Value("flags"));
    }
    let mut labels = Vec::new();
    for _ in 0..reader.u32("a number of labels")? {
        let bytes = usize::from(reader.u16("a label's name")?);
        let name = reader.bytes(bytes, "a label's name")?;
        let bytes = usize::from(reader.u16("a label")?);
        let label = reader.bytes(bytes, "a label")?;
        let given = GivenLabel { name, label };
        if !given.is_short() {
            return Err(FrameError::Value("a label"));
        }
        labels.push(given);
    }
    reader.end().map(|()| LabelsPart { begins_all: flags == FLAG_ALL, labels })
}

/// Appends one frame of the first of these labels, as many as fit; Names and
/// labels have at most [`LABEL_NAME_BYTES_MAX`] and [`LABEL_BYTES_MAX`] bytes. Returns how many it has.
pub fn push_labels(out: &mut Vec<u8>, begins_all: bool, labels: &[GivenLabel<'_>]) -> usize {
    let start = begin(out, LABELS, 0);
    let body = start + HEADER_BYTES;
    out.push(if begins_all { FLAG_ALL } else { 0 });
    out.extend_from_slice(&[0; 4]);
    let mut count = 0u32;
    for GivenLabel { name, label } in labels {
        if out.len() - body + 4 + name.len() + label.len() > FRAME_BYTES {
            break;
        }
        for part in [name, label] {
            out.extend_from_slice(&(part.len() as u16).to_le_bytes());
            out.extend_from_slice(part);
        }
        count += 1;
    }
    out[body + 1..body + 5].copy_from_slice(&count.to_le_bytes());
    finish(out, start);
    count as usize
}

#[cfg(test)]
mod tests {
    use super::super::super::scan;
    use super::super::AGENT_BODY_BYTES_MAX;
    use super::super::session::FromAgent;
    use super::*;

    #[test]
    fn labels_take_as_many_frames_as_they_need() {
        let texts: Vec<Vec<u8>> = (0..40u8).map(|number| vec![number; LABEL_BYTES_MAX]).collect();
        let all: Vec<_> = texts.iter().map(|label| GivenLabel { name: &label[..9], label }).collect();
        for count in [0, 1, 15, 16, 40] {
            let (mut rest, mut out, mut begins) = (&all[..count], Vec::new(), true);
            while begins || !rest.is_empty() {
                rest = &rest[push_labels(&mut out, begins, rest)..];
                begins = false;
            }
            let (mut bytes, mut found, mut flags) = (out.as_slice(), Vec::new(), Vec::new());
            while let Some((frame, used)) = scan(bytes, AGENT_BODY_BYTES_MAX).unwrap() {
                let Ok(FromAgent::Labels(part)) = FromAgent::decode(frame) else { panic!("no labels") };
                flags.push(part.begins_all);
                found.extend(part.labels);
                bytes = &bytes[used..];
            }
            assert_eq!((found.as_slice(), bytes.len()), (&all[..count], 0));
            assert_eq!(flags, (0..count.div_ceil(15).max(1)).map(|frame| frame == 0).collect::<Vec<_>>());
        }
    }

    #[test]
    fn labels_that_are_too_long_or_cut_are_refused() {
        let decode = |out: &[u8]| {
            let frame = scan(out, AGENT_BODY_BYTES_MAX).unwrap().unwrap().0;
            FromAgent::decode(frame).map(drop)
        };
        let longest = [vec![b'n'; LABEL_NAME_BYTES_MAX], vec![b't'; LABEL_BYTES_MAX]];
        let mut out = Vec::new();
        push_labels(&mut out, false, &[GivenLabel { name: &longest[0], label: &longest[1] }]);
        assert_eq!(decode(&out), Ok(()));
        for end in [12, 13, 16, 17, 18, 19, 30, out.len() - 1] {
            let mut cut = out[..end].to_vec();
            finish(&mut cut, 0);
            assert!(decode(&cut).is_err(), "{end}");
        }
        for (name, label) in [(LABEL_NAME_BYTES_MAX + 1, 2), (1, LABEL_BYTES_MAX + 1)] {
            let mut out = Vec::new();
            let (name, label) = (vec![b'n'; name], vec![b't'; label]);
            push_labels(&mut out, false, &[GivenLabel { name: &name, label: &label }]);
            assert_eq!(decode(&out), Err(FrameError::Value("a label")));
        }
    }
}
