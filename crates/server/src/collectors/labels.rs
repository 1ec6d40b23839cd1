//! What collectors say of how their RRDs are shown: MRTG's titles and legends, descriptions of interfaces. In memory: who feeds an
//! RRD says it again after each start, and an agent after each connection.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock};

use suggest::{Label, LabelGraph};

/// Bytes in memory of a label beside its texts, roughly.
const LABEL_BYTES: usize = 256;

/// Labels by the name of the RRD.
#[derive(Debug, Default)]
pub struct Labels(RwLock<State>);

#[derive(Debug, Default)]
struct State {
    labels: BTreeMap<Box<[u8]>, Labelled>,
    /// Bytes in memory by source, roughly.
    bytes: HashMap<Arc<str>, usize>,
    at: LabelsState,
    /// The graph of the last label: the next one's is mostly equal, and shares its memory.
    graph: Option<Arc<LabelGraph>>,
}

/// A state of [`Labels`], for [`Labels::changes`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LabelsState {
    /// How many labels have been said.
    said: u64,
    /// How often labels were taken back.
    taken_back: u64,
}

/// What is new in [`Labels`].
#[derive(Debug, PartialEq)]
pub struct LabelChanges {
    /// Their state now.
    pub at: LabelsState,
    /// These are all labels: some that were there are no more.
    pub is_all: bool,
    /// The labels, by name.
    pub labels: Vec<(Box<[u8]>, Arc<Label>)>,
}

#[derive(Debug)]
struct Labelled {
    label: Arc<Label>,
    /// Its title in lower case, to be searched.
    lower: Box<str>,
    /// What said it.
    source: Arc<str>,
    /// How many labels had been said by then.
    said: u64,
}

impl Labelled {
    fn bytes(&self, name: &[u8]) -> usize {
        let graph = self.label.graph.iter();
        let lines =
            graph.flat_map(|graph| &graph.lines).map(|line| line.source.len() + line.label.len() + 64);
        LABEL_BYTES + name.len() + 2 * self.lower.len() + lines.sum::<usize>()
    }
}

/// Drops control characters, which have no place on a page: devices and files may say anything.
fn clean(label: &mut Label) {
    let is_clean = |text: &String| !text.contains(char::is_control);
    label.title.retain(|letter| !letter.is_control());
    let sound =
        |graph: &LabelGraph| is_clean(&graph.unit) && graph.lines.iter().all(|line| is_clean(&line.label));
    if let Some(graph) = label.graph.as_mut().filter(|graph| !sound(graph)) {
        let graph = Arc::make_mut(graph);
        let labels = graph.lines.iter_mut().map(|line| &mut line.label);
        labels.chain([&mut graph.unit]).for_each(|text| text.retain(|letter| !letter.is_control()));
    }
}

impl State {
    fn remove(&mut self, name: &[u8]) {
        if let Some(old) = self.labels.remove(name)
            && let Some(bytes) = self.bytes.get_mut(&old.source)
        {
            *bytes -= old.bytes(name);
        }
    }

    /// Adds a label unless it is there; false if its source would have more than `bytes_max`.
    fn add(&mut self, source: &Arc<str>, name: &[u8], mut label: Label, bytes_max: usize) -> bool {
        clean(&mut label);
        let said = |old: &Labelled| old.source == *source && *old.label == label;
        if self.labels.get(name).is_some_and(said) {
            return true;
        }
        if label.graph == self.graph {
            label.graph.clone_from(&self.graph);
        } else {
            self.graph.clone_from(&label.graph);
        }
        let lower = label.title.to_lowercase().into();
        let said = self.at.said + 1;
        let labelled = Labelled { lower, label: Arc::new(label), source: Arc::clone(source), said };
        self.remove(name);
        let bytes = self.bytes.entry(Arc::clone(source)).or_default();
        let more = labelled.bytes(name);
        if *bytes + more > bytes_max {
            return false;
        }
        *bytes += more;
        self.at.said = said;
        self.labels.insert(name.into(), labelled);
        true
    }
}

