//! The same scripts to Debian's rrdcached and to Roundel: the answers must match byte for byte.
//!
//! Differences listed in `docs/compatibility.md` are left out.

use crate::common::Roundel;
use protocol::rrdcached::command::Permissions;
use roundel_server::service::CreatePolicy;
use testkit::random::Random;
use testkit::{Client, Rrdcached};

const DAY: &str = "DS:a:GAUGE:20:0:U RRA:AVERAGE:0.5:1:10 RRA:MAX:0.5:2:10";

/// Both daemons, with a client for each.
pub(super) struct Pair {
    rrdcached: Rrdcached,
    roundel: Roundel,
    theirs: Client,
    ours: Client,
}

impl Pair {
    fn start(options: &[&str], create: CreatePolicy, permissions: Permissions) -> Self {
        Pair::beside(options, Roundel::stripes(create, permissions))
    }

    pub(super) fn beside(options: &[&str], roundel: Roundel) -> Self {
        let rrdcached = Rrdcached::start(options).unwrap();
        let theirs = Client::open(rrdcached.socket());
        let ours = Client::open(&roundel.socket());
        Pair { rrdcached, roundel, theirs, ours }
    }

    fn plain() -> Self {
        let create = CreatePolicy { make_directories: true, ..Default::default() };
        Self::start(&["-B", "-R"], create, Permissions::ALL)
    }

    fn in_a_cluster() -> Self {
        let create = CreatePolicy { make_directories: true, ..Default::default() };
        Pair::beside(&["-B", "-R"], Roundel::in_a_cluster(create, Permissions::ALL))
    }

    /// Sends one line to both. `BASE` is replaced by the base directory in the line and in the answers.
    /// Legitimate differences (ring positions are random, directories are unordered) are normalised.
    pub(super) fn check(&mut self, line: &str) -> String {
        let base = |path: &std::path::Path| path.display().to_string();
        let (their_base, our_base) = (base(self.rrdcached.base()), base(&self.roundel.base()));
        let theirs = self.theirs.say(line.replace("BASE", &their_base)).replace(&their_base, "BASE");
        let ours = self.ours.say(line.replace("BASE", &our_base)).replace(&our_base, "BASE");
        assert_eq!(even(line, &ours), even(line, &theirs), "{line:?}");
        ours
    }
}

