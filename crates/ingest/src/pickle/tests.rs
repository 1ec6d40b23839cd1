use super::*;

use testkit::random::{Random, each_seed};

/// The entries of a message as text, faults among them.
fn entries(message: &[u8]) -> Result<Vec<String>, PickleError> {
    let mut entries = Vec::new();
    read(message, &mut |index, entry| {
        entries.push(match entry {
            Ok(point) => {
                let path = String::from_utf8_lossy(point.path);
                format!("{index} {path} {} {}", point.time.to_f64(), point.value.to_f64())
            }
            Err(fault) => format!("{index} {}", fault.label()),
        });
    })?;
    Ok(entries)
}

/// `pickle.dumps([("a.b", (1, 2.5)), ("c", (1700000000, 18446744073709551615))], protocol=N)` of Python 3.11.
#[test]
fn every_protocol_of_python_is_read() {
    let want = vec!["1 a.b 1 2.5".to_string(), "2 c 1700000000 18446744073709552000".to_string()];
    let zero: &[u8] =
        b"(lp0\n(Va.b\np1\n(I1\nF2.5\ntp2\ntp3\na(Vc\np4\n(I1700000000\nL18446744073709551615L\ntp5\ntp6\na.";
    let one: &[u8] = b"]q\x00((X\x03\x00\x00\x00a.bq\x01(K\x01G@\x04\x00\x00\x00\x00\x00\x00tq\x02tq\x03(X\x01\x00\x00\x00cq\x04(J\x00\xf1SeL18446744073709551615L\ntq\x05tq\x06e.";
    let two: &[u8] = b"\x80\x02]q\x00(X\x03\x00\x00\x00a.bq\x01K\x01G@\x04\x00\x00\x00\x00\x00\x00\x86q\x02\x86q\x03X\x01\x00\x00\x00cq\x04J\x00\xf1Se\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00\x86q\x05\x86q\x06e.";
    let four: &[u8] = b"\x80\x04\x95=\x00\x00\x00\x00\x00\x00\x00]\x94(\x8c\x03a.b\x94K\x01G@\x04\x00\x00\x00\x00\x00\x00\x86\x94\x86\x94\x8c\x01c\x94J\x00\xf1Se\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00\x86\x94\x86\x94e.";
    for message in [zero, one, two, four] {
        assert_eq!(entries(message).as_ref(), Ok(&want), "{}", message.escape_ascii());
    }
}

#[test]
fn python_2_wrote_its_texts_in_quotation_marks() {
    let message = b"(lp0\n(S'a\\x2e\\'b'\n(I-1\nS' 7 '\ntta(V\\u00e4\n(F1.5\nI3\ntta.";
    assert_eq!(entries(message), Ok(vec!["1 a.'b -1 7".into(), "2 \u{e4} 1.5 3".into()]));
}

#[test]
fn what_is_no_entry_costs_only_itself() {
    // [None, ("a", (1, None)), ("b", 1), (1, (1, 1)), ("c", (1, "x")), ["d", [1, 2]]]
    let message =
        b"\x80\x02](NX\x01\x00\x00\x00aK\x01N\x86\x86X\x01\x00\x00\x00bK\x01\x86K\x01K\x01K\x01\x86\x86X\x01\x00\x00\x00cK\x01X\x01\x00\x00\x00x\x86\x86](X\x01\x00\x00\x00d](K\x01K\x02eee.";
    let want = ["1 bad_form", "2 bad_value", "3 bad_form", "4 no_name", "5 bad_value", "6 d 1 2"];
    assert_eq!(entries(message), Ok(want.map(str::to_string).to_vec()));
}