impl Labels {
    fn read(&self) -> std::sync::RwLockReadGuard<'_, State> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, State> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// `source` says these, and nothing else any more.
    pub fn replace(&self, source: &str, labels: impl Iterator<Item = (Vec<u8>, Label)>) {
        let labels: HashMap<_, _> = labels.collect();
        self.take_back(source, |name| !labels.contains_key(name));
        self.add(source, labels.into_iter());
    }

    /// `source` says nothing any more of the RRDs whose names `is_over` admits.
    pub fn take_back(&self, source: &str, is_over: impl Fn(&[u8]) -> bool) {
        let mut state = self.write();
        let over = state.labels.iter().filter(|(name, one)| &*one.source == source && is_over(name));
        let over: Vec<_> = over.map(|(name, _)| name.clone()).collect();
        for name in &over {
            state.remove(name);
        }
        state.at.taken_back += u64::from(!over.is_empty());
    }

    /// `source` says these besides.
    pub fn add(&self, source: &str, labels: impl Iterator<Item = (Vec<u8>, Label)>) {
        self.add_up_to(source, labels, usize::MAX);
    }

    /// `source` says these besides. It may have `bytes_max` of them in memory, roughly; returns how many are left out for that.
    pub fn add_up_to(
        &self,
        source: &str,
        labels: impl Iterator<Item = (Vec<u8>, Label)>,
        bytes_max: usize,
    ) -> usize {
        let source: Arc<str> = source.into();
        let mut state = self.write();
        let mut left_out = 0;
        for (name, label) in labels {
            left_out += usize::from(!state.add(&source, &name, label, bytes_max));
        }
        left_out
    }

    /// What is new since a state; all labels, if that is `None`. `None` if nothing is.
    pub fn changes(&self, since: Option<LabelsState>) -> Option<LabelChanges> {
        let state = self.read();
        if since == Some(state.at) {
            return None;
        }
        let known = since.filter(|known| known.taken_back == state.at.taken_back);
        let is_new = |one: &Labelled| known.is_none_or(|known| one.said > known.said);
        let labels = state.labels.iter().filter(|(_, one)| is_new(one));
        let labels = labels.map(|(name, one)| (name.clone(), Arc::clone(&one.label))).collect();
        Some(LabelChanges { at: state.at, is_all: known.is_none(), labels })
    }

    /// The label of the RRD `name`.
    pub fn get(&self, name: &[u8]) -> Option<Arc<Label>> {
        self.read().labels.get(name).map(|one| Arc::clone(&one.label))
    }

    /// The title of the RRD `name`, if it has one.
    pub fn title(&self, name: &[u8]) -> Option<String> {
        self.get(name).map(|label| label.title.clone()).filter(|title| !title.is_empty())
    }

