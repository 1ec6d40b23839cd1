//! `dump` and `restore` against Debian's rrdtool: the same bytes out, the same RRD in.

#![allow(clippy::unwrap_used, reason = "a test may stop")]

mod support;

use roundel_rrd::codec::file;
use roundel_rrd::codec::xml::{Header, RestoreOptions, dump, restore};
use roundel_rrd::content::Rrd;
use support::Random;
use testkit::RrdTool;

const SOURCES: &str = "DS:a:GAUGE:20:U:100 DS:b:COUNTER:30:0:U DS:c:COMPUTE:a,b,+,3,*";
const VERSION_5: &str = "DS:d:DDERIVE:1d:-1e3:inf";
const ARCHIVES: [&str; 5] = [
    "RRA:AVERAGE:0.5:1:5 RRA:MAX:0.25:3:7 RRA:LAST:0:2:4 RRA:MIN:0.9:7:3",
    "RRA:HWPREDICT:20:0.1:0.0035:5 RRA:AVERAGE:nan:1:5",
    "RRA:MHWPREDICT:20:0.1:0.0035:5:2 RRA:SEASONAL:5:0.2:1:smoothing-window=0.3",
    "RRA:HWPREDICT:20:0.9:0.5:4:2 RRA:SEASONAL:4:0.9:1 RRA:DEVSEASONAL:4:0.1:1 RRA:DEVPREDICT:9:3 RRA:FAILURES:9:1:20:3",
    "RRA:AVERAGE:0.5:1:2000",
];

/// `%Y-%m-%d %H:%M:%S UTC`.
fn utc(time: i64) -> String {
    let (days, second) = (time.div_euclid(86_400), time.rem_euclid(86_400));
    // Days to a date, by eras of 400 years from March of year 0.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year}-{month:02}-{day:02} {:02}:{:02}:{:02} UTC", second / 3600, second / 60 % 60, second % 60)
}

