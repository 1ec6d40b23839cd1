//! Sections of `key = value`, as Python's ConfigParser reads them.

use super::CarbonFault;

/// Sections of a file at most.
const SECTIONS_MAX: usize = 10_000;

/// A section.
#[derive(Clone, Debug)]
pub(super) struct Section<'a> {
    pub(super) name: &'a str,
    line: usize,
    /// Keys in small letters, with their lines.
    keys: Vec<(String, usize, &'a str)>,
}

impl<'a> Section<'a> {
    /// The line and the value of a key; the last one counts.
    pub(super) fn get(&self, key: &str) -> Option<(usize, &'a str)> {
        self.keys.iter().rev().find(|(name, ..)| name == key).map(|(_, line, value)| (*line, *value))
    }

    /// What is wrong with it as a whole.
    pub(super) fn fault(&self, text: &str) -> CarbonFault {
        CarbonFault { line: self.line, text: format!("the section [{}] cannot be used: {text}", self.name) }
    }
}

/// The sections of a text in their order.
pub(super) fn sections<'a>(text: &'a str, fault: &mut dyn FnMut(CarbonFault)) -> Vec<Section<'a>> {
    let mut sections: Vec<Section<'a>> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        let mut bad = |text: String| fault(CarbonFault { line: number, text });
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            if sections.len() == SECTIONS_MAX {
                bad(format!("more than {SECTIONS_MAX} sections: the rest is not read"));
                break;
            }
            sections.push(Section { name: name.0, line: number, keys: Vec::new() });
            continue;
        }
        let Some((key, value)) = line.split_once(['=', ':']) else {
            bad(format!("\"{line}\" is neither [section] nor key = value"));
            continue;
        };
        match sections.last_mut() {
            Some(section) => {
                section.keys.push((key.trim().to_ascii_lowercase(), number, value.trim()));
            }
            None => bad(format!("\"{line}\" stands before the first [section]")),
        }
    }
    sections
}