    /// The names of the first `limit` RRDs in whose titles all words of `text` occur, in any case, and not in their names; and how
    /// many there are. Only RRDs that `may_see` lets through count.
    pub fn search(
        &self,
        text: &[u8],
        limit: usize,
        may_see: impl Fn(&[u8]) -> bool,
    ) -> (Vec<Vec<u8>>, usize) {
        let text = String::from_utf8_lossy(text).to_lowercase();
        let words: Vec<&str> = text.split_whitespace().collect();
        let state = self.read();
        let has = |text: &str| !words.is_empty() && words.iter().all(|word| text.contains(word));
        let found = state
            .labels
            .iter()
            .filter(|(name, one)| has(&one.lower) && !has(&String::from_utf8_lossy(name).to_lowercase()));
        let (mut names, mut total) = (Vec::new(), 0);
        for (name, _) in found.filter(|(name, _)| may_see(name)) {
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
    use suggest::LabelLine;

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
        assert_eq!(labels.search(b"UPLINK", 1, |_| true), (vec![b"a.rrd".to_vec()], 2));
        assert_eq!(labels.search("zürich upl".as_bytes(), 9, |_| true), (vec![b"a.rrd".to_vec()], 1));
        assert_eq!(labels.search(b" ", 9, |_| true), (vec![], 0));
        assert_eq!(labels.title(b"b.rrd").as_deref(), Some("Uplink to Bern"));
        assert_eq!(labels.title(b"c.rrd"), None);
        labels.add("two", [label("d.rrd", "Uplink")].into_iter());
        labels.replace("one", [label("b.rrd", "Downlink"), label("uplink.rrd", "Uplink")].into_iter());
        assert_eq!(labels.search(b"link", 9, |_| true), (vec![b"b.rrd".to_vec(), b"d.rrd".to_vec()], 2));
        assert_eq!(labels.get(b"a.rrd"), None);
    }

    #[test]
    fn changes_are_those_since_a_state() {
        let names = |changes: &LabelChanges| -> Vec<String> {
            changes.labels.iter().map(|(name, _)| String::from_utf8_lossy(name).into_owned()).collect()
        };
        let labels = Labels::default();
        let first = labels.changes(None).unwrap();
        assert_eq!((first.is_all, names(&first)), (true, vec![]));
        assert_eq!(labels.changes(Some(first.at)), None);
        labels.add("one", [label("a.rrd", "A"), label("b.rrd", "B")].into_iter());
        let second = labels.changes(Some(first.at)).unwrap();
        assert_eq!((second.is_all, names(&second)), (false, vec!["a.rrd".into(), "b.rrd".into()]));
        labels.replace("one", [label("a.rrd", "A"), label("b.rrd", "B2")].into_iter());
        let third = labels.changes(Some(second.at)).unwrap();
        assert_eq!((third.is_all, names(&third)), (false, vec!["b.rrd".into()]));
        labels.replace("one", [label("b.rrd", "B2")].into_iter());
        let fourth = labels.changes(Some(third.at)).unwrap();
        assert_eq!((fourth.is_all, names(&fourth)), (true, vec!["b.rrd".into()]));
        labels.take_back("two", |_| true);
        assert_eq!(labels.changes(Some(fourth.at)), None);
    }

    #[test]
    fn control_characters_are_left_out() {
        let line = LabelLine {
            source: "ds0".to_string(),
            label: "I\u{7}n".to_string(),
            is_area: true,
            colour: None,
        };
        let lines = vec![line];
        let graph = LabelGraph { unit: "b\tit".to_string(), factor: 8.0, base: 1000, upper: None, lines };
        let labels = Labels::default();
        let label = Label { title: "Up\u{1b}link\n".to_string(), graph: Some(Arc::new(graph)) };
        labels.add("one", [(b"a.rrd".to_vec(), label)].into_iter());
        let found = labels.get(b"a.rrd").unwrap();
        let graph = found.graph.as_ref().unwrap();
        assert_eq!(
            (found.title.as_str(), graph.unit.as_str(), graph.lines[0].label.as_str()),
            ("Uplink", "bit", "In")
        );
    }

    #[test]
    fn a_source_has_as_much_as_it_may() {
        let labels = Labels::default();
        let many = |title: &'static str| (0..10).map(move |number| label(&format!("{number}.rrd"), title));
        assert_eq!(labels.add_up_to("one", many("T"), 4 * (LABEL_BYTES + 7)), 6);
        assert_eq!(labels.search(b"t", 0, |_| true).1, 4);
        assert_eq!(labels.add_up_to("two", many("U"), 10 * (LABEL_BYTES + 7)), 0);
        assert_eq!(labels.read().bytes["one"], 0, "the other source has taken them over");
        labels.take_back("two", |name| name < &b"5"[..]);
        assert_eq!(labels.read().bytes["two"], 5 * (LABEL_BYTES + 7));
    }
}