fn text(rrd: &Rrd, header: Header) -> String {
    let mut out = Vec::new();
    dump(rrd, header, &mut |time, out| out.extend_from_slice(utc(time).as_bytes()), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Writes the RRD as a file with our ring positions.
fn write(tool: &RrdTool, name: &str, rrd: &Rrd) {
    let newest = rrd.definition.rra.iter().map(|rra| rra.row_count - 1).collect::<Vec<_>>();
    std::fs::write(tool.path(name), file::encode(rrd, &newest).unwrap()).unwrap();
}

#[test]
fn dumps_are_the_same_bytes_and_restore_to_the_same_rrd() {
    let mut tool = RrdTool::start().unwrap();
    for (index, archives) in ARCHIVES.iter().enumerate() {
        let mut random = Random::new(index as u64);
        let (last, more) = if index % 2 == 0 { ("", "") } else { (VERSION_5, ":1.5") };
        tool.run(&format!("create x.rrd --start 1000000000 --step 10 {SOURCES} {last} {archives}")).unwrap();
        for update in 0..40 {
            let rrd = file::decode(&std::fs::read(tool.path("x.rrd")).unwrap()).unwrap().rrd;
            let theirs = tool.run("dump x.rrd").unwrap();
            let mine = text(&rrd, Header::Dtd);
            let different = mine.lines().zip(theirs.lines()).find(|(mine, theirs)| mine != theirs);
            assert!(mine == theirs, "{archives} {update}: {different:?}");
            if update % 10 == 0 {
                assert_eq!(text(&rrd, Header::None), tool.run("dump --no-header x.rrd").unwrap());
                assert_eq!(text(&rrd, Header::Xsd), tool.run("dump --header xsd x.rrd").unwrap());
                let restored = restore(theirs.as_bytes(), RestoreOptions::default()).unwrap();
                assert!(
                    text(&restored, Header::Dtd) == theirs,
                    "{archives} {update}: restore loses something"
                );
                write(&tool, "back.rrd", &restored);
                assert!(
                    tool.run("dump back.rrd").unwrap() == theirs,
                    "{archives} {update}: rrdtool reads it otherwise"
                );
            }
            let time = 1_000_000_000 + (update + 1) * 9;
            let value = if random.chance(10) { "U".to_string() } else { random.below(500).to_string() };
            tool.run(&format!("update x.rrd {time}:{value}:{}{more}", update * 1000)).unwrap();
        }
    }
}

#[test]
fn both_take_or_refuse_the_same_changes() {
    let mut tool = RrdTool::start().unwrap();
    tool.run(&format!("create x.rrd --start 1000000000 --step 10 {SOURCES} {}", ARCHIVES[0])).unwrap();
    tool.run("update x.rrd 1000000015:5:7 1000000029:6:9").unwrap();
    let good = tool.run("dump x.rrd").unwrap();
    let mut check = |from: &str, to: &str| {
        assert!(good.contains(from), "{from}");
        let changed = good.replacen(from, to, 1);
        std::fs::write(tool.path("c.xml"), &changed).unwrap();
        std::fs::remove_file(tool.path("c.rrd")).ok();
        let theirs = tool.run("restore c.xml c.rrd").map(|_| tool.run("dump c.rrd").unwrap());
        let mine = restore(changed.as_bytes(), RestoreOptions::default());
        match (mine, theirs) {
            (Ok(rrd), Ok(theirs)) => assert_eq!(text(&rrd, Header::Dtd), theirs, "{from} -> {to}"),
            (Err(mine), Err(theirs)) => assert_eq!(bare(&mine.to_string()), bare(&theirs), "{from} -> {to}"),
            (mine, theirs) => panic!("{from} -> {to}: {mine:?}, rrdtool {theirs:?}"),
        }
    };
    for (from, to) in [
        ("<step>10<", "<step> 10 <"),
        ("<step>10<", "<step>10.5<"),
        ("<rrd>", "<rrd><?pi x?>"),
        ("<row>", "<row x=\"1\">"),
        (" a ", " &#97; "),
        (" a ", " a b "),
        (" a ", " aaaaaaaaaaaaaaaaaaaa "),
        (" GAUGE ", " gauge "),
        (" a,b,+,3,* ", " x,b,+ "),
        (" a,b,+,3,* ", " TIME "),
        ("<minimal_heartbeat>20", "<minimal_heartbeat>x"),
        ("<minimal_heartbeat>20", "<minimal_heartbeat>-1"),
        ("<max>1.0000000000e+02", "<max>U"),
        ("<max>1.0000000000e+02", "<max>0x10"),
        ("<max>1.0000000000e+02", "<max>  7 "),
        ("<max>1.0000000000e+02", "<max>-inf"),
        ("<max>1.0000000000e+02", "<max>1e400"),
        ("<max>1.0000000000e+02", "<max>nanfoo"),
        ("<max>1.0000000000e+02</max>", ""),
        ("<last_ds>6<", "<last_ds> 6 <"),
        ("<last_ds>6<", "<last_ds><"),
        ("<unknown_sec> 0", "<unknown_sec> -3"),
        ("<cf>AVERAGE", "<cf> AVERAGE "),
        ("<cf>AVERAGE", "<cf>average"),
        ("<xff>5.0", "<xff>25.0"),
        ("<primary_value>", "<foo>1</foo><primary_value>"),
        ("<v>NaN", "<v>x"),
        ("<v>NaN", "<v>"),
        ("<v>NaN</v>", "<v/>"),
        ("<v>NaN", "<v>1e400"),
        ("<v>NaN</v>", "<v>NaN</v><v>1</v>"),
        ("<v>NaN</v>", ""),
        ("<row>", "<row>foo"),
        ("</rrd>", "<ds><name> z </name></ds></rrd>"),
        ("</version>", "</version><foo/>"),
        ("<name>", "<foo/><name>"),
    ] {
        check(from, to);
    }
}

#[test]
fn numbers_are_rounded_as_the_dump_rounds_them() {
    const ROWS: usize = 5000;
    let mut tool = RrdTool::start().unwrap();
    tool.run(&format!("create n.rrd --start 1000000000 --step 1 DS:a:GAUGE:20:U:U RRA:AVERAGE:0.5:1:{ROWS}"))
        .unwrap();
    let mut rrd = file::decode(&std::fs::read(tool.path("n.rrd")).unwrap()).unwrap().rrd;
    let mut random = Random::new(7);
    for value in &mut rrd.archives[0] {
        *value = match random.below(4) {
            0 => f64::from_bits(random.next()),
            1 => random.below(100_000_000_000_000) as f64 / 10f64.powi(random.below(14) as i32),
            2 => (random.below(100_000_000_000) * 10 + 5) as f64 / 1e11,
            _ => random.below(1 << 53) as f64 / random.below(300) as f64,
        };
    }
    write(&tool, "n.rrd", &rrd);
    let theirs = tool.run("dump n.rrd").unwrap();
    let mine = text(&rrd, Header::Dtd);
    let different = mine.lines().zip(theirs.lines()).find(|(mine, theirs)| mine != theirs);
    assert!(mine == theirs, "{different:?}");
}

/// The text without line numbers, which libxml2 counts differently, and without a stale `errno`.
fn bare(text: &str) -> String {
    let text = text.replace("Numerical result out of range", "").replace("Success", "");
    text.chars().filter(|character| !character.is_ascii_digit()).collect::<String>().trim_end().to_string()
}