/// Tests of these scripts with a single server, and through a node of a cluster.
macro_rules! scripts {
    ($($script:ident),*) => {
        mod single {
            $(#[test] fn $script() { super::$script(super::Pair::plain()); })*
        }
        mod clustered {
            $(#[test] fn $script() { super::$script(super::Pair::in_a_cluster()); })*
        }
    };
}

scripts!(arguments_and_usage, missing_rrds, create, updates_and_reads, fractions_of_a_second, batches);

fn even(line: &str, answer: &str) -> String {
    let mut lines: Vec<&str> = answer.lines().filter(|line| !line.contains("].cur_row ")).collect();
    if line.starts_with("LIST") {
        lines.sort_unstable();
    }
    lines.join("\n")
}

fn arguments_and_usage(mut pair: Pair) {
    for line in [
        "ping",
        "PING x y",
        "foo",
        "FOO bar",
        "",
        " PING",
        " ",
        "\t",
        "PING\t",
        "PING\r",
        "PING\r\r",
        "\"PING\"",
        "PI\\NG",
        "FOO\\ BAR",
        ".",
        "WROTE",
        "WROTE x",
        "UPDATE",
        "FLUSH",
        "PENDING",
        "FORGET",
        "FETCH",
        "FETCH x",
        "FETCHBIN",
        "FIRST",
        "FIRST x",
        "LAST",
        "INFO",
        "CREATE",
        "LIST",
        "LIST foo",
        "LIST RECURSIVE",
        "LIST recursive /",
        "FLUSHALL",
        "FLUSHALL x",
        "QUEUE",
        "QUEUE x",
        "HELP HELP",
        "STATS",
    ] {
        pair.check(line);
    }
}

fn missing_rrds(mut pair: Pair) {
    for line in [
        "UPDATE x.rrd",
        "UPDATE x.rrd N:1",
        "UPDATE x.rrd 1000:1",
        "UPDATE x.rrd foo",
        "FLUSH x.rrd",
        "FLUSH BASE/x.rrd",
        "PENDING x.rrd",
        "FORGET x.rrd",
        "FETCH x.rrd AVERAGE",
        "FETCHBIN x.rrd AVERAGE",
        "FIRST x.rrd 0",
        "FIRST x.rrd -1",
        "LAST x.rrd",
        "INFO x.rrd",
        "LIST /",
        "LIST RECURSIVE /",
        "LIST /foo",
        "UPDATE /etc/passwd 1:2",
        "UPDATE ../x 1:2",
        "UPDATE a../x 1:2",
        "UPDATE BASEx/x.rrd 1:2",
        "FLUSH /etc/passwd",
        "FLUSH ../x",
        "FLUSH a/../b",
        "FLUSH a..b",
        "FORGET /etc/x",
        "INFO /etc/passwd",
        "LAST /etc/passwd",
        "PENDING ../x",
        "FIRST /etc/passwd 0",
        "FETCH /etc/passwd AVERAGE",
        "CREATE /etc/x.rrd DS:a:GAUGE:20:0:U RRA:MAX:0.5:1:9",
        "CREATE ../x.rrd DS:a:GAUGE:20:0:U RRA:MAX:0.5:1:9",
        "UPDATE \"y.rrd\" 1:2",
        "UPDATE y\\ \\\\z 1:2",
        "UPDATE 'a b' 1:2",
        "UPDATE a\tb 1:2",
    ] {
        pair.check(line);
    }
}

fn create(mut pair: Pair) {
    for line in [
        "CREATE x.rrd",
        "CREATE x.rrd DS:a:GAUGE:20:0:U",
        "CREATE x.rrd RRA:AVERAGE:0.5:1:10",
        "CREATE x.rrd -s",
        "CREATE x.rrd -b",
        "CREATE x.rrd -q DS:a:GAUGE:20:0:U RRA:AVERAGE:0.5:1:10",
        "CREATE x.rrd FOO DS:a:GAUGE:20:0:U RRA:AVERAGE:0.5:1:10",
        "CREATE x.rrd -b a DS:a:GAUGE:20:0:U RRA:AVERAGE:0.5:1:10",
        "CREATE x.rrd -b 1000 DS:a:GAUGE:20:0:U RRA:AVERAGE:0.5:1:10",
        "CREATE x.rrd DS:a:GAUGE:20:0:U RRA:AVERAGE:0.5:1",
        "CREATE x.rrd DS:a:FOO:20:0:U RRA:AVERAGE:0.5:1:10",
        "CREATE x.rrd DS:a:GAUGE:20:0:U RRA:AVERAGE:0.5:1:10 ",
        "CREATE  x.rrd DS:a:GAUGE:20:0:U RRA:AVERAGE:0.5:1:10",
        "CREATE x.rrd -b 1000000000 -s a DS:a:GAUGE:20:0:U RRA:AVERAGE:0.5:1:10",
        "INFO x.rrd",
        "CREATE x.rrd -b 1000000000 -s 10m DS:a:GAUGE:20:0:U DS:b:COUNTER:20:0:U RRA:AVERAGE:0.5:1:10",
        "INFO x.rrd",
        "CREATE x.rrd -O DS:a:GAUGE:20:0:U RRA:AVERAGE:0.5:1:10",
        "CREATE d/e/x.rrd -b 1000000000 DS:a:GAUGE:9:0:U \
         RRA:AVERAGE:0.5:1:10",
        "LIST /",
        "LIST /d",
        "LIST /d/",
        "LIST RECURSIVE /",
        "LIST RECURSIVE /d/e",
        "LIST /x.rrd",
        "LIST RECURSIVE /d/e/x.rrd",
        "LIST //",
        "FLUSH x.rrd",
        "FORGET x.rrd",
        "FIRST x.rrd 0",
        "FIRST x.rrd 1",
        "FIRST x.rrd foo",
        "LAST x.rrd x",
        "INFO BASE/d/e/x.rrd",
        "PENDING x.rrd",
        "UPDATE x.rrd",
        "UPDATE x.rrd ",
        "UPDATE x.rrd foo",
        "CREATE hw.rrd -b 1000000000 -s 10 DS:a:DERIVE:20:U:U DS:b:COMPUTE:a,2,* RRA:HWPREDICT:40:0.1:0.003:7",
        "INFO hw.rrd",
        "CREATE t.rrd -b 1000000000 -t BASE/hw.rrd",
    ] {
        pair.check(line);
    }
}

fn updates_and_reads(mut pair: Pair) {
    pair.check(&format!("CREATE x.rrd -b 1000000000 -s 10 {DAY}"));
    for line in [
        "FLUSH x.rrd",
        "UPDATE x.rrd 1000000005:1",
        "UPDATE x.rrd 1000000005:1",
        "UPDATE x.rrd 1000000004:1",
        "UPDATE x.rrd N:1",
        "UPDATE x.rrd 1000000008:1 1000000009:2",
        "UPDATE x.rrd 1000000010:1 1000000009:2 1:2",
        "UPDATE x.rrd 1000000013",
        "UPDATE x.rrd foo",
        "UPDATE x.rrd 1000000015.5:1",
        "UPDATE x.rrd -5:1",
        "UPDATE x.rrd :1",
        "UPDATE x.rrd 1000000018xx:1",
        "update x.rrd 1000000019:7",
        "UPDATE BASE/x.rrd 1000000021:3",
        "UPDATE x.rrd 1000000030:1 ",
        "UPDATE x.rrd  1000000031:1",
        "UPDATE x.rrd 1000000032:1 x 1000000033:1",
        "UPDATE x\\.rrd 1000000034:1",
        "UPDATE x.rrd 1000000035:1 \\",
        "UPDATE x.rrd 1000000036\\:1",
        "UPDATE x.rrd 1000000037:1\r",
        "UPDATE x.rrd nan:1",
        "UPDATE x.rrd inf:1",
        "UPDATE x.rrd 0x3B9ACA30:1",
        "UPDATE x.rrd 1e9:1",
        "UPDATE x.rrd \"1000000038:1\"",
        "FLUSH x.rrd",
        "LAST x.rrd",
        "INFO x.rrd",
        "PENDING x.rrd",
        "FETCH x.rrd AVERAGE 1000000000 1000000040",
        "FETCH x.rrd MAX 1000000000 1000000040",
        "FETCH x.rrd MIN 1000000000 1000000040",
        "FETCH x.rrd average 1000000000 1000000040",
        "FETCH x.rrd AVERAGE 1000000000 1000000040 a",
        "FETCH x.rrd AVERAGE 1000000000 1000000040 a a",
        "FETCH x.rrd AVERAGE foo 1000000020",
        "FETCH x.rrd AVERAGE 1000000020 foo",
        "FETCH x.rrd AVERAGE 1000000000x 1000000040",
        "FETCH x.rrd AVERAGE 1000000000 1000000000",
        "FETCH x.rrd HWPREDICT 1000000000 1000000000",
        "FETCH x.rrd FOO",
        "FETCH x.rrd AVERAGE \"\" 100",
        "FETCHBIN x.rrd AVERAGE 1000000040 1000000000",
        "SUSPEND x.rrd",
        "SUSPEND x.rrd",
        "RESUME x.rrd",
        "RESUME x.rrd",
        "FORGET x.rrd",
        "FORGET x.rrd",
        "FLUSH x.rrd",
    ] {
        pair.check(line);
    }
}

fn fractions_of_a_second(mut pair: Pair) {
    pair.check(&format!("CREATE x.rrd -b 1000000000 -s 10 {DAY}"));
    for line in [
        "UPDATE x.rrd 1000000005.25:1",
        "UPDATE x.rrd 1000000005.125:1",
        "UPDATE x.rrd 1000000005.25:1",
        "UPDATE x.rrd 1000000005:1",
        "UPDATE x.rrd 1000000007.5:1 1000000007.25:1 1000000009:1",
        "UPDATE x.rrd 1000000020.1:1",
        "UPDATE x.rrd 1000000020.1:1",
        "UPDATE x.rrd 1000000020.3:1",
        "UPDATE x.rrd 1000000020.3:1",
        "UPDATE x.rrd 1000000020.99999:1",
        "UPDATE x.rrd 1000000020.9:1",
        "UPDATE x.rrd 1000000021.12345:1",
        "UPDATE x.rrd 1000000021.1234:1",
        "UPDATE x.rrd -5.5:1",
    ] {
        pair.check(line);
    }
    // Times with one to five decimals, few of which are exact in a double. With six, the last is not always
    // known.
    let mut random = Random::new(7);
    for second in 1_000_000_022..1_000_000_222 {
        let decimals = 1 + random.below(5) as u32;
        let fraction = random.below(10u64.pow(decimals));
        let time = format!("{second}.{fraction:0width$}", width = decimals as usize);
        pair.check(&format!("UPDATE x.rrd {time}:1"));
        pair.check(&format!("UPDATE x.rrd {time}:1"));
        pair.check(&format!("UPDATE x.rrd {second}:1"));
    }
}

fn batches(mut pair: Pair) {
    pair.check(&format!("CREATE x.rrd -b 1000000000 -s 10 {DAY}"));
    let script = "BATCH\nfoo\nPING\nUPDATE nono.rrd 1:2\nUPDATE x.rrd\n\n \nBATCH\nUPDATE x.rrd 1000000030:1\n\
                  UPDATE x.rrd 1000000031:1 1000000031:2\nFLUSH x.rrd\nLAST x.rrd\nLIST /\nHELP\nSTATS\nWROTE x.rrd\n\
                  CREATE bad\nCREATE y.rrd -b 1000000000 DS:a:GAUGE:20:0:U RRA:MAX:0.5:1:9\nUPDATE y.rrd 1000000001:1\n\
                  PENDING x.rrd\nQUEUE\nFETCH x.rrd MAX\nINFO x.rrd\nFIRST x.rrd 0\nFLUSHALL\nFORGET x.rrd\nflush /etc/x\n. x\n";
    for client in [&mut pair.theirs, &mut pair.ours] {
        client.write(script.as_bytes());
    }
    let base = |path: &std::path::Path| path.display().to_string();
    let theirs: String = (0..2).map(|_| pair.theirs.read()).collect();
    let ours: String = (0..2).map(|_| pair.ours.read()).collect();
    assert_eq!(
        ours.replace(&base(&pair.roundel.base()), "BASE"),
        theirs.replace(&base(pair.rrdcached.base()), "BASE")
    );
    pair.check("LAST y.rrd");
    pair.check("BATCH");
    pair.check(".");
    for client in [&mut pair.theirs, &mut pair.ours] {
        client.write(b"BATCH\nQUIT\n");
        assert_eq!(client.rest(), "0 Go ahead.  End with dot '.' on its own line.\n");
    }
}

#[test]
fn oracle_list_of_files_in_the_tree() {
    let mut pair = Pair::plain();
    let outside = tempfile::tempdir().unwrap();
    for base in [pair.rrdcached.base().to_path_buf(), pair.roundel.base()] {
        std::fs::create_dir_all(base.join("empty/below")).unwrap();
        std::fs::write(base.join("empty/foreign.rrd"), "x").unwrap();
        std::fs::write(base.join("empty/foreign.txt"), "x").unwrap();
        std::os::unix::fs::symlink(outside.path(), base.join("empty/link")).unwrap();
    }
    for line in [
        "LIST /empty",
        "LIST /empty/below",
        "LIST //empty/below/",
        "LIST RECURSIVE /empty",
        "LIST RECURSIVE /empty/below",
        "LIST /nope",
    ] {
        pair.check(line);
    }
}

#[test]
fn oracle_permissions_and_policies() {
    let permissions = "FLUSH,update,CREATE,BATCH";
    let create = CreatePolicy { no_overwrite: true, ..Default::default() };
    let mut pair =
        Pair::start(&["-B", "-O", "-P", permissions], create, Permissions::parse(permissions).unwrap());
    for line in [
        "STATS",
        "stats x",
        "PING",
        "LIST /",
        "foo",
        "INFO x.rrd",
        "FETCH",
        "QUEUE",
        "HELP HELP",
        "FLUSH x.rrd",
        "CREATE x.rrd -b 1000000000 DS:a:GAUGE:20:0:U RRA:MAX:0.5:1:9",
        "CREATE x.rrd -b 1000000000 DS:a:GAUGE:20:0:U RRA:MAX:0.5:1:9",
        "UPDATE x.rrd 1000000001:1",
        "BATCH",
        ".",
    ] {
        pair.check(line);
    }
    // Two lines, though the status says none.
    for client in [&mut pair.theirs, &mut pair.ours] {
        client.write(b"CREATE d/x.rrd DS:a:GAUGE:20:0:U RRA:MAX:0.5:1:9\n");
        assert!(client.line().starts_with("-1 No permission to recursively create: /"));
        assert_eq!(client.line(), "Did you pass -R to the daemon?\n");
    }
}

/// Random scripts: RRDs of every plain kind, valid and invalid updates, everything read back.
#[test]
fn oracle_random_scripts() {
    for seed in 1..=6 {
        println!("seed {seed}");
        random_script(Pair::plain(), seed);
    }
}

#[test]
fn oracle_random_scripts_through_a_cluster() {
    for seed in 11..=13 {
        println!("seed {seed}");
        random_script(Pair::in_a_cluster(), seed);
    }
}

fn random_script(mut pair: Pair, seed: u64) {
    let mut random = Random::new(seed);
    let names = ["a.rrd", "d/b.rrd", "d/e/c\\ c.rrd", "e.rrd", "BASE/f.rrd"];
    let mut times = [0u64; 5];
    for (index, name) in names.iter().enumerate() {
        let step = random.pick(&["1", "10", "60", "300"]);
        let kinds = ["GAUGE", "COUNTER", "DERIVE", "ABSOLUTE"];
        let (first, second) = (random.pick(&kinds), random.pick(&kinds));
        let (xff, per_row) = (random.pick(&["0", "0.5", "0.99"]), 1 + random.below(7));
        let rras = format!("RRA:AVERAGE:{xff}:1:20 RRA:MAX:{xff}:{per_row}:9 RRA:LAST:{xff}:{per_row}:7");
        times[index] = 1_000_000_000 + random.below(1000);
        pair.check(&format!(
            "CREATE {name} -b {} -s {step} DS:x:{first}:600:U:U DS:y:{second}:30:0:1000 {rras}",
            times[index]
        ));
    }
    // rrdcached caches every RRD it was asked to update, even if it refused; here, only what was updated.
    for (name, time) in names.iter().zip(&mut times) {
        *time += 5;
        pair.check(&format!("UPDATE {name} {time}:1:2"));
    }
    for _ in 0..300 {
        let index = random.below(5) as usize;
        let name = names[index];
        let time = &mut times[index];
        let line = match random.below(12) {
            0..=6 => {
                let mut line = format!("UPDATE {name}");
                for _ in 0..=random.below(3) {
                    *time += 1 + random.below(400);
                    let (x, y) = (random.below(5000), random.below(900));
                    line.push_str(&format!(" {time}:{x}:{y}"));
                }
                line
            }
            7 => format!("UPDATE {name} {}:1:2", *time - random.below(3)),
            8 => format!(
                "FETCH {name} {} {} {}",
                random.pick(&["AVERAGE", "MAX", "LAST", "MIN"]),
                *time - 900,
                *time
            ),
            9 => format!("LAST {name}"),
            10 => format!("FIRST {name} {}", random.below(4)),
            _ => format!("INFO {name}"),
        };
        if !line.starts_with("UPDATE") {
            pair.check(&format!("FLUSH {name}"));
        }
        pair.check(&line);
    }
    pair.check("LIST RECURSIVE /");
}
