#![allow(clippy::unwrap_used, reason = "a test may stop")]

use super::graphic::{Dashes, Graphic, PlotValue, Rule, ShapeKind, Shift, Tick};
use super::*;
use crate::picture::scene::Colour;
use rrd::definition::Cf;
use rrd::when::calendar::Utc;

fn parse(arguments: &[&str]) -> Result<Script, LanguageError> {
    Script::parse(
        arguments,
        ScriptContext { start: 1_000_000_000, end: 1_000_001_000, now: 1_000_002_000, calendar: &Utc },
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
    check(&["DEF:a=x.rrd:in:FOO:reduce=X:step=1m"], "bad reduce CF: X");
    check(&["DEF:a=x.rrd:step=1m:start=zz"], "Bad step value: 1m");
    check(&["DEF:a=x.rrd:start=zz"], "start time: unparsable time: zz");
    check(&[D, "DEF:a=x.rrd:in:FOO"], "trying to reuse vname a");
    check(&[D, D, D], "trying to reuse vname a");
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
    check(&["VDEF:v=v,MAXIMUM"], "variable 'v' not DEF nor CDEF in VDEF 'v,MAXIMUM'");
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

#[test]
fn what_is_drawn_is_typed() {
    let drawn = |arguments: &[&str]| {
        let all = [&["DEF:a=x.rrd:in:AVERAGE", "VDEF:v=a,LAST"], arguments].concat();
        match parse(&all).unwrap().elements.pop() {
            Some(Element::Graphic(drawn)) => drawn,
            other => panic!("{other:?}"),
        }
    };
    let shape = |arguments: &[&str]| match drawn(arguments) {
        Graphic::Shape(shape) => shape,
        other => panic!("{other:?}"),
    };
    let red = Some(Colour::new(0xff00_00ff));
    let plain = ShapeKind::Line { width: 1.0, dashes: Dashes::default() };
    let line = shape(&["LINE:a#ff0000:text:STACK"]);
    assert_eq!((line.kind.clone(), line.value, line.colour), (plain.clone(), PlotValue::Series(0), red));
    assert_eq!((line.legend.as_slice(), line.stack, line.skip_scale), (&b"text"[..], true, false));
    let other = shape(&["LINE2.5:vname=5:color=ff0000:legend=x:skipscale:dashes=1,2,3:dash-offset=-4"]);
    let dashes = Dashes { lengths: vec![1.0, 2.0, 3.0], offset: -4.0 };
    assert_eq!((other.kind, other.value), (ShapeKind::Line { width: 2.5, dashes }, PlotValue::Number(5.0)));
    assert_eq!((other.colour, other.stack, other.skip_scale), (red, false, true));
    // A colour that cannot be read ends it all.
    let spoiled = shape(&["AREA:a#ff0000#xx:text:STACK:more", "BAD"]);
    assert_eq!((spoiled.colour, spoiled.legend, spoiled.stack), (red, Vec::new(), true));
    assert_eq!(shape(&["LINE:a#ff000", "LINE:b"]).colour, None);
    assert_eq!(shape(&["LINE:a", "XPORT:v#f", "LINE:b"]).value, PlotValue::Series(0));
    let green = Colour::new(0x00ff_00ff);
    let gradient = |height| ShapeKind::Area { gradient: Some((green, height)) };
    assert_eq!(shape(&["AREA:a#ff0000#00ff00"]).kind, gradient(50.0));
    assert_eq!(shape(&["AREA:a#ff0000:color2=00ff00:gradheight=-20"]).kind, gradient(-20.0));
    assert_eq!(shape(&["AREA:a#ff0000#00ff00#0000ff"]).kind, ShapeKind::Area { gradient: None });
    assert_eq!(shape(&["LINE3:a:x:dashes", "COMMENT:x", "STACK:v"]).kind, {
        ShapeKind::Line { width: 3.0, dashes: Dashes::default() }
    });
    assert_eq!(shape(&["AREA:a", "STACK:v#ff0000#00ff00"]).kind, gradient(50.0));
    let rule = Rule {
        vertical: true,
        value: PlotValue::Scalar(0),
        colour: green,
        legend: b"dash".to_vec(),
        dashes: Dashes { lengths: vec![5.0, 5.0], offset: 0.0 },
    };
    assert_eq!(drawn(&["VRULE:v#00ff00:dash:dashes"]), Graphic::Rule(rule));
    let tick = Tick {
        value: PlotValue::Series(0),
        colour: Colour::new(0),
        fraction: -0.5,
        legend: b"STACK".to_vec(),
    };
    assert_eq!(drawn(&["TICK:a:-0.5:STACK"]), Graphic::Tick(tick));
    let shift = |offset| Graphic::Shift(Shift { series: 0, offset });
    assert_eq!(drawn(&["SHIFT:a:-010"]), shift(PlotValue::Number(-10.0)));
    assert_eq!(drawn(&["SHIFT:a:offset=v"]), shift(PlotValue::Scalar(0)));
}

#[test]
fn errors_of_what_is_drawn_are_those_of_rrdtool() {
    let check = |argument: &str, want: &str| {
        let arguments = ["DEF:a=x.rrd:in:AVERAGE", "VDEF:v=a,LAST", argument];
        assert_eq!(parse(&arguments).unwrap_err().to_string(), want, "{argument}");
    };
    check("LINE", "No positional VNAME");
    check("LINEx", "Bad line width: x");
    check("LINE-1:a", "Bad line width: -1");
    check("LINE:b#ff0000", "b is not a vname nor a number");
    check("LINE:b:dashes=1,x", "Could not parse number: x");
    check("LINE:a:dashes=5x,1", "expected a ',' at : x,1");
    check("LINE:a:dash-offset=", "Could not parse dash-offset: ");
    check("LINE:a:f:STACK=1", "Unused Arguments \"STACK=1\" in command : LINE:a:f:STACK=1");
    check("AREA:b:gradheight=x", "Bad gradheight: x");
    check("STACK:b", "b is not a vname nor a number");
    check("STACK:a:b:c", "No previous LINE or AREA found for STACK:a:b:c");
    check("STACK:a#f", "STACK should already be turned into LINE or AREA here");
    check("TICK:b#ff0000", "No positional FRACTION");
    check("HRULE:a:b:c", "Using vname a of wrong type in line HRULE:a:b:c\n");
    check("TICK:a#ff0000", "No positional FRACTION");
    check("TICK:x=a:1x", "error parsing number a");
    check("SHIFT", "No argument for definition of vdef/rrd in SHIFT");
    check("SHIFT:a=100", "vname 100 not found");
    check("SHIFT:v:1", "Cannot shift a VDEF: 'v' in line 'SHIFT:v:1'\n");
    check("SHIFT:a", "No shift given");
    check("SHIFT:a:a", "Offset cannot be a (C)DEF: 'a' in line 'SHIFT:a:a'\n");
    check("SHIFT:a:1h", "error parsing number 1h");
}