#[test]
fn objects_are_refused_by_the_name_of_the_instruction() {
    // What runs `os.system("id")` elsewhere.
    let error = entries(b"cos\nsystem\n(S'id'\ntR.").unwrap_err();
    assert_eq!(error, PickleError::Forbidden { name: "GLOBAL", offset: 0 });
    assert!(error.to_string().contains("GLOBAL at byte 0"), "{error}");
    assert_eq!(entries(b"\x80\x02}."), Err(PickleError::Forbidden { name: "EMPTY_DICT", offset: 2 }));
    assert_eq!(entries(b"\x80\x04\x8f."), Err(PickleError::Forbidden { name: "EMPTY_SET", offset: 2 }));
    assert_eq!(entries(b"\xff"), Err(PickleError::NoOpcode { byte: 0xff, offset: 0 }));
}

#[test]
fn bombs_end_within_their_limits() {
    // A list that is in itself.
    assert_eq!(entries(b"]q\x00h\x00a."), Ok(vec!["1 bad_form".into()]));
    // Lists of lists, a million deep: no recursion, and a limit.
    let mut deep = vec![b']'; MESSAGE_BYTES_MAX];
    assert!(matches!(entries(&deep), Err(PickleError::TooMany { .. })));
    // The same list a hundred thousand times: entries, not copies.
    deep = b"]q\x00(".to_vec();
    deep.extend(b"h\x00".repeat(100_000));
    deep.extend(b"e.");
    assert_eq!(entries(&deep).unwrap().len(), 100_000);
    // Lengths beyond the message, keys beyond the memory.
    for broken in [
        &b"X\xff\xff\xff\xffa"[..],
        b"\x8e\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\x8b\xff\xff\xff\xff",
        b"\x95",
        b"h\x07.",
        b"p0\n",
        b"t.",
        b"e.",
        b"(0.",
        b"K\x01(\x85.",
        b"]",
        b"",
        b".",
        b"I\n.",
        b"Sx\n.",
        b"S'\n.",
    ] {
        assert!(matches!(entries(broken), Err(PickleError::Broken { .. })), "{}", broken.escape_ascii());
    }
    assert!(matches!(entries(b"]r\xff\xff\xff\xff."), Err(PickleError::TooMany { .. })));
    assert_eq!(entries(b"K\x01."), Err(PickleError::NoList));
}

#[test]
fn long_numbers_are_exact_as_far_as_numbers_are() {
    let number = |bytes: &[u8]| {
        let mut message = b"](X\x01\x00\x00\x00aK\x01\x8a".to_vec();
        message.push(bytes.len() as u8);
        message.extend(bytes);
        message.extend(b"\x86\x86e.");
        let mut value = None;
        read(&message, &mut |_, point| value = Some(point.unwrap().value)).unwrap();
        value.unwrap()
    };
    assert_eq!(number(b""), Number::Unsigned(0));
    assert_eq!(number(b"\xff"), Number::Signed(-1));
    assert_eq!(number(&[0xff; 8]), Number::Signed(-1));
    assert_eq!(number(&[0, 0, 0, 0, 0, 0, 0, 0, 1]), Number::Float(2_f64.powi(64)));
    let mut wide = vec![0; 20];
    wide.push(1);
    assert_eq!(number(&wide), Number::Float(2_f64.powi(160)));
    assert!(number(&[0xff; 20]).to_f64().abs() < 2.0);
}

#[test]
fn random_bytes_cause_no_panic() {
    const PIECES: &[&[u8]] = &[
        b"(",
        b"]",
        b"K\x01",
        b"X\x01\x00\x00\x00a",
        b"\x86",
        b"t",
        b"e",
        b"a",
        b"q\x00",
        b"h\x00",
        b".",
        b"\x94",
        b"I5\n",
        b"S'a\\x41'\n",
        b"0",
        b"1",
        b"2",
        b"l",
        b")",
        b"G\x40\x00\x00\x00\x00\x00\x00\x00",
        b"N",
    ];
    each_seed(3_000, |seed| {
        let mut random = Random::new(seed);
        let mut message = Vec::new();
        for _ in 0..random.below(40) {
            message.extend_from_slice(random.pick(PIECES));
        }
        for _ in 0..random.below(3) {
            let at = random.below(message.len() as u64 + 1) as usize;
            message.insert(at, random.next() as u8);
        }
        crate::fuzzing::fuzz_pickle(&message);
    });
}
