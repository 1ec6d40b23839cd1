use super::*;
use crate::content::Rrd;
use crate::create::new_live;
use crate::definition::text::{CreateOptions, Limits, parse_create};
use crate::live::UNKNOWN;
use crate::when::parse_step;

fn text(rrd: &Rrd) -> String {
    let mut out = Vec::new();
    dump(rrd, Header::Dtd, &mut |time, out| out.extend_from_slice(format!("t{time}").as_bytes()), &mut out)
        .unwrap();
    String::from_utf8(out).unwrap()
}

fn fresh(step: &str, words: &[&str]) -> Rrd {
    let options =
        CreateOptions { step: parse_step(step, true).unwrap(), limits: Limits::STORE, file_name: b"x" };
    let definition = parse_create(&options, words).unwrap();
    let live = new_live(&definition, 1_000_000_000 * i64::from(definition.units_per_second));
    let ds_count = definition.ds.len();
    let archives = definition.rra.iter().map(|rra| match rra.cf.is_season() {
        true => Vec::new(),
        false => vec![UNKNOWN; rra.row_count as usize * ds_count],
    });
    Rrd { archives: archives.collect(), live, definition }
}

fn small() -> String {
    text(&fresh("10", &["DS:a:GAUGE:20:0:100", "DS:c:COMPUTE:a,2,*", "RRA:AVERAGE:0.5:1:2"]))
}

#[test]
fn what_was_dumped_is_restored() {
    fn check(step: &str, words: &[&str]) {
        let dumped = text(&fresh(step, words));
        let restored = restore(dumped.as_bytes(), RestoreOptions { long_names: true, ..Default::default() });
        assert_eq!(text(&restored.unwrap()), dumped);
    }
    check("10", &["DS:a:GAUGE:20:0:100", "DS:c:COMPUTE:a,2,*", "RRA:AVERAGE:0.5:1:2", "RRA:LAST:0:3:4"]);
    check("10", &["DS:a:DDERIVE:20:U:U", "RRA:MHWPREDICT:20:0.1:0.1:5"]);
    check("0.1", &[&format!("DS:{}:GAUGE:0.3:0:100", "n".repeat(100)), "RRA:AVERAGE:0.5:1:2"]);
}

#[test]
fn a_dump_in_thousandths_is_refused_by_rrdtool() {
    let dumped = text(&fresh("0.1", &["DS:a:GAUGE:0.3:0:100", "RRA:AVERAGE:0.5:1:2"]));
    let mut tool = testkit::RrdTool::start().unwrap();
    std::fs::write(tool.path("a.xml"), &dumped).unwrap();
    let refused = tool.run("restore a.xml a.rrd").unwrap_err();
    assert!(refused.to_string().contains("Unknown tag: units_per_second"), "{refused}");
    // Without the tag they are seconds, as to RRDtool.
    let untagged = dumped.replace("\t<units_per_second>1000</units_per_second>\n", "");
    let restored = restore(untagged.as_bytes(), RestoreOptions::default()).unwrap();
    assert_eq!((restored.definition.step, restored.definition.units_per_second), (100, 1));
}

#[test]
fn bad_dumps_are_refused_in_rrdtools_words() {
    fn check(from: &str, to: &str, want: &str) {
        let xml = small();
        assert!(xml.contains(from), "{from}");
        let error = restore(xml.replacen(from, to, 1).as_bytes(), RestoreOptions::default()).unwrap_err();
        assert!(error.to_string().contains(want), "{from} -> {to}: {error}");
    }
    check("<rrd>", "<foo>", "expected <foo> element but found <rrd>");
    check("</rrd>", "", "the xml ended while we were looking for an element");
    check("</rrd>", "</rrd><foo/>", "error reading/parsing XML: Extra content");
    check("<v>NaN", "<v>U", "get_xml_double from 'U'");
    check("<v>NaN</v>", "<v/>", "expected a value but found a <v> element");
    check("<v>NaN</v>", "", "expected </row> element but found <v>");
    check("<v>NaN</v>", "<v>1</v><v>1</v>", "expected <v> element but found </row>");
    check(" GAUGE ", " FOO ", "parse_tag_ds_type: Unknown data source type: FOO");
    check(" a ", " aaaaaaaaaaaaaaaaaaaa ", "'aaaaaaaaaaaaaaaaaaaa' is longer than 20");
    check("<step>10", "<step>0", "no step");
    check("<step>10", "<step>18446744073709551616", "get_xml_ulong from '18446744073709551616' Numerical");
    check("<lastupdate>", "<lastupdate>9223372036854775808", "Numerical result out of range");
    check("0003", "00003", "'00003' is longer than 5");
    check("0003", "-1", "parse_tag_rra: Unknown tag: params");
    check("AVERAGE", "FOO", "parse_tag_rra_cf: Unknown consolidation function: FOO");
    check("<row>", "<row>foo", "expected element but found text 'foo'");
    check("<step>", "<foo>1</foo><step>", "parse_tag_rrd: Unknown tag: foo");
    check("0003", "0006", "can't handle RRD file version 0006");
    check(" a ", " &x; ", "Entity not defined");
}

/// Debian's rrdtool takes the first for empty, refuses the second and keeps the third.
#[test]
fn what_a_dump_could_say_is_restored() {
    fn check(from: &str, to: &str, want: &str) {
        let xml = small();
        assert!(xml.contains(from), "{from}");
        let restored = restore(xml.replacen(from, to, 1).as_bytes(), RestoreOptions::default()).unwrap();
        assert!(text(&restored).contains(want), "{to}");
    }
    check("<step>10<", "<step><![CDATA[20]]><", "<step>20<");
    check(" a,2,* ", " a,POP,2 ", " a,POP,2 ");
    check("0003", "3", "<version>0003<");
}

#[test]
fn limits_are_checked_on_request() {
    let xml = small().replacen("<v>NaN</v>", "<v>200</v>", 1);
    let value = |range_check| {
        restore(xml.as_bytes(), RestoreOptions { range_check, ..Default::default() }).unwrap().archives[0][0]
    };
    assert_eq!(value(false), 200.0);
    assert!(value(true).is_nan());
}

#[test]
fn hostile_input_ends_in_an_error() {
    fn check(xml: &str) {
        restore(xml.as_bytes(), RestoreOptions::default()).unwrap_err();
    }
    check("");
    check("hello");
    check(&"<rrd>".repeat(100_000));
    check(&format!("<rrd><version>{}</version></rrd>", "1".repeat(1 << 20)));
    check("<!DOCTYPE rrd [<!ENTITY a \"&b;&b;\"><!ENTITY b \"&a;&a;\">]><rrd><version>&a;</version></rrd>");
    check(&small().replacen("<pdp_per_row>1", "<pdp_per_row>18446744073709551615", 1));
    check(&small().replacen("<lastupdate>1000000000", "<lastupdate>18446744073709551", 1));
    let xml = small();
    for at in 0..xml.len() - 2 {
        check(&xml[..at]);
    }
}
