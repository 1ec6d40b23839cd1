use super::*;

const HEAD: &str = "WorkDir: /tmp\nLogFormat: rrdtool\n";

fn read(text: &str) -> Result<Config, String> {
    let mut none = |_: &str| Err("no such file".to_string());
    parse("x.cfg", format!("{HEAD}{text}").as_bytes(), &mut none).map_err(|faults| {
        faults.iter().map(|fault| format!("{}: {}\n", fault.place.line, fault.text)).collect()
    })
}

/// A target's keyword, and what Debian's mrtg makes of it.
#[track_caller]
fn check(text: &str, target: &str, keyword: &str, want: Option<&str>) {
    let text = format!("MaxBytes[_]: 1\nTitle[_]: t\nTarget[_]: x\n{text}");
    let config = read(&text).unwrap();
    let found = config.targets.iter().find(|found| found.name == target).expect("the target");
    assert_eq!(found.get(keyword), want, "{text}");
}

#[test]
fn prefixes_and_suffixes_are_put_around_what_a_target_says() {
    check("Legend1[^]: a\nLegend1[$]: b\nLegend1[X]: x\n", "x", "legend1", Some("a x b"));
    check("Legend1[_]: d\nLegend1[^]: a\nPageTop[x]: p\n", "x", "legend1", Some("d"));
    check("Legend1[_]: d\nLegend1[^]: a\nLegend1[x]: x\n", "x", "legend1", Some("a x"));
    check("Legend1[^]: a\nPageTop[x]: p\n", "x", "legend1", Some("a "));
    check("NoSpaceChar: ~\nLegend1[^]: a~\nLegend1[$]: ~b\nLegend1[x]: x\n", "x", "legend1", Some("axb"));
    check("Legend1[_]: d\nLegend1[x]:\n", "x", "legend1", Some(""));
}

#[test]
fn settings_for_all_count_from_the_line_of_the_first_mention() {
    check("PageTop[x]: p\nLegend1[^]: a\nLegend1[x]: x\n", "x", "legend1", Some("x"));
    check("Legend1[^]: a\nPageTop[x]: p\nLegend1[^]:\nLegend1[x]: x\n", "x", "legend1", Some("a x"));
    check("Legend1[_]: a\nLegend1[_]:\nPageTop[x]: p\n", "x", "legend1", None);
}

/// The words of Debian's mrtg for each.
#[test]
fn faults_are_those_of_mrtg_with_their_lines() {
    let target = "Target[a]: `x`\nMaxBytes[a]: 100\nTitle[a]: t\n";
    let check = |text: &str, want: &str| {
        let said = read(text).expect_err(text);
        assert!(said.contains(want), "{text}: {said}");
    };
    check("Foo: bar\n", "3: CFG Error Unknown Option \"foo\" in file x.cfg on line 3");
    check(&format!("{target}Foo[a]: x\n"), "6: CFG Error Unknown Option \"foo\"");
    check(
        &format!("{target}Title[a]: again\n"),
        "6: Line 6 (Title[a]: again) in CFG file (x.cfg)\ncontains a duplicate definition for title[a].\n\
         First definition is on line 5",
    );
    check("Target[a]: `x`\nMaxBytes[a]: 1\n", "\"Title[a]\" not specified");
    check("Target[a]: `x`\nTitle[a]: 1\n", "\"MaxBytes[a]\" not specified");
    check("MaxBytes[a]: 1\nTitle[a]: 1\n", "I can't find a \"target[a]\" definition");
    check(
        "Target[a]: `x`\nMaxBytes[a]: 0\nTitle[a]: 1\n",
        "4: CFG Error in \"maxbytes[a]\", file x.cfg line 4: 0 must be a Number bigger than 0",
    );
    check(&format!("{target}Options[a]: gauge, foo\n"), "6: Option[a]: \"foo\" is unknown");
    check(&format!("{target}AbsMax[a]: 50\n"), "6: AbsMax: 50 is smaller than MaxBytes: 100");
    check(&format!("{target}Colours[a]: GREEN\n"), "\"colours[a]\" for colour definition");
    check("LogFormat: foo\n", "Invalid Logformat 'foo'");
    check("14all*foo[b]: x\n14all*foo[b]: y\n", "contains a duplicate definition for 14all*foo[b].");
    let mut none = |_: &str| Err(String::new());
    let said = parse("x", b"LogDir: /tmp\n", &mut none).unwrap_err();
    assert_eq!(said[0].text, "\"WorkDir\" not specified in mrtg config file");
}

#[test]
fn keywords_of_front_ends_and_repeated_globals_are_taken() {
    let config = read(
        "routers.cgi*Foo[a]: x\n14all*bar: y\nInterval: 10\nInterval: 20\nTarget[a]: `x`\nMaxBytes1[a]: 1\n\
         MaxBytes2[a]: 2\nTitle[a]:\n",
    );
    let config = config.unwrap();
    assert_eq!(config.get("interval"), Some("20"));
    assert_eq!(
        config.targets[0].settings.keys().map(|keyword| &**keyword).collect::<Vec<_>>(),
        ["maxbytes1", "maxbytes2", "target", "title"]
    );
}
