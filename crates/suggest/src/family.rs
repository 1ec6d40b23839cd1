//! Several RRDs in one graph.

use std::collections::BTreeMap;

use crate::arguments::{Line, Plan, Shape};
use crate::preset::{plain, split};
use crate::{LINES_MAX, Presets, Rrd, Suggestion, each};

/// How several RRDs are drawn in one graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Together {
    /// As lines.
    Overlay,
    /// On top of one another.
    Stack,
    /// As one line, their sum.
    Sum,
}

/// The graphs of a directory. RRDs of one data source that are called alike up to a `-`, such as `cpu-user` and `cpu-idle`, are
/// lines of one graph; others have their own graphs.
pub fn directory(presets: &Presets, rrds: &[Rrd<'_>]) -> Vec<Suggestion> {
    let mut families: Vec<Vec<Rrd<'_>>> = Vec::new();
    let mut family_of: BTreeMap<(&[u8], &[u8], &str), usize> = BTreeMap::new();
    for &rrd in rrds {
        let key = match (rrd.definition.ds.as_slice(), kind(rrd.name)) {
            ([ds], Some((directory, kind))) => Some((directory, kind, ds.name.as_str())),
            _ => None,
        };
        match key.and_then(|key| family_of.get(&key)) {
            Some(&family) => families[family].push(rrd),
            None => {
                if let Some(key) = key {
                    family_of.insert(key, families.len());
                }
                families.push(vec![rrd]);
            }
        }
    }
    let mut graphs = Vec::new();
    for family in families {
        match family.as_slice() {
            [one] => graphs.extend(each(presets, *one)),
            all => graphs.extend(all.chunks(LINES_MAX).map(|part| of_family(presets, part))),
        }
    }
    graphs
}

/// The whole name up to the last part, and the last part up to its first `-`, if it has one.
fn kind(name: &[u8]) -> Option<(&[u8], &[u8])> {
    let last = name.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    let dash = name[last..].iter().position(|&byte| byte == b'-')?;
    Some((&name[..last], &name[last..last + dash]))
}

fn of_family(presets: &Presets, family: &[Rrd<'_>]) -> Suggestion {
    let first = family[0];
    let shape = |index: usize| match (presets.is_stack(first.name), index) {
        (false, _) => Shape::Line,
        (true, 0) => Shape::Area,
        (true, _) => Shape::Stack,
    };
    let preset = presets.of(first).into_iter().next();
    let line = |(index, rrd): (usize, &Rrd<'_>)| {
        let (_, last) = split(rrd.name);
        let instance = last.iter().position(|&byte| byte == b'-').map_or(last, |dash| &last[dash + 1..]);
        (index, plain(instance))
    };
    let labels: Vec<(usize, String)> = family.iter().enumerate().map(line).collect();
    let lines = family.iter().zip(labels).map(|(rrd, (index, label))| Line {
        rrd: *rrd,
        source: &rrd.definition.ds[0].name,
        label,
        shape: shape(index),
        factor: preset.map_or(1.0, |preset| preset.factor * preset.lines[0].factor),
        colour: None,
    });
    let (directory, last) = split(first.name);
    let kind = last.split(|&byte| byte == b'-').next().unwrap_or_default();
    Plan {
        title: format!("{} {}", plain(directory), plain(kind)).trim().to_string(),
        unit: preset.map_or(String::new(), |preset| preset.unit.clone()),
        base: preset.map_or(1000, |preset| preset.base),
        lower: preset.and_then(|preset| preset.lower),
        upper: None,
        lines: lines.collect(),
    }
    .into_suggestion()
}

/// The graphs of RRDs drawn together: one for each data source, named as in the first RRD that has it.
pub fn together(presets: &Presets, rrds: &[Rrd<'_>], how: Together) -> Vec<Suggestion> {
    let mut sources: Vec<(&str, Vec<Rrd<'_>>)> = Vec::new();
    for &rrd in rrds {
        for ds in &rrd.definition.ds {
            match sources.iter_mut().find(|(name, _)| *name == ds.name) {
                Some((_, all)) => all.push(rrd),
                None => sources.push((&ds.name, vec![rrd])),
            }
        }
    }
    let graphs = sources.iter().flat_map(|(source, all)| {
        let lines_max = if how == Together::Sum { all.len() } else { LINES_MAX };
        all.chunks(lines_max.max(1)).map(|part| of_source(presets, source, part, how)).collect::<Vec<_>>()
    });
    graphs.collect()
}

fn of_source(presets: &Presets, source: &str, rrds: &[Rrd<'_>], how: Together) -> Suggestion {
    let preset =
        presets.of(rrds[0]).into_iter().find(|one| one.lines.iter().any(|line| line.source == source));
    let factor = preset.map_or(1.0, |preset| {
        let line = preset.lines.iter().find(|line| line.source == source);
        preset.factor * line.map_or(1.0, |line| line.factor)
    });
    let common = common_length(rrds);
    let lines = rrds.iter().enumerate().map(|(index, rrd)| Line {
        rrd: *rrd,
        source,
        label: plain(crate::preset::stem(&rrd.name[common..])),
        shape: match (how, index) {
            (Together::Stack, 0) => Shape::Area,
            (Together::Stack, _) => Shape::Stack,
            _ => Shape::Line,
        },
        factor,
        colour: None,
    });
    let place = plain(rrds[0].name[..common].strip_suffix(b"/").unwrap_or_default());
    let plan = Plan {
        title: format!("{place} {source}").trim().to_string(),
        unit: preset.map_or(String::new(), |preset| preset.unit.clone()),
        base: preset.map_or(1000, |preset| preset.base),
        lower: preset.and_then(|preset| preset.lower),
        upper: None,
        lines: lines.collect(),
    };
    if how == Together::Sum { plan.into_sum() } else { plan.into_suggestion() }
}

/// How many bytes of directories all names begin with.
fn common_length(rrds: &[Rrd<'_>]) -> usize {
    let first = rrds[0].name;
    let same = |other: &[u8]| first.iter().zip(other).take_while(|(one, two)| one == two).count();
    let length = rrds.iter().map(|rrd| same(rrd.name)).min().unwrap_or(0);
    first[..length].iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1)
}
