use super::*;
use crate::mrtg::term::{How, InterfaceReference, ObjectSpec, SnmpIdentity, SnmpTerm};

fn read(text: &str) -> TargetValue {
    parse(text, &TermContext::default())
}

#[track_caller]
fn only(text: &str) -> SnmpTerm {
    let value = read(text);
    assert_eq!(value.expression, Ok(Expression::Term(0)), "{text}: {:?}", value.terms);
    match &value.terms[0].1 {
        Term::Snmp(term) => (**term).clone(),
        other => panic!("{text}: {other:?}"),
    }
}

/// An object in short: OID, interface, request.
fn short(object: &ObjectSpec) -> String {
    let ObjectSpec::Object(query) = object else { return format!("{object:?}") };
    let oid = query.oid.iter().map(u32::to_string).collect::<Vec<_>>().join(".");
    let oid = oid.replace("1.3.6.1.2.1.2.2.1.", "if.").replace("1.3.6.1.2.1.31.1.1.1.", "ifX.");
    let interface = match &query.interface {
        None => String::new(),
        Some(interface) => format!(" {interface:?}"),
    };
    let how = if query.how == How::Get { String::new() } else { format!(" {:?}", query.how) };
    let index = query.index_position.map_or(String::new(), |at| format!(" at {at}"));
    format!("{oid}{interface}{how}{index}{}", if query.is_status { " status" } else { "" })
}

#[test]
fn objects_are_found_in_all_forms() {
    let check = |text: &str, input: &str, output: &str| {
        let term = only(text);
        assert_eq!((short(&term.input).as_str(), short(&term.output).as_str()), (input, output), "{text}");
        assert_eq!(term.agent.host, "h.x", "{text}");
    };
    check("2:public@h.x", "if.10 Number(2)", "if.16 Number(2)");
    check("-2:public@h.x", "if.16 Number(2)", "if.10 Number(2)");
    check("2:public@h.x:::::2", "ifX.6 Number(2)", "ifX.10 Number(2)");
    check("/10.0.0.1:p@h.x", "if.10 Ip(10.0.0.1)", "if.16 Ip(10.0.0.1)");
    check("\\My-If2:p@h.x", "if.10 Descr(\"My-If2\")", "if.16 Descr(\"My-If2\")");
    check("\\fun\\:\\ ney\\&ddd:p@h.x", "if.10 Descr(\"fun: ney&ddd\")", "if.16 Descr(\"fun: ney&ddd\")");
    check("-#2/11:p@h.x", "if.16 Name(\"2/11\")", "if.10 Name(\"2/11\")");
    check("#a*b+c:p@h.x", "if.10 Name(\"a*b+c\")", "if.16 Name(\"a*b+c\")");
    check("!0-f-bb:p@h.x", "if.10 Mac([0, 15, 187])", "if.16 Mac([0, 15, 187])");
    check("%13:p@h.x", "if.10 Type(13)", "if.16 Type(13)");
    check("1.3.6.1.2.1.2.2.1.14.1&.1.3.6.1.2.1.2.2.1.20.1:p@h.x", "if.14.1", "if.20.1");
    check("ifInErrors.1&ifOutErrors.1:p@h.x", "if.14.1", "if.20.1");
    check("ifInErrors/1.2.3.4&ifOutErrors/1.2.3.4:p@h.x", "if.14 Ip(1.2.3.4)", "if.20 Ip(1.2.3.4)");
    check(
        "ifInErrors\\My-If2&ifOutErrors\\My-If3:p@h.x",
        "if.14 Descr(\"My-If2\")",
        "if.20 Descr(\"My-If3\")",
    );
    check("ifHCInOctets#e/0&ifHCOutOctets#e/0:p@h.x:::::2", "ifX.6 Name(\"e/0\")", "ifX.10 Name(\"e/0\")");
    check("ifInErrors!0a-00&ifOutErrors%14:p@h.x", "if.14 Mac([10, 0])", "if.20 Type(14)");
    check("PseudoZero&PseudoOne:p@h.x", "PseudoZero", "PseudoOne");
    check("ifAdminHack.2&ifOperHack.2:p@h.x", "if.7.2 status", "if.8.2 status");
    check("WaLKifInErrors&WaLK3ifInErrors:p@h.x", "if.14 Walk(0)", "if.14 Walk(3)");
    check("GeTNEXT1.3.6.1.5&CnTWaLK1.3.6.1.5:p@h.x", "1.3.6.1.5 GetNext", "1.3.6.1.5 CountWalk");
    check("1.3.6.IndexPOS.9/1.2.3.4&1.3.6.9:p@h.x", "1.3.6.9 Ip(1.2.3.4) at 3", "1.3.6.9");
    check("sysUpTime&sysUpTime.0:p@h.x", "1.3.6.1.2.1.1.3.0", "1.3.6.1.2.1.1.3.0");
}

