use std::sync::atomic::{AtomicU32, Ordering};

use super::*;
use crate::routes::Route;

/// A node that leads the first of two partitions, in this epoch; 0 is none.
struct FirstOfTwo {
    epoch: AtomicU32,
    engine: Arc<dyn Engine>,
}

impl Routes for FirstOfTwo {
    fn partition_count(&self) -> u32 {
        2
    }

    fn local(&self, partition: u32) -> Option<(Arc<dyn Engine>, bool)> {
        self.lead(partition).map(|(engine, _)| (engine, true))
    }

    fn lead(&self, partition: u32) -> Option<(Arc<dyn Engine>, u32)> {
        let epoch = self.epoch.load(Ordering::SeqCst);
        (epoch > 0 && partition == 0).then(|| (Arc::clone(&self.engine), epoch))
    }

    fn route(&self, _: u32) -> Route {
        Route::default()
    }
}

#[test]
fn a_value_is_written_only_under_the_lead_under_which_it_was_asked() {
    let directory = tempfile::tempdir().unwrap();
    let disk = store::disk::RealDisk::create(directory.path()).unwrap();
    let engine = store::stripes::Stripes::open(Arc::new(disk), &Default::default()).unwrap();
    let node = Arc::new(FirstOfTwo { epoch: 1.into(), engine: Arc::new(engine) });
    let leads = Leads::new(Arc::clone(&node) as Arc<dyn Routes>);
    let names: Vec<String> = (0..20).map(|number| format!("d{number}")).collect();
    let of = |partition| names.iter().find(|name| leads.partition(name.as_bytes()) == partition).unwrap();
    let (ours, theirs) = (of(0).as_bytes(), of(1).as_bytes());
    assert!(matches!(leads.way(ours), Way::Elsewhere), "before it is known");
    let first = leads.know(leads.news().unwrap());
    assert!(leads.news().is_none() && leads.has(ours) && !leads.has(theirs));
    assert!(!leads.stays(ours, &first) && leads.stays(theirs, &first));
    assert!(matches!(leads.way(ours), Way::Here(_)) && matches!(leads.way(theirs), Way::Elsewhere));
    // It stood still, another one led, and now it leads again: what it asked before is not to be written.
    for epoch in [0, 3] {
        node.epoch.store(epoch, Ordering::SeqCst);
        assert!(matches!(leads.way(ours), Way::Lost), "epoch {epoch}");
    }
    let before = leads.know(leads.news().unwrap());
    assert!(matches!(leads.way(ours), Way::Here(_)) && !leads.stays(ours, &before));
}
