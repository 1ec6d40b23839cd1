//! Real senders: collectd, carbon-relay, and the clients that Python programs use.

use std::fs;
use std::path::Path;
use std::process::Command;

use testkit::{Running, peer, wait_for};

use super::Receiver;

/// Runs a script with these words by the Python that has the clients; `None`, and the test is skipped, without it.
fn run(script: &str, words: &[String]) -> Option<()> {
    let output = Command::new(peer::senders()?).arg("-c").arg(script).args(words).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(())
}

#[test]
fn the_influxdb_client_of_python_writes() {
    let mut receiver = Receiver::start("");
    let script = r#"
import sys
from influxdb_client import InfluxDBClient, Point, WritePrecision
from influxdb_client.client.write_api import SYNCHRONOUS
from influxdb_client.rest import ApiException
client = InfluxDBClient(url="http://127.0.0.1:" + sys.argv[1], token="t", org="o", enable_gzip=True)
assert client.ping()
assert client.health().status == "pass"
api = client.write_api(write_options=SYNCHRONOUS)
api.write(bucket="b", record=[Point("odd, name").tag("host", "a b").tag("k=", "v,").field("f x", 1.5).field("s", 'text "q"\n'),
                              Point("m").tag("host", "h").field("n", 3).field("ok", True)])
try:
    api.write(bucket="b", record="m,host=h n=4\nbad")
    raise SystemExit("a bad line is refused")
except ApiException as error:
    assert error.status == 400 and "line 2" in error.body.decode() if isinstance(error.body, bytes) else "line 2" in error.body, error
"#;
    if run(script, &[receiver.http.to_string()]).is_none() {
        return;
    }
    assert_eq!(receiver.last("hosts/a%20b/odd%2C%20name_f%20x,db=b,k%3D=v%2C.rrd").1, 1.5);
    assert_eq!(receiver.last("hosts/h/m_n,db=b.rrd").1, 4.0);
    assert_eq!((receiver.refused("influx", "text"), receiver.refused("influx", "boolean")), (1, 1));
}

#[test]
fn the_opentelemetry_sdk_of_python_exports() {
    let mut receiver = Receiver::start("");
    let script = r#"
import sys
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
exporter = OTLPMetricExporter(endpoint="http://127.0.0.1:%s/v1/metrics" % sys.argv[1], compression=Compression.Gzip)
reader = PeriodicExportingMetricReader(exporter, export_interval_millis=3600000)
provider = MeterProvider(metric_readers=[reader], resource=Resource({"host": "h"}))
meter = provider.get_meter("m")
meter.create_counter("requests").add(7, {"path": "/x"})
meter.create_up_down_counter("active").add(3)
meter.create_gauge("temperature").set(21.5)
meter.create_histogram("latency").record(0.25)
assert reader.force_flush()
provider.shutdown()
"#;
    if run(script, &[receiver.http.to_string()]).is_none() {
        return;
    }
    let names = receiver.names(|names| names.contains("latency_sum"));
    for want in ["requests,path=%2Fx", "active", "temperature", "latency_count", "latency_sum"] {
        assert!(names.contains(want), "{want}: {names}");
    }
    // Once more when it is shut down.
    assert!(receiver.refused("otlp", "buckets") >= 1);
}

#[test]
fn the_statsd_client_of_python_counts() {
    let mut receiver = Receiver::start("");
    let script = r#"
import sys
from statsd import StatsClient, TCPStatsClient
udp = StatsClient("127.0.0.1", int(sys.argv[1]), prefix="app")
with udp.pipeline() as pipe:
    pipe.incr("hits", 5)
    pipe.gauge("load", 3)
    pipe.gauge("load", -1, delta=True)
    pipe.timing("query", 320)
tcp = TCPStatsClient("127.0.0.1", int(sys.argv[1]), prefix="app")
tcp.set("users", "ann")
tcp.close()
"#;
    if run(script, &[receiver.statsd.to_string()]).is_none() {
        return;
    }
    assert_eq!(receiver.last("series/stats/gauges/app/load.rrd").1, 2.0);
    for name in ["stats/app/hits", "stats/timers/app/query/mean", "stats/sets/app/users/count"] {
        receiver.last(&format!("series/{name}.rrd"));
    }
}

