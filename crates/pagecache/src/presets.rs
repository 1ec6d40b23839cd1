//! Geometries of well-known programs, as they make RRDs unless they are told otherwise.

use crate::geometry::Geometry;

/// A program that makes RRDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// MRTG with RRDtool, a target of an interface.
    Mrtg,
    /// collectd's plugins rrdtool and rrdcached, a type with one value.
    Collectd,
    /// Ganglia's gmetad, a metric of a host.
    Ganglia,
    /// Cacti's profile "5 Minute Collection", traffic of an interface.
    Cacti,
    /// LibreNMS, a port.
    LibreNms,
}

impl Preset {
    /// All, in the order of the documentation.
    pub const ALL: [Preset; 5] =
        [Preset::Mrtg, Preset::Collectd, Preset::Ganglia, Preset::Cacti, Preset::LibreNms];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Preset::Mrtg => "mrtg",
            Preset::Collectd => "collectd",
            Preset::Ganglia => "ganglia",
            Preset::Cacti => "cacti",
            Preset::LibreNms => "librenms",
        }
    }

    /// The preset of this name.
    pub fn from_name(name: &str) -> Option<Preset> {
        Preset::ALL.into_iter().find(|preset| preset.name() == name)
    }

    /// Seconds from one update to the next.
    pub fn step(self) -> u64 {
        match self {
            // mrtg-reference(1), Interval: 5 minutes.
            Preset::Mrtg => 300,
            // collectd.conf(5), Interval.
            Preset::Collectd => 10,
            // gmetad.conf(5), data_source: the polling interval.
            Preset::Ganglia => 15,
            // cacti.sql of Debian's package 1.2.24, table data_source_profiles.
            Preset::Cacti => 300,
            // docs.librenms.org, "1 Minute Polling": rrd.step.
            Preset::LibreNms => 300,
        }
    }

    /// The words of `rrdtool create`.
    pub fn words(self) -> Vec<String> {
        let (sources, archives) = match self {
            Preset::Mrtg => (mrtg_sources(), mrtg_archives()),
            Preset::Collectd => (vec!["DS:value:GAUGE:20:U:U".to_string()], collectd_archives()),
            Preset::Ganglia => (vec!["DS:sum:GAUGE:120:U:U".to_string()], ganglia_archives()),
            Preset::Cacti => (cacti_sources(), cacti_archives()),
            Preset::LibreNms => (librenms_sources(), librenms_archives()),
        };
        [sources, archives].concat()
    }

    /// The geometry.
    pub fn geometry(self) -> Geometry {
        Geometry::parse(self.step(), &self.words()).expect("presets are right: a test reads them all")
    }
}

fn archives(functions: &[&str], xff: &str, spans: &[(u64, u64)]) -> Vec<String> {
    let one = |cf: &&str| {
        let cf = (*cf).to_string();
        spans.iter().map(move |(pdps, rows)| format!("RRA:{cf}:{xff}:{pdps}:{rows}")).collect::<Vec<_>>()
    };
    functions.iter().flat_map(one).collect()
}

/// What MRTG 2.17.10 creates: the files that it made in our tests have these, 105,312 bytes each.
fn mrtg_sources() -> Vec<String> {
    ["ds0", "ds1"].map(|name| format!("DS:{name}:COUNTER:600:0:U")).to_vec()
}

fn mrtg_archives() -> Vec<String> {
    archives(&["AVERAGE", "MAX"], "0.5", &[(1, 800), (6, 800), (24, 800), (288, 800)])
}

/// collectd.conf(5): RRARows 1200, RRATimespan an hour, a day, a week, 31 days and 366 days, XFF 0.1; the functions
/// AVERAGE, MIN and MAX for each. A row then takes as many updates as fit in 1200 rows, and rows are added until the span
/// is covered.
fn collectd_archives() -> Vec<String> {
    let spans = [(1, 1200), (7, 1235), (50, 1210), (223, 1202), (2635, 1201)];
    spans.iter().flat_map(|span| archives(&["AVERAGE", "MIN", "MAX"], "0.1", &[*span])).collect()
}

/// gmetad.conf of Debian's package 3.7.2: its line "RRAs".
fn ganglia_archives() -> Vec<String> {
    archives(&["AVERAGE"], "0.5", &[(1, 5856), (4, 20160), (40, 52704)])
}

/// Cacti's template "Interface - Traffic": heartbeat 600.
fn cacti_sources() -> Vec<String> {
    ["traffic_in", "traffic_out"].map(|name| format!("DS:{name}:COUNTER:600:0:U")).to_vec()
}

/// cacti.sql of Debian's package 1.2.24, tables data_source_profiles_rra and data_source_profiles_cf, profile 1.
fn cacti_archives() -> Vec<String> {
    let spans = [(1, 600), (6, 700), (24, 775), (288, 797)];
    archives(&["AVERAGE", "MIN", "MAX", "LAST"], "0.5", &spans)
}

/// The data sources of a port (port-id*.rrd) in LibreNMS, as its ports poller names them.
fn librenms_sources() -> Vec<String> {
    let names = [
        "INOCTETS",
        "OUTOCTETS",
        "INERRORS",
        "OUTERRORS",
        "INUCASTPKTS",
        "OUTUCASTPKTS",
        "INNUCASTPKTS",
        "OUTNUCASTPKTS",
        "INDISCARDS",
        "OUTDISCARDS",
        "INUNKNOWNPROTOS",
        "INBROADCASTPKTS",
        "OUTBROADCASTPKTS",
        "INMULTICASTPKTS",
        "OUTMULTICASTPKTS",
    ];
    names.map(|name| format!("DS:{name}:DERIVE:600:0:12500000000")).to_vec()
}

/// The default of LibreNMS' setting `rrd_rra`.
fn librenms_archives() -> Vec<String> {
    let spans = [(1, 2016), (6, 1440), (24, 1440), (288, 1440)];
    let mut all = archives(&["AVERAGE", "MIN", "MAX"], "0.5", &spans);
    all.push("RRA:LAST:0.5:1:2016".to_string());
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_has_its_size() {
        let sizes = Preset::ALL.map(|preset| preset.geometry().file_bytes);
        // collectd's: measured of its files. Ganglia's: 78,720 rows of 8 bytes and the header.
        assert_eq!(sizes[..3], [105_312, 148_648, 630_760]);
        for preset in Preset::ALL {
            assert_eq!(Preset::from_name(preset.name()), Some(preset));
        }
    }
}
