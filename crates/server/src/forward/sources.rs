//! What the values of readings are called: the data sources of RRDs, as far as clients feed them.

use std::collections::HashMap;
use std::sync::Arc;

use rrd::definition::{Definition, DsKind};
use store::engine::Engine;
use store::name::RrdName;

use super::batch::{BatchReading, ForwardBatch};
use super::target::{ForwardRefusal, RefusalReason};

/// The names of sources by RRD. Some hundred bytes for each RRD that is forwarded.
pub struct SourceNames {
    engine: Arc<dyn Engine>,
    known: HashMap<Box<[u8]>, Arc<[String]>>,
}

/// Takes a value: the reading that it is of, the name of its source, and the value as text and number.
pub type ValueVisitor<'a, 'b> = dyn FnMut(&BatchReading<'b>, &str, (&str, f64)) + 'a;

impl SourceNames {
    /// Nothing is known yet.
    pub fn new(engine: Arc<dyn Engine>) -> Self {
        SourceNames { engine, known: HashMap::new() }
    }

    /// Forgets what is known.
    pub fn forget(&mut self) {
        self.known.clear();
    }

    /// Visits the values of a batch that are numbers.
    /// Readings of RRDs that are gone are refused.
    pub fn visit<'b>(
        &mut self,
        batch: &'b ForwardBatch,
        refused: &mut dyn FnMut(ForwardRefusal<'_>),
        visit: &mut ValueVisitor<'_, 'b>,
    ) {
        self.follow(batch);
        for reading in batch.readings() {
            let Some(names) = self.of(reading.name) else {
                let (reason, text) = (RefusalReason::Gone, "the RRD was removed");
                refused(ForwardRefusal { reason, name: reading.name, count: 1, text });
                continue;
            };
            for (index, text, number) in numbers(&reading) {
                let Some(source) = names.get(index) else { break };
                visit(&reading, source, (text, number));
            }
        }
    }

    /// Takes note of what is created and redefined in a batch.
    fn follow(&mut self, batch: &ForwardBatch) {
        for name in &batch.redefined {
            self.known.remove(name.as_bytes());
        }
        for created in &batch.created {
            self.known.insert(created.name.as_bytes().into(), fed(&created.definition));
        }
    }

    /// The names of an RRD's sources; `None` when it is no longer there.
    fn of(&mut self, name: &[u8]) -> Option<Arc<[String]>> {
        if let Some(known) = self.known.get(name) {
            return Some(Arc::clone(known));
        }
        let status = self.engine.status(&RrdName::new(name).ok()?).ok()?;
        let names = fed(&status.definition);
        self.known.insert(name.into(), Arc::clone(&names));
        Some(names)
    }
}

fn fed(definition: &Definition) -> Arc<[String]> {
    let fed = definition.ds.iter().filter(|ds| matches!(ds.kind, DsKind::Fed { .. }));
    fed.map(|ds| ds.name.clone()).collect()
}

/// The values of a reading that are numbers, with the indices of their sources. Unknown ones (`U`) are left out.
fn numbers<'a>(reading: &BatchReading<'a>) -> impl Iterator<Item = (usize, &'a str, f64)> {
    let values = std::str::from_utf8(reading.values).unwrap_or_default();
    values.split(':').enumerate().filter_map(|(index, text)| {
        let number: f64 = text.trim().parse().ok()?;
        number.is_finite().then_some((index, text.trim(), number))
    })
}

#[cfg(test)]
mod tests {
    use rrd::time::Timestamp;

    use super::*;

    #[test]
    fn what_is_unknown_or_no_number_is_left_out() {
        let mut batch = ForwardBatch::default();
        batch.push(b"a", Timestamp::new(1, 0), b"1.5:U:nan:1e3:x:18446744073709551615");
        let reading = batch.readings().next().unwrap();
        let found: Vec<_> = numbers(&reading).collect();
        assert_eq!(
            found,
            [(0, "1.5", 1.5), (3, "1e3", 1000.0), (5, "18446744073709551615", 18_446_744_073_709_551_615.0)]
        );
    }
}
