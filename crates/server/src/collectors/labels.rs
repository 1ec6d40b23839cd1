//! What collectors say of how their RRDs are shown: MRTG's titles and legends, descriptions of interfaces. In memory: who feeds an
//! RRD says it again after each start.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use suggest::Label;

/// Labels by the name of the RRD.
#[derive(Debug, Default)]
pub struct Labels(RwLock<BTreeMap<Box<[u8]>, Labelled>>);

#[derive(Debug)]
struct Labelled {
    label: Arc<Label>,
    /// Its title in lower case, to be searched.
    lower: Box<str>,
    /// What said it.
    source: Arc<str>,
}

impl Labels {
    /// `source` says these, and nothing else any more.
    pub fn replace(&self, source: &str, labels: impl Iterator<Item = (Vec<u8>, Label)>) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).retain(|_, one| &*one.source != source);
        self.add(source, labels);
    }

    /// `source` says these besides.
    pub fn add(&self, source: &str, labels: impl Iterator<Item = (Vec<u8>, Label)>) {
        let source: Arc<str> = source.into();
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for (name, label) in labels {
            let lower = label.title.to_lowercase().into();
            let labelled = Labelled { lower, label: Arc::new(label), source: Arc::clone(&source) };
            all.insert(name.into(), labelled);
        }
    }

    /// The label of the RRD `name`.
    pub fn get(&self, name: &[u8]) -> Option<Arc<Label>> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        all.get(name).map(|one| Arc::clone(&one.label))
    }

    /// The title of the RRD `name`, if it has one.
    pub fn title(&self, name: &[u8]) -> Option<String> {
        self.get(name).map(|label| label.title.clone()).filter(|title| !title.is_empty())
    }

    /// The names of the first `limit` RRDs in whose titles all words of `text` occur, in any case, and not in their names; and how
    /// many there are.
    pub fn search(&self, text: &[u8], limit: usize) -> (Vec<Vec<u8>>, usize) {
        let text = String::from_utf8_lossy(text).to_lowercase();
        let words: Vec<&str> = text.split_whitespace().collect();
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let has = |text: &str| !words.is_empty() && words.iter().all(|word| text.contains(word));
        let found = all
            .iter()
            .filter(|(name, one)| has(&one.lower) && !has(&String::from_utf8_lossy(name).to_lowercase()));
        let (mut names, mut total) = (Vec::new(), 0);
        for (name, _) in found {
            total += 1;
            if names.len() < limit {
                names.push(name.to_vec());
            }
        }
        (names, total)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(name: &str, title: &str) -> (Vec<u8>, Label) {
        (name.into(), Label { title: title.to_string(), graph: None })
    }

    #[test]
    fn titles_are_found_by_words_in_any_case() {
        let labels = Labels::default();
        let two = [
            label("a.rrd", "Uplink to Zürich"),
            label("b.rrd", "Uplink to Bern"),
            label("c.rrd", ""),
            label("uplink.rrd", "Uplink"),
        ];
        labels.add("one", two.into_iter());
        assert_eq!(labels.search(b"UPLINK", 1), (vec![b"a.rrd".to_vec()], 2));
        assert_eq!(labels.search("zürich upl".as_bytes(), 9), (vec![b"a.rrd".to_vec()], 1));
        assert_eq!(labels.search(b" ", 9), (vec![], 0));
        assert_eq!(labels.title(b"b.rrd").as_deref(), Some("Uplink to Bern"));
        assert_eq!(labels.title(b"c.rrd"), None);
        labels.add("two", [label("d.rrd", "Uplink")].into_iter());
        labels.replace("one", [label("b.rrd", "Downlink"), label("uplink.rrd", "Uplink")].into_iter());
        assert_eq!(labels.search(b"link", 9), (vec![b"b.rrd".to_vec(), b"d.rrd".to_vec()], 2));
        assert_eq!(labels.get(b"a.rrd"), None);
    }
}
