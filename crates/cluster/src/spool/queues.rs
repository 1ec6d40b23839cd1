//! What of the spool waits for each partition: as much of it in memory as there is room for, the rest on the disk.
//!
//! From the first record of a partition on that found no room, its records are read from the disk, in their order. At most one
//! batch of a partition is on its way. No file, no thread, no clock: `now` is an argument.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use store::engine::UpdateBatch;

/// Bytes of updates in memory, of all partitions.
const MEMORY_BYTES: usize = 64 << 20;
/// Those of one partition: room for what is sent at once, at least.
const QUEUE_BYTES: std::ops::RangeInclusive<usize> = 128 << 10..=4 << 20;
/// Bytes that are sent at once.
const SEND_BYTES: usize = 1 << 20;
/// How long a partition waits that took less than it was sent.
const PAUSE: Duration = Duration::from_millis(500);

/// A record of the spool.
#[derive(Debug)]
pub(super) struct Spooled {
    /// Where it begins in the log, and ends.
    pub(super) start: u64,
    pub(super) end: u64,
    /// When it was spooled, in milliseconds since 1970.
    pub(super) time_ms: i64,
    /// Whether it may have been applied already.
    pub(super) is_again: bool,
    pub(super) batch: UpdateBatch,
}

/// From where on a partition's records are on the disk only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OnDisk {
    /// There is none before this offset.
    pub(super) from: u64,
    /// When the first of them was spooled, if that is known.
    pub(super) time_ms: Option<i64>,
}

/// One partition.
#[derive(Debug, Default)]
struct PartitionQueue {
    waiting: VecDeque<Spooled>,
    bytes: usize,
    on_disk: Option<OnDisk>,
    /// What is on its way; its batch is kept for a second time.
    sent: Option<Spooled>,
    /// Not before then.
    due: Option<Instant>,
    /// Where its last record ends.
    appended: u64,
    /// Everything before this was drained.
    drained: u64,
    /// Everything before this is said to be drained in the spool itself.
    marked: u64,
}

impl PartitionQueue {
    fn push(&mut self, spooled: Spooled) {
        self.bytes += spooled.batch.text.len();
        self.waiting.push_back(spooled);
    }

    fn is_empty(&self) -> bool {
        self.sent.is_none() && self.waiting.is_empty() && self.on_disk.is_none()
    }

    fn is_ready(&self, now: Instant) -> bool {
        self.sent.is_none() && !self.waiting.is_empty() && self.due.is_none_or(|due| due <= now)
    }

    /// The first that is not drained: its offset and time.
    fn first(&self) -> Option<(u64, Option<i64>)> {
        let in_memory = self.sent.as_ref().or(self.waiting.front());
        let in_memory = in_memory.map(|spooled| (spooled.start, Some(spooled.time_ms)));
        in_memory.or(self.on_disk.map(|on_disk| (on_disk.from, on_disk.time_ms)))
    }
}

/// All partitions.
pub(super) struct Queues {
    queues: Vec<PartitionQueue>,
    bytes_max: usize,
    /// Where the spool ends, as far as it is durable.
    tip: u64,
    /// What is before this may have been sent before the process was started.
    again_until: u64,
}

/// What is to be read from the disk.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ReadPlan {
    pub(super) from: u64,
    /// Up to there it may be read.
    pub(super) tip: u64,
    /// For each partition from where on records are wanted, and how many bytes; `None`: there is no room, or none is missing.
    pub(super) wanted: Vec<Option<(u64, usize)>>,
}

impl Queues {
    /// Those of a spool that ends at `tip` and begins at `begin`, of which the partitions were drained up to these offsets.
    pub(super) fn new(drained: Vec<u64>, begin: u64, tip: u64) -> Queues {
        let bytes_max = MEMORY_BYTES / drained.len().max(1);
        let queue = |drained: u64| {
            let from = drained.max(begin);
            let on_disk = (from < tip).then_some(OnDisk { from, time_ms: None });
            PartitionQueue { on_disk, appended: tip, drained, marked: drained, ..PartitionQueue::default() }
        };
        Queues {
            queues: drained.into_iter().map(queue).collect(),
            bytes_max: bytes_max.clamp(*QUEUE_BYTES.start(), *QUEUE_BYTES.end()),
            tip,
            again_until: tip,
        }
    }

    /// A record that is durable now. Those of each commit come in their order.
    pub(super) fn push(&mut self, partition: u32, spooled: Spooled) {
        let queue = &mut self.queues[partition as usize];
        queue.appended = spooled.end;
        let has_room = queue.waiting.is_empty() || queue.bytes + spooled.batch.text.len() <= self.bytes_max;
        match queue.on_disk {
            None if has_room => queue.push(spooled),
            None => queue.on_disk = Some(OnDisk { from: spooled.start, time_ms: Some(spooled.time_ms) }),
            Some(_) => {}
        }
    }

    /// The spool is durable up to there, and what is before was pushed.
    pub(super) fn advance(&mut self, tip: u64) {
        self.tip = tip;
    }