#[test]
fn what_follows_the_community_says_how_to_ask() {
    let term = only("2:stu\\ pi\\@d@h:9999!127.0.0.1!4000:0.5:7:1.5:2");
    assert_eq!((term.agent.host.as_str(), term.agent.port), ("h", 9999));
    assert_eq!((term.agent.local_host.as_deref(), term.agent.local_port), (Some("127.0.0.1"), Some(4000)));
    let patience = term.patience;
    assert_eq!((patience.timeout_seconds, patience.sends, patience.backoff), (0.5, 7, 1.5));
    assert_eq!(term.identity, SnmpIdentity::V2c { community: "stu pi@d".to_string() });
    let term = only("2:public@[2001:db8::1]:6161::4");
    assert_eq!((term.agent.host.as_str(), term.agent.port, term.patience.sends), ("2001:db8::1", 6161, 4));
    assert_eq!((term.patience.timeout_seconds, term.patience.backoff), (2.0, 1.0));
    assert_eq!(only("2:p@h:!!4000").agent.local_port, Some(4000));
    assert_eq!(only("2:p@h:!192.168.2.4").agent.local_host.as_deref(), Some("192.168.2.4"));
    let options = "username=>'u', authpassword=>'long', timeout => 7, lenient_source_port_matching => 0";
    let options = crate::mrtg::snmp_options::parse(options).unwrap();
    let context = TermContext { options, no_high_capacity: true, ..TermContext::default() };
    let Term::Snmp(term) = &parse("2:u2@h:::::3", &context).terms[0].1 else { panic!() };
    let pairs = [("username", "u"), ("authpassword", "long")].map(|(a, b)| (a.to_string(), b.to_string()));
    assert_eq!(term.identity, SnmpIdentity::V3(pairs.to_vec()));
    assert_eq!((term.patience.timeout_seconds, term.patience.sends), (7.0, 2));
    assert!(!term.options.lenient_port && term.options.lenient_address);
    let ObjectSpec::Object(query) = &term.input else { panic!() };
    assert_eq!(query.interface, Some(InterfaceReference::Number(2)));
    assert_eq!(query.oid.last(), Some(&10), "noHC");
}

/// The expressions that Debian's mrtg was left with (`--debug=tarp`), `T0` for its first target.
#[test]
fn what_is_between_terms_is_the_expression() {
    let check = |text: &str, want: &[&str], terms: &[&str]| {
        let value = read(text);
        let names: Vec<_> = value.terms.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, terms, "{text}");
        let pieces: Vec<_> = want
            .iter()
            .map(|piece| match piece.strip_prefix('T') {
                Some(index) => Piece::Term(index.parse().unwrap()),
                None => Piece::Text(piece),
            })
            .collect();
        assert_eq!(value.expression, expression::parse(&pieces), "{text}");
    };
    check("(2:p@h:9+3:p@h:9)*8", &["(", "T0", "+", "T1", ")*8"], &["2:p@h:9", "3:p@h:9"]);
    check("2:p@h + 2:p@h + -2:p@h", &["T0", "+", "T0", "+", "T1"], &["2:p@h", "-2:p@h"]);
    check("2:p@127.0.0.1*8", &["T0", "*8"], &["2:p@127.0.0.1"]);
    check("2:p@foo-bar.de_x:161/3", &["T0", "/3"], &["2:p@foo-bar.de_x:161"]);
    check("2:p@h:9:1:::+3", &["T0", "+3"], &["2:p@h:9:1:::"]);
    check("3*#eth0:p@h", &["3*", "T0"], &["#eth0:p@h"]);
    check("3 * #eth0/1:p@h", &["3 *", "T0"], &["#eth0/1:p@h"]);
    check("3 - 2:p@h", &["3 - ", "T0"], &["2:p@h"]);
    check("3 > 2 ? 2:p@h : 3", &["3 > 2 ?", "T0", ": 3"], &["2:p@h"]);
    check("1.3.6.1&1.3.6.2:p@h:9:1*8", &["T0", "*8"], &["1.3.6.1&1.3.6.2:p@h:9:1"]);
    check("`a` / ( `b c` - `a` )", &["T0", "/ (", "T1", "-", "T0", ")"], &["`a`", "`b c`"]);
    check(
        "( 1.3.6.1&1.3.6.2:p@h / 1.3.6.3&1.3.6.4:p@h ) * 100",
        &["(", "T0", "/", "T1", ") * 100"],
        &["1.3.6.1&1.3.6.2:p@h", "1.3.6.3&1.3.6.4:p@h"],
    );
    // A blank and an interface with a minus sign: two targets without an operator.
    assert!(read("3 -#eth0:p@h").expression.is_err());
    assert!(read("1.3.6.1.1.0:p@h").expression.is_err());
    assert!(read("").expression.is_err());
}

#[test]
fn programs_and_what_cannot_be_read() {
    assert_eq!(
        read("`echo '\\`' a@b:c`").terms,
        [("`echo '\\`' a@b:c`".to_string(), Term::Program("echo '`' a@b:c".to_string()))]
    );
    let unreadable = |text: &str| match &read(text).terms[..] {
        [(_, Term::Unreadable(cause))] => cause.clone(),
        other => panic!("{other:?}"),
    };
    assert!(unreadable("1.3.6.1&1.3.6.2:p@h|Conv").contains("\"Conv\" needs Perl"));
    assert!(unreadable("foo.1&bar.1:p@h").contains("\"foo\""));
    assert!(unreadable("2:p@h:99999").contains("UDP port"));
    assert!(unreadable("2:p@h:::::4").contains("version"));
}

/// A sum over all ports of a switch, as IXP Manager writes it.
#[test]
fn a_sum_of_many_ports() {
    let ports: Vec<String> = (1..=400)
        .map(|port| format!("ifHCInOctets#swp{port}&ifHCOutOctets#swp{port}:secret@switch.example:::::2"))
        .collect();
    let value = read(&ports.join(" + "));
    assert_eq!(value.terms.len(), 400);
    let one = super::super::decimal::Decimal::of_integer(1);
    assert_eq!(value.expression.unwrap().evaluate(&|_| Some(one.clone())).unwrap().to_string(), "400");
}
