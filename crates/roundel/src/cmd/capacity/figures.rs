//! The answer of `roundel capacity`, as text and as JSON.

use pagecache::chart::short_number;
use pagecache::plan::{Load, Machine, Purchase, Rung};
use pagecache::simulate::Outcome;
use serde_json::{Value, json};

/// All that is told.
pub(super) struct Answer<'a> {
    pub(super) described: String,
    pub(super) machine: &'a Machine,
    pub(super) load: Load,
    pub(super) rungs: Vec<Rung>,
    pub(super) rrds_max: u64,
    pub(super) purchases: Vec<Purchase>,
    pub(super) outcome: Option<Outcome>,
    /// The cache of the simulation, in words.
    pub(super) policy: &'static str,
}

fn gigabytes(bytes: u64) -> String {
    format!("{:.1} GB", bytes as f64 / 1e9)
}

fn verdict(load: &Load) -> &'static str {
    if load.fits { "keeps up" } else { "does NOT keep up" }
}

impl Answer<'_> {
    /// For people.
    pub(super) fn text(&self) -> String {
        let Machine { geometry, rrds, memory, disk, layout } = self.machine;
        let load = &self.load;
        let mut text = format!(
            "{rrds} RRDs {}: {} data sources, {} archives, {} bytes in {} pages (header {} bytes), an update every {} s\n",
            self.described,
            geometry.ds_count,
            geometry.archives.len(),
            geometry.file_bytes,
            geometry.file_pages(),
            geometry.header_bytes,
            geometry.step
        );
        text += &format!(
            "{}; {} of memory, disk {:.0} requests/s and {:.0} MB/s\n\n",
            layout.name(),
            gigabytes(*memory),
            disk.iops,
            disk.megabytes
        );
        text += &self.staircase();
        text += &format!(
            "By the model of {}, with room for {:.2} pages of each RRD:\n\
             \x20 updates/s           {:.1}\n\
             \x20 page faults/update  {:.4}\n\
             \x20 page writes/update  {:.4}, {:.0} bytes\n\
             \x20 reads/s             {:.1}\n\
             \x20 writes/s            {:.1}\n\
             \x20 disk busy           {:.1} %\n\
             \x20 a pass of all RRDs  {:.1} s\n\
             \x20 memory needed       {} besides pages\n\
             It {}. The most RRDs that fit: {}\n",
            layout.model(),
            load.cache_pages_per_rrd,
            load.updates,
            load.faults,
            load.writes,
            load.bytes_per_update,
            load.reads_per_second,
            load.writes_per_second,
            100.0 * load.disk_busy,
            load.pass_seconds,
            gigabytes(load.memory_needed),
            verdict(load),
            self.rrds_max
        );
        if let Some(outcome) = &self.outcome {
            text += &format!(
                "\nSimulated, {}, {} updates in {} passes: {:.4} page faults, {:.4} pages read, {:.4} page writes per update\n",
                self.policy,
                outcome.updates,
                outcome.passes,
                outcome.faults,
                outcome.pages_read,
                outcome.writes
            );
        }
        text + &self.shop()
    }

    fn staircase(&self) -> String {
        if self.rungs.is_empty() {
            return String::new();
        }
        let mut text =
            "What stays in memory      pages/RRD    memory  faults/update    reads/s\n".to_string();
        for rung in &self.rungs {
            let what = match rung.updates {
                0 => "nothing".to_string(),
                u64::MAX => "whole files".to_string(),
                updates => format!("rows of {updates} updates"),
            };
            text += &format!(
                "{what:<25} {:>9} {:>9} {:>14.4} {:>10.1}\n",
                rung.pages_per_rrd,
                gigabytes(rung.memory),
                rung.faults,
                rung.reads
            );
        }
        text.push('\n');
        text
    }

    fn shop(&self) -> String {
        if self.load.fits {
            return "\nNothing to buy: it keeps up\n".to_string();
        }
        if self.purchases.is_empty() {
            return "\nNone of what could be bought (memory, faster disks, another layout) carries more\n"
                .to_string();
        }
        let mut text =
            "\nWhat to buy next                             faults/update   reads/s  disk busy   most RRDs\n"
                .to_string();
        for Purchase { what, load, rrds_max } in &self.purchases {
            text += &format!(
                "{what:<44} {:>13.4} {:>9.1} {:>8.1} % {:>11}\n",
                load.faults,
                load.reads_per_second,
                100.0 * load.disk_busy,
                short_number(*rrds_max as f64)
            );
        }
        text
    }

    /// For programs.
    pub(super) fn json(&self) -> Value {
        let Machine { geometry, rrds, memory, disk, layout } = self.machine;
        let rung = |rung: &Rung| {
            json!({
                "updates": rung.updates, "pages_per_rrd": rung.pages_per_rrd, "memory": rung.memory,
                "faults": rung.faults, "reads_per_second": rung.reads,
            })
        };
        let purchase =
            |one: &Purchase| json!({"what": one.what, "load": load(&one.load), "rrds_max": one.rrds_max});
        let mut object = json!({
            "geometry": {
                "what": self.described, "step": geometry.step, "data_sources": geometry.ds_count,
                "archives": geometry.archives.len(), "file_bytes": geometry.file_bytes,
                "file_pages": geometry.file_pages(), "header_bytes": geometry.header_bytes,
                "live_bytes": geometry.live_bytes(), "row_bytes_per_update": geometry.row_bytes_per_update(),
            },
            "rrds": rrds, "memory": memory, "iops": disk.iops, "megabytes_per_second": disk.megabytes,
            "layout": layout.name(), "batch": layout.batch(), "model": layout.model(),
            "staircase": self.rungs.iter().map(rung).collect::<Vec<_>>(),
            "load": load(&self.load), "rrds_max": self.rrds_max,
            "purchases": self.purchases.iter().map(purchase).collect::<Vec<_>>(),
        });
        if let Some(outcome) = &self.outcome {
            object["simulation"] = json!({
                "faults": outcome.faults, "pages_read": outcome.pages_read, "writes": outcome.writes,
                "passes": outcome.passes, "updates": outcome.updates, "policy": self.policy,
            });
        }
        object
    }
}

fn load(load: &Load) -> Value {
    json!({
        "updates_per_second": load.updates, "cache_pages_per_rrd": load.cache_pages_per_rrd, "faults": load.faults,
        "writes": load.writes, "reads_per_second": load.reads_per_second,
        "writes_per_second": load.writes_per_second, "bytes_per_update": load.bytes_per_update,
        "disk_busy": load.disk_busy, "pass_seconds": load.pass_seconds, "memory_needed": load.memory_needed,
        "fits": load.fits,
    })
}