    /// Something to send: its partition, and what; it counts as on its way from then on.
    pub(super) fn next(&mut self, now: Instant) -> Option<(u32, UpdateBatch, bool)> {
        let index = self.queues.iter().position(|queue| queue.is_ready(now))?;
        let queue = &mut self.queues[index];
        queue.due = None;
        let mut first = queue.waiting.pop_front()?;
        queue.bytes -= first.batch.text.len();
        while first.batch.text.len() < SEND_BYTES
            && let Some(more) = queue.waiting.pop_front_if(|more| more.is_again == first.is_again)
        {
            queue.bytes -= more.batch.text.len();
            first.end = more.end;
            for line in &more.batch.lines {
                first.batch.push_copy(&more.batch, line);
            }
        }
        let (batch, is_again) = (first.batch.clone(), first.is_again);
        queue.sent = Some(first);
        Some((index as u32, batch, is_again))
    }

    /// Whether there is something to send.
    pub(super) fn is_ready(&self, now: Instant) -> bool {
        self.queues.iter().any(|queue| queue.is_ready(now))
    }

    /// Up to where the spool is durable.
    pub(super) fn tip(&self) -> u64 {
        self.tip
    }

    /// When something that waits for a time may be sent.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.queues.iter().filter(|queue| queue.sent.is_none()).filter_map(|queue| queue.due).min()
    }

    /// What was sent is in the replicated log, or refused for good. Returns the batch.
    pub(super) fn done(&mut self, partition: u32) -> Option<UpdateBatch> {
        let queue = &mut self.queues[partition as usize];
        let sent = queue.sent.take()?;
        queue.drained = sent.end;
        Some(sent.batch)
    }

    /// What was sent is to be sent again, as it may have been applied.
    pub(super) fn again(&mut self, partition: u32, now: Instant) {
        let queue = &mut self.queues[partition as usize];
        if let Some(sent) = queue.sent.take() {
            queue.bytes += sent.batch.text.len();
            queue.waiting.push_front(Spooled { is_again: true, ..sent });
            queue.due = Some(now + PAUSE);
        }
    }

    /// The next thing to read from the disk: of the partitions that have room, from the oldest record that is not in memory.
    pub(super) fn plan(&self) -> Option<ReadPlan> {
        let room = |queue: &PartitionQueue| {
            self.bytes_max.checked_sub(queue.bytes).filter(|room| *room >= self.bytes_max / 2)
        };
        let wanted = |queue: &PartitionQueue| {
            queue.on_disk.zip(room(queue)).map(|(on_disk, room)| (on_disk.from, room))
        };
        let wanted: Vec<_> = self.queues.iter().map(wanted).collect();
        let from = wanted.iter().flatten().map(|(from, _)| *from).min()?;
        Some(ReadPlan { from, tip: self.tip, wanted })
    }

    /// What was read by a plan: the records of each partition in their order, and where it goes on; from there on, `on_disk` says
    /// what is known of the first that is missing.
    pub(super) fn fill(&mut self, partition: u32, found: Vec<Spooled>, on_disk: OnDisk) {
        let queue = &mut self.queues[partition as usize];
        for mut spooled in found {
            spooled.is_again = spooled.start < self.again_until;
            queue.push(spooled);
        }
        queue.on_disk = (on_disk.from < self.tip).then_some(on_disk);
    }

    /// Where the last record of a partition ends; `None`: nothing of it waits.
    pub(super) fn target(&self, partition: u32) -> Option<u64> {
        let queue = &self.queues[partition as usize];
        (!queue.is_empty()).then_some(queue.appended)
    }

    /// Whether everything of a partition before an offset was drained.
    pub(super) fn is_drained(&self, partition: u32, upto: u64) -> bool {
        let queue = &self.queues[partition as usize];
        queue.is_empty() || queue.first().is_some_and(|(first, _)| first >= upto)
    }

    /// Partitions of which more was drained than the spool says, or all, with their offsets; from then on they count as marked.
    pub(super) fn marks(&mut self, all: bool) -> Vec<(u32, u64)> {
        let tip = self.tip;
        let each = (0..).zip(&mut self.queues);
        let due = each.filter(|(_, queue)| all || queue.drained > queue.marked);
        due.map(|(partition, queue)| {
            // Nothing of it is before the end, whatever was drained last.
            let drained = if queue.is_empty() { tip } else { queue.drained };
            queue.marked = drained;
            (partition, drained)
        })
        .collect()
    }

    /// What was to be marked was not.
    pub(super) fn forget_marks(&mut self) {
        self.queues.iter_mut().for_each(|queue| queue.marked = 0);
    }

    /// Whether a partition's mark is old.
    pub(super) fn needs_mark(&self, partition: u32) -> bool {
        let queue = &self.queues[partition as usize];
        queue.drained > queue.marked
    }

    /// Where the oldest record begins that is not drained, and when it was spooled; the end if there is none.
    pub(super) fn oldest(&self) -> (u64, Option<i64>) {
        let firsts = || self.queues.iter().filter_map(PartitionQueue::first);
        let start = firsts().map(|(start, _)| start).min().unwrap_or(self.tip);
        (start, firsts().filter_map(|(_, time)| time).min())
    }
}