/// Where it sends to, on ports of the receiver.
fn telegraf_config(receiver: &Receiver, values: &Path) -> String {
    let Receiver { http, graphite, influx, .. } = receiver;
    format!(
        r#"
        [agent]
        omit_hostname = true
        [[inputs.file]]
        files = ["{values}"]
        data_format = "influx"
        [[outputs.influxdb]]
        urls = ["http://127.0.0.1:{http}"]
        database = "one"
        [[outputs.influxdb]]
        urls = ["udp://127.0.0.1:{influx}"]
        [[outputs.influxdb_v2]]
        urls = ["http://127.0.0.1:{http}"]
        token = "t"
        organization = "o"
        bucket = "two"
        [[outputs.graphite]]
        servers = ["127.0.0.1:{graphite}"]
        prefix = "plain"
        [[outputs.graphite]]
        servers = ["127.0.0.1:{graphite}"]
        prefix = "tagged"
        graphite_tag_support = true
        [[outputs.http]]
        url = "http://127.0.0.1:{http}/write?db=three"
        data_format = "influx"
        content_encoding = "gzip"
        [[outputs.http]]
        url = "http://127.0.0.1:{http}/api/v1/write"
        data_format = "prometheusremotewrite"
        [outputs.http.headers]
        Content-Type = "application/x-protobuf"
        Content-Encoding = "snappy"
        X-Prometheus-Remote-Write-Version = "0.1.0"
        "#,
        values = values.display(),
    )
}

#[test]
fn telegraf_writes_by_every_output_that_it_has_for_us() {
    let Some(telegraf) = peer::telegraf() else { return };
    let mut receiver = Receiver::with_precision("ns", "");
    let time = super::now() - 100;
    let values = receiver.daemon.directory().join("values");
    let text = format!(
        "cpu,host=h1,cpu=cpu-total usage=97.5,n=3i,u=4u,text=\"x y\",flag=true {time}000000000\n\
         disk\\ space,host=h1,path=/var\\ log,k\\=q=a\\,b free=12345678901i {time}000000000\n"
    );
    fs::write(&values, text).unwrap();
    let config = receiver.daemon.directory().join("telegraf.conf");
    fs::write(&config, telegraf_config(&receiver, &values)).unwrap();
    let output = Command::new(telegraf).arg("--once").arg("--config").arg(&config).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !said.contains(" E! "), "{said}");
    for database in ["one", "udp", "two", "three"] {
        let tags = format!("cpu=cpu-total,db={database}");
        for (field, want) in [("usage", 97.5), ("n", 3.0), ("u", 4.0)] {
            assert_eq!(receiver.last(&format!("hosts/h1/cpu_{field},{tags}.rrd")), (time, want), "{tags}");
        }
        let disk = format!("hosts/h1/disk%20space_free,db={database},k%3Dq=a%2Cb,path=%2Fvar%20log.rrd");
        assert_eq!(receiver.last(&disk), (time, 12_345_678_901.0));
    }
    // Graphite's names with tags as parts of them, or as tags; and what Prometheus' names are made of it.
    for start in ["series/plain/h1/cpu-total/cpu/", "hosts/h1/tagged.cpu.", "hosts/h1/cpu_"] {
        let end = if start.starts_with("hosts") { ",cpu=cpu-total.rrd" } else { ".rrd" };
        for (field, want) in [("usage", 97.5), ("n", 3.0), ("u", 4.0), ("flag", 1.0)] {
            assert_eq!(receiver.last(&format!("{start}{field}{end}")), (time, want), "{start}");
        }
    }
    let disk = "hosts/h1/disk_space_free,k_q=a%2Cb,path=%2Fvar%20log.rrd";
    assert_eq!(receiver.last(disk), (time, 12_345_678_901.0));
    assert_eq!((receiver.refused("influx", "text"), receiver.refused("influx", "boolean")), (4, 4));
}

/// What its write_http needs.
fn has_yajl() -> bool {
    let output = Command::new("ldd").arg("/usr/lib/collectd/write_http.so").output();
    output.is_ok_and(|output| !String::from_utf8_lossy(&output.stdout).contains("not found"))
}

