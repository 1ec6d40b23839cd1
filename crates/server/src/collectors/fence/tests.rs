use std::sync::atomic::{AtomicU32, Ordering};

use cluster::routes::{Route, Routes};
use collect::inventory::{Inventory, RrdId, RrdSpec};
use collect::reading::{Readings, Value};
use rrd::time::Timestamp;
use store::disk::RealDisk;
use store::stripes::Stripes;

use super::*;
use crate::collectors::store_writer::{StoreWriter, WriteError};

const START: i64 = 1_700_000_000;

/// A node of a cluster of one partition; the epoch in which it leads, or 0.
struct OneNode {
    epoch: AtomicU32,
    engine: Arc<dyn Engine>,
}

impl Routes for OneNode {
    fn partition_count(&self) -> u32 {
        1
    }

    fn local(&self, partition: u32) -> Option<(Arc<dyn Engine>, bool)> {
        self.lead(partition).map(|(engine, _)| (engine, true))
    }

    fn lead(&self, _: u32) -> Option<(Arc<dyn Engine>, u32)> {
        let epoch = self.epoch.load(Ordering::SeqCst);
        (epoch > 0).then(|| (Arc::clone(&self.engine), epoch))
    }

    fn route(&self, _: u32) -> Route {
        Route::default()
    }
}

fn open(directory: &std::path::Path) -> Arc<dyn Engine> {
    Arc::new(Stripes::open(Arc::new(RealDisk::create(directory).unwrap()), &Default::default()).unwrap())
}

/// What became of a reading of each RRD at a time.
async fn write(writer: &mut StoreWriter, inventory: &Inventory, rrds: &[RrdId], time: i64) -> Vec<String> {
    let mut readings = Readings::default();
    rrds.iter().for_each(|rrd| readings.push(*rrd, Timestamp::whole(time), [Value::Unsigned(7)]));
    let failures = writer.write(inventory, &readings).await.failures;
    let name = |error: &WriteError| match error {
        WriteError::Elsewhere => "elsewhere".to_string(),
        WriteError::LeadLost => "lost".to_string(),
        other => other.to_string(),
    };
    failures.iter().map(|failure| name(&failure.error)).collect()
}

#[tokio::test]
async fn what_was_asked_under_another_lead_is_not_written() {
    let directories = [(), ()].map(|()| tempfile::tempdir().unwrap());
    let [replica, all] = [0, 1].map(|number: usize| open(directories[number].path()));
    let node = Arc::new(OneNode { epoch: 1.into(), engine: Arc::clone(&replica) });
    let fence = Arc::new(Fence::new(Leads::new(Arc::clone(&node) as Arc<dyn Routes>), Arc::clone(&all)));
    fence.put_beside(b"snmp/r1.rrd".to_vec(), b"net/r1".to_vec());
    let mut writer = StoreWriter::fenced(Arc::clone(&all), Some(Arc::clone(&fence)));
    let mut inventory = Inventory::new(2);
    let args = ["DS:v:GAUGE:20:U:U", "RRA:LAST:0.5:1:10"].map(str::to_string).to_vec();
    let spec = Arc::new(RrdSpec { step: 10, starts_before: 10, args });
    let rrds = [b"net/r1/lo.rrd".as_slice(), b"snmp/r1.rrd"]
        .map(|name| inventory.find_or_define(name, Arc::clone(&spec)).unwrap());
    let last = |engine: &Arc<dyn Engine>, name: &[u8]| {
        engine.status(&RrdName::new(name).unwrap()).map(|status| status.last_update.whole).ok()
    };
    let lasts = || (last(&replica, b"net/r1/lo.rrd"), last(&all, b"snmp/r1.rrd"));
    let mut write = async |time| write(&mut writer, &inventory, &rrds, START + time).await;

    assert_eq!(write(0).await, ["elsewhere", "elsewhere"], "before it knows its leads");
    assert_eq!(lasts(), (None, None));
    fence.know(fence.news().unwrap());
    assert!(write(10).await.is_empty());
    assert_eq!(lasts(), (Some(START + 10), Some(START + 10)));
    // Another node leads; then this one again, before its poller has looked.
    for epoch in [0, 3] {
        node.epoch.store(epoch, Ordering::SeqCst);
        assert_eq!(write(20).await, ["lost", "lost"], "epoch {epoch}");
    }
    assert_eq!(lasts(), (Some(START + 10), Some(START + 10)));
    fence.know(fence.leads.news().unwrap());
    assert!(write(30).await.is_empty());
    assert_eq!(lasts(), (Some(START + 30), Some(START + 30)));
}
