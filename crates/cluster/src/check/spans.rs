//! Sets of ids, as the ranges that they are.

use std::ops::Range;

/// A set of ids: ranges in order, of which no two touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Spans(Vec<Range<u32>>);

impl Spans {
    /// Adds ids.
    pub(super) fn add(&mut self, mut ids: Range<u32>) {
        if ids.is_empty() {
            return;
        }
        let from = self.0.partition_point(|span| span.end < ids.start);
        let to = self.0.partition_point(|span| span.start <= ids.end);
        if from < to {
            ids = ids.start.min(self.0[from].start)..ids.end.max(self.0[to - 1].end);
        }
        self.0.splice(from..to, [ids]);
    }

    /// The first ids of `all` that are not in it; empty if all are.
    pub(super) fn gap(&self, all: Range<u32>) -> Range<u32> {
        let mut from = all.start;
        for span in &self.0 {
            if span.start > from {
                return from.min(all.end)..span.start.min(all.end);
            }
            from = from.max(span.end);
        }
        from.min(all.end)..all.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_knows_what_it_lacks() {
        let mut spans = Spans::default();
        assert_eq!(spans.gap(0..10), 0..10);
        spans.add(4..6);
        assert_eq!(spans.gap(0..10), 0..4);
        spans.add(8..8);
        spans.add(8..12);
        spans.add(0..4);
        assert_eq!((spans.gap(0..20), spans.gap(0..7)), (6..8, 6..7));
        spans.add(5..9);
        assert_eq!((spans.0.len(), &spans.0[0]), (1, &(0..12)));
        assert_eq!((spans.gap(0..12).is_empty(), spans.gap(0..13)), (true, 12..13));
        spans.add(20..21);
        spans.add(14..16);
        assert_eq!(spans, Spans(vec![0..12, 14..16, 20..21]));
        spans.add(3..30);
        assert_eq!((spans.0.len(), &spans.0[0]), (1, &(0..30)));
    }
}