#[test]
fn collectd_writes_graphite_and_influx() {
    if peer::debian("collectd-core", "/usr/lib/collectd/write_graphite.so").is_none() {
        return;
    }
    if !has_yajl() {
        return testkit::skip("collectd's write_http lacks Debian's package libyajl2: make peers");
    }
    let mut receiver = Receiver::start("");
    let directory = receiver.daemon.directory().join("collectd");
    fs::create_dir_all(&directory).unwrap();
    let config = directory.join("collectd.conf");
    let base = directory.display();
    let Receiver { graphite, influx, http, .. } = receiver;
    let text = format!(
        "Hostname \"peer\"\nFQDNLookup false\nInterval 1\nBaseDir \"{base}\"\nPIDFile \"{base}/pid\"\nPluginDir \"/usr/lib/collectd\"\n\
         TypesDB \"/usr/share/collectd/types.db\"\nLoadPlugin load\nLoadPlugin interface\nLoadPlugin write_graphite\nLoadPlugin write_influxdb_udp\nLoadPlugin write_http\n\
         <Plugin write_graphite>\n <Node \"r\">\n  Host \"127.0.0.1\"\n  Port \"{graphite}\"\n  Protocol \"tcp\"\n  Prefix \"collectd.\"\n </Node>\n</Plugin>\n\
         <Plugin write_influxdb_udp>\n Server \"127.0.0.1\" \"{influx}\"\n</Plugin>\n\
         <Plugin write_http>\n <Node \"r\">\n  URL \"http://127.0.0.1:{http}/collectd\"\n  Format \"JSON\"\n  BufferSize 4096\n </Node>\n</Plugin>\n"
    );
    fs::write(&config, text).unwrap();
    let words = ["-f", "-C", config.to_str().unwrap()];
    let _collectd = Running::program(&directory.join("output"), "/usr/sbin/collectd", &words);
    receiver.last("series/collectd/peer/load/load/shortterm.rrd");
    receiver.last("series/collectd/peer/interface-lo/if_octets/rx.rrd");
    // InfluxDB's lines have the host as a tag; its JSON has the names of collectd's exporter.
    receiver.names(|names| names.contains("hosts/peer/load_shortterm,db=udp"));
    receiver.names(|names| names.contains("instances/peer/collectd_load_shortterm"));
}

#[test]
fn carbon_relay_sends_pickles() {
    let Some(program) = peer::debian("graphite-carbon", "/usr/bin/carbon-relay") else { return };
    let mut receiver = Receiver::start("");
    let directory = receiver.daemon.directory().join("relay");
    fs::create_dir_all(&directory).unwrap();
    let (path, line, pickle) = (directory.display(), testkit::free_port(), receiver.pickle);
    let config = format!(
        "[relay]\nSTORAGE_DIR = {path}/\nCONF_DIR = {path}/\nLOG_DIR = {path}/\nPID_DIR = {path}/\nUSER =\nENABLE_LOGROTATION = False\n\
         LINE_RECEIVER_INTERFACE = 127.0.0.1\nLINE_RECEIVER_PORT = {line}\nPICKLE_RECEIVER_PORT = 0\n\
         RELAY_METHOD = rules\nDESTINATIONS = 127.0.0.1:{pickle}:a\n"
    );
    fs::write(directory.join("carbon.conf"), config).unwrap();
    // It asks for the file, and does not use it.
    fs::write(directory.join("storage-schemas.conf"), "[all]\npattern = .*\nretentions = 60:1\n").unwrap();
    fs::write(
        directory.join("relay-rules.conf"),
        format!("[default]\ndefault = true\ndestinations = 127.0.0.1:{pickle}:a\n"),
    )
    .unwrap();
    let (config, pid) = (format!("{path}/carbon.conf"), format!("{path}/relay.pid"));
    let words = ["--nodaemon", "--config", &config, "--pidfile", &pid, "start"];
    let _relay = Running::program(&directory.join("relay.log"), program, &words);
    let time = super::now() - 100;
    let mut stream = wait_for("carbon-relay", || std::net::TcpStream::connect(("127.0.0.1", line)).ok());
    std::io::Write::write_all(&mut stream, format!("relayed.a 1.25 {time}\nrelayed.b 7 {time}\n").as_bytes())
        .unwrap();
    assert_eq!(receiver.last("series/relayed/a.rrd"), (time, 1.25));
    assert_eq!(receiver.last("series/relayed/b.rrd"), (time, 7.0));
}
