//! The labels of an agent's RRDs, for the page.

use std::sync::Arc;

use protocol::frames::agent::labels::{GivenLabel, LabelsPart};
use store::name::RrdName;
use suggest::{Label, LabelGraph};

use crate::collectors::labels::Labels;
use crate::limits::AGENT_LABELS_BYTES;
use crate::service::Service;

/// Lines of a graph: MRTG has two.
const LINES_MAX: usize = 64;

/// Where a session puts what its agent says.
pub struct AgentLabels {
    labels: Arc<Labels>,
    /// What the agent is called there.
    source: String,
    /// The log says already that there are too many, and that there are some that cannot be shown.
    said_full: bool,
    said_bad: bool,
}

impl AgentLabels {
    /// Of a session of `agent`.
    pub fn new(service: &Service, agent: &[u8]) -> Self {
        let source = format!("agent {}", String::from_utf8_lossy(agent));
        AgentLabels {
            labels: Arc::clone(&service.collecting.labels),
            source,
            said_full: false,
            said_bad: false,
        }
    }

    /// Takes what a frame says, without what cannot be shown: readings are worth more than titles, so the session goes on.
    pub fn take(&mut self, part: &LabelsPart<'_>) {
        let (mut labels, mut bad) = (Vec::with_capacity(part.labels.len()), None);
        for given in &part.labels {
            match decode(given) {
                Ok(label) => labels.push(label),
                Err(error) => drop(bad.get_or_insert(error)),
            }
        }
        if let Some(error) = bad.filter(|_| !std::mem::replace(&mut self.said_bad, true)) {
            tracing::warn!(
                "{} says how RRDs are shown in a way that is left out, first {error}",
                self.source
            );
        }
        if part.begins_all {
            self.labels.take_back(&self.source, |_| true);
        }
        let left_out = self.labels.add_up_to(&self.source, labels.into_iter(), AGENT_LABELS_BYTES);
        if left_out > 0 && !std::mem::replace(&mut self.said_full, true) {
            tracing::warn!(
                bytes = AGENT_LABELS_BYTES,
                "the titles and legends that {} says take more memory than they may: the page shows the first ones",
                self.source
            );
        }
    }
}

fn decode(given: &GivenLabel<'_>) -> Result<(Vec<u8>, Label), String> {
    let name = String::from_utf8_lossy(given.name);
    if !RrdName::is_normal(given.name) {
        return Err(format!("the label of {name:?}: no RRD can have that name"));
    }
    let label: Label =
        serde_json::from_slice(given.label).map_err(|error| format!("the label of {name}: {error}"))?;
    match label.graph.as_deref().is_none_or(is_sound) {
        true => Ok((given.name.into(), label)),
        false => Err(format!("the label of {name} has a value that none can have")),
    }
}

/// True for a graph that an mrtg.cfg can have asked for.
fn is_sound(graph: &LabelGraph) -> bool {
    let numbers = [graph.factor, graph.upper.unwrap_or_default()];
    let is_colour =
        |colour: &String| colour.len() == 6 && colour.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut lines = graph.lines.iter();
    numbers.iter().all(|number| number.is_finite())
        && [1000, 1024].contains(&graph.base)
        && lines.len() <= LINES_MAX
        && lines.all(|line| line.colour.iter().all(is_colour))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_labels_that_can_be_shown_are_taken() {
        let line = r#"{"source":"ds0","label":"In","is_area":true,"colour":"00ff00"}"#;
        let graph = |unit: &str, base: u32, line: &str| {
            let head = r#"{"title":"Uplink","graph":{"#;
            format!(r#"{head}"unit":"{unit}","factor":8,"base":{base},"upper":null,"lines":[{line}]}}}}"#)
        };
        let take = |name: &str, label: &str| {
            decode(&GivenLabel { name: name.as_bytes(), label: label.as_bytes() }).map(|(_, label)| label)
        };
        let good = take("a.rrd", &graph("bit/s", 1000, line)).unwrap();
        assert_eq!(good.graph.map(|graph| (graph.factor, graph.lines.len())), Some((8.0, 1)));
        assert_eq!(take("a.rrd", r#"{"title":"A"}"#), Ok(Label { title: "A".to_string(), graph: None }));
        let bad = [
            ("../a.rrd", r#"{"title":"A"}"#.to_string()),
            ("a.rrd", "{}".to_string()),
            ("a.rrd", graph("B", 10, line)),
            ("a.rrd", graph("B", 1000, &line.replace("00ff00", "red"))),
            ("a.rrd", graph("B", 1000, &vec![line; LINES_MAX + 1].join(","))),
            ("a.rrd", graph("B", 1000, line).replace("\"factor\":8", "\"factor\":1e999")),
        ];
        for (name, label) in bad {
            assert!(take(name, &label).is_err(), "{name} {label}");
        }
    }
}
