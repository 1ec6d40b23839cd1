#![allow(clippy::unwrap_used, reason = "a test may stop")]

use super::*;
use rrd::definition::Cf;
use rrd::when::calendar::Utc;

fn parse(arguments: &[&str]) -> Result<Script, LanguageError> {
    Script::parse(
        arguments,
        Setting { start: 1_000_000_000, end: 1_000_001_000, now: 1_000_002_000, calendar: &Utc },
    )
}

fn def(argument: &str) -> Def {
    match parse(&[argument]).unwrap().elements.pop() {
        Some(Element::Def(def)) => def,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_def_is_read_in_any_of_its_forms() {
    let plain = def("DEF:a=x.rrd:in:AVERAGE");
    assert_eq!(
        (plain.name.as_slice(), plain.file.as_slice(), plain.ds.as_slice()),
        (&b"a"[..], &b"x.rrd"[..], &b"in"[..])
    );
    assert_eq!(
        (plain.cf, plain.start, plain.end, plain.step),
        (Cf::Average, 1_000_000_000, 1_000_001_000, None)
    );
    for same in [
        "DEF:vname=a:rrd=x.rrd:ds=in:cf=AVERAGE",
        "DEF:vname=a:x.rrd:in:AVERAGE",
        "DEF:a=x.rrd:ds=in:AVERAGE",
        "DEF:cf=AVERAGE:a=x.rrd:in",
    ] {
        assert_eq!(def(same), plain, "{same}");
    }
    let full =
        def(r"DEF:a=x\:y=z.rrd:in:MAX:step=300:reduce=LAST:daemon=h\:1:start=1000000100:end=1000000200");
    assert_eq!((full.file.as_slice(), full.daemon.as_deref()), (&b"x:y=z.rrd"[..], Some(&b"h:1"[..])));
    assert_eq!((full.step, full.reduce), (Some(300), Some(Cf::Last)));
    assert_eq!((full.start, full.end), (1_000_000_100, 1_000_000_200));
    // A name that DEF has for itself is no name of a variable.
    assert_eq!(def("DEF:step=x.rrd:in:AVERAGE").name, b"");
}

#[test]
fn errors_are_those_of_rrdtool() {
    const D: &str = "DEF:a=x.rrd:in:AVERAGE";
    const V: &str = "VDEF:v=a,MAXIMUM";
    fn check(arguments: &[&str], want: &str) {
        assert_eq!(parse(arguments).map(|_| ()).unwrap_err().to_string(), want, "{arguments:?}");
    }
    check(&[""], "'' is not a valid function name in ");
    check(&["a=b"], "no command set in argument a=b");
    check(&["FOO:a"], "'FOO' is not a valid function name in FOO:a");
    check(&["DEF:a"], "No argument for definition of DS in DEF:a");
    check(&["DEF:a=x.rrd:in"], "No argument for definition of CF in DEF:a=x.rrd:in");
    check(&["DEF:a=x.rrd:in:FOO"], "bad CF: FOO");
    check(
        &["DEF:a=x.rrd:in:AVERAGE:foo=1:bar"],
        "Unused Arguments \"foo=1:bar\" in command : DEF:a=x.rrd:in:AVERAGE:foo=1:bar",
    );
    check(&["DEF:a=x.rrd:in:AVERAGE:step=1m"], "Bad step value: 1m");
    check(&["DEF:a=x.rrd:in:AVERAGE:reduce=X"], "bad reduce CF: X");
    check(&["DEF:a=x.rrd:in:AVERAGE:end=zz"], "end time: unparsable time: zz");
    check(
        &["DEF:a=x.rrd:in:AVERAGE:start=1000001001"],
        "start (1000001001) should be less than end (1000001000)",
    );
    check(&["CDEF"], "No argument for definition of vdef/rrd in CDEF");
    check(&[D, "CDEF:a=a,1,+"], "trying to reuse vname a");
    check(&[D, "CDEF:b=c,UN"], "don't understand 'c,UN'");
    check(&[D, "VDEF:v=a,FOO"], "Unknown function 'FOO' in VDEF 'v'\n");
    check(&[V], "Not a valid vname: a in line a,MAXIMUM");
    check(&["XPORT"], "No positional VNAME");
    check(&[D, "XPORT:b"], "b is not a vname nor a number");
    check(&[D, "XPORT:5"], "Encountered unknown type variable '' in line 'XPORT:5'");
    check(&[D, V, "XPORT:v"], "Cannot shift a VDEF: 'v' in line 'XPORT:v'\n");
    check(&[D, "XPORT:a:x:y"], "Unused Arguments \"y\" in command : XPORT:a:x:y");
    check(&["PRINT:a:%lf"], "undefined vname a");
    check(&[D, "PRINT:a"], "No positional CDEF");
    check(&[D, "PRINT:a:%lf"], "bad CF for DEF/CDEF: %lf");
    check(&[D, V, "PRINT:v:strftime"], "No positional CF/FORMAT");
    check(&[D, V, "PRINT:v:MAX:%lf"], "Unused Arguments \"%lf\" in command : PRINT:v:MAX:%lf");
    check(&["TEXTALIGN:up"], "Unknown alignment type 'up'");
}

#[test]
fn variables_are_numbered_and_the_first_of_two_names_counts() {
    let script =
        parse(&["DEF:a=x.rrd:in:AVERAGE", "DEF:a=x.rrd:out:AVERAGE", "VDEF:v=a,LAST", "CDEF:b=a,v,+"])
            .unwrap();
    assert_eq!((script.series_count(), script.scalar_count()), (3, 1));
    assert_eq!(script.lookup(b"a"), Some(Symbol::Series(0)));
    assert_eq!(script.lookup(b"b"), Some(Symbol::Series(2)));
    assert_eq!(script.lookup(b"v"), Some(Symbol::Scalar(0)));
    assert_eq!(script.lookup(b""), None);
}

#[test]
fn texts_take_their_flags_anywhere() {
    let check = |argument: &str, format: &[u8], style: PrintStyle| {
        let mut script = parse(&["DEF:a=x.rrd:in:AVERAGE", "VDEF:v=a,LAST", argument]).unwrap();
        let Some(Element::Print(print)) = script.elements.pop() else { panic!("{argument}") };
        assert_eq!((print.format.as_slice(), print.style), (format, style), "{argument}");
    };
    check("PRINT:v:%lf", b"%lf", PrintStyle::Number);
    check("PRINT:v:strftime:%H", b"%H", PrintStyle::Time);
    check("GPRINT:v:%H:strftime:valstrftime", b"%H", PrintStyle::Time);
    check(r"PRINT:v:x=\:%H:valstrfduration", b"x=:%H", PrintStyle::Duration);
    check("PRINT:a:cf=MAX:format=%lf", b"%lf", PrintStyle::Number);
}
