//! What a definition may cost: every way to make or change an RRD asks before it takes memory.

use crate::common::Roundel;
use protocol::rrdcached::command::Permissions;
use protocol::rrdcached::whole;
use roundel_server::service::CreatePolicy;
use roundel_server::settings::LimitSettings;
use testkit::Client;

fn small() -> LimitSettings {
    LimitSettings { rrd_memory: 1 << 20, store_memory: 4 << 20, ..LimitSettings::default() }
}
/// A season of so many rows takes more than [`small`] allows.
const SEASON: &str = "RRA:HWPREDICT:100000:0.1:0.1:100000";

fn both() -> [Roundel; 2] {
    [Roundel::stripes_with(small()), Roundel::files_with(small())]
}

fn refused(answer: &str) {
    assert!(answer.starts_with("-1 RRD Error: "), "{answer}");
    assert!(answer.contains("bytes of memory") && answer.contains("[limits] rrd_memory"), "{answer}");
}

#[test]
fn a_definition_that_needs_much_memory_is_refused_by_create_tune_and_sources() {
    for roundel in both() {
        let mut client = Client::open(&roundel.socket());
        let ds = "-b 1000000000 -s 10 DS:x:GAUGE:20:0:U";
        for rra in [
            SEASON,
            "RRA:HWPREDICT:1000000000:0.1:0.1:900000000",
            "RRA:HWPREDICT:2147483647:0.1:0.1:2147483647",
        ] {
            refused(&client.say(format!("CREATE a.rrd {ds} {rra}")));
        }
        let many: String = (0..200).map(|ds| format!(" DS:d{ds}:GAUGE:20:U:U")).collect();
        let archives: String = (1..=200).map(|rra| format!(" RRA:LAST:0:{rra}:1")).collect();
        refused(&client.say(format!("CREATE a.rrd{many}{archives}")));
        assert!(client.say("INFO a.rrd").starts_with("-1 "), "nothing was made");

        assert_eq!(client.say(format!("CREATE s.rrd {ds} RRA:AVERAGE:0.5:1:20")), "0 RRD created OK\n");
        refused(&client.say(format!("CREATE a.rrd {ds} -r s.rrd {SEASON}")));
        refused(&client.say(format!("TUNE s.rrd {SEASON}")));
        assert_eq!(client.say("TUNE s.rrd RRA:MAX:0.5:1:9"), "0 RRD tuned OK\n");
    }
}

#[test]
fn a_file_that_needs_much_memory_is_neither_imported_nor_adopted() {
    let large = Roundel::files(CreatePolicy::default());
    let mut client = Client::open(&large.socket());
    let create = format!("CREATE a.rrd -b 1000000000 -s 10 DS:x:GAUGE:20:0:U {SEASON}");
    assert_eq!(client.say(create), "0 RRD created OK\n");
    let bytes = std::fs::read(large.base().join("a.rrd")).unwrap();
    for roundel in both() {
        let mut client = Client::open(&roundel.socket());
        let mut answer = String::new();
        for (index, piece) in bytes.chunks(protocol::rrdcached::limits::PIECE_BYTES).enumerate() {
            let offset = index * protocol::rrdcached::limits::PIECE_BYTES;
            answer = client.say(format!("IMPORT a.rrd {} {offset} {}", bytes.len(), whole::word(piece)));
        }
        refused(&answer);
        std::fs::write(roundel.base().join("b.rrd"), &bytes).unwrap();
        for say in ["UPDATE b.rrd 1000000010:1", "INFO b.rrd", "FETCH b.rrd AVERAGE 1000000000 1000000010"] {
            let answer = client.say(say);
            assert!(answer.contains("[limits] rrd_memory"), "{say}: {answer}");
        }
    }
}

#[test]
fn all_rrds_together_have_a_limit_and_deleting_makes_room() {
    let roundel = Roundel::stripes_with(small());
    let mut client = Client::open(&roundel.socket());
    let create = |name: usize, rows: usize| {
        format!("CREATE {name}.rrd -s 10 DS:x:GAUGE:20:0:U RRA:HWPREDICT:30000:0.1:0.1:{rows}")
    };
    let mut made = 0;
    let answer = loop {
        let answer = client.say(create(made, 25_000 + made));
        if answer != "0 RRD created OK\n" {
            break answer;
        }
        made += 1;
    };
    assert!((8..=10).contains(&made), "{made} of 400 kB");
    assert!(answer.contains("[limits] store_memory"), "{answer}");
    // One in place of another of the same size is no more than before.
    assert_eq!(client.say(create(0, 25_000)), "0 RRD created OK\n");
    let deleted = roundel.service().engine.delete(&store::name::RrdName::new(b"0.rrd").unwrap());
    assert_eq!(deleted, Ok(()));
    assert_eq!(client.say(create(made, 25_000)), "0 RRD created OK\n");
}

#[test]
fn an_rrd_of_ten_thousand_million_rows_takes_no_memory_when_it_is_read() {
    let roundel = Roundel::stripes(CreatePolicy::default(), Permissions::ALL);
    let mut client = Client::open(&roundel.socket());
    let create = "CREATE a.rrd -b 1000000000 -s 1 DS:x:GAUGE:20:0:U RRA:AVERAGE:0.5:1:10000000000";
    assert_eq!(client.say(create), "0 RRD created OK\n");
    assert!(client.say("UPDATE a.rrd 1000000001:1").starts_with("0 "));
    let small = "CREATE s.rrd -b 1000000000 -s 1 DS:x:GAUGE:20:0:U RRA:AVERAGE:0.5:1:10";
    assert_eq!(client.say(small), "0 RRD created OK\n");
    for say in [
        "DUMP a.rrd",
        "EXPORT a.rrd",
        "TUNE a.rrd RRA:MAX:0.5:1:9",
        "FETCH a.rrd AVERAGE 1 9000000000",
        "CREATE b.rrd -r s.rrd DS:x:GAUGE:20:0:U RRA:AVERAGE:0.5:1:10000000000",
    ] {
        let answer = client.say(say);
        assert!(answer.starts_with("-1 ") && answer.contains("values"), "{say}: {answer}");
    }
    let answer = client.say("FETCH a.rrd AVERAGE 1000000000 1000000001");
    assert!(answer.contains("1000000001: 1.0"), "{answer}");
}

#[test]
fn a_file_larger_than_the_memory_for_clients_is_refused_with_the_key_that_raises_it() {
    let limits = LimitSettings { memory: 4 << 20, ..LimitSettings::default() };
    let roundel = Roundel::stripes_with(limits);
    let mut client = Client::open(&roundel.socket());
    let answer = client.say("IMPORT b.rrd 900000000 0 AAAA");
    let says = ["-1 this file takes 900000000 bytes", "all clients together have 1572864", "[limits] memory"];
    assert!(says.iter().all(|part| answer.contains(part)), "{answer}");
}
