use super::*;
use crate::mrtg::config;
use crate::mrtg::decimal::Decimal;

fn plan(text: &str) -> MrtgPlan {
    let text = format!("WorkDir: /\nLogFormat: rrdtool\nTitle[_]: t\nMaxBytes[_]: 100\n{text}");
    let mut none = |_: &str| Err(String::new());
    MrtgPlan::new(&config::parse("x", text.as_bytes(), &mut none).unwrap(), &PlanContext::default()).unwrap()
}

#[test]
fn terms_are_shared_by_their_text() {
    let plan = plan(
        "Target[a]: `x`\nTarget[b]: `x` + 1:p@h\nTarget[c]: 1:p@h\nTarget[d]: 1:p@h:::::2\nSnmpOptions[e]: retries=>1\n\
         Target[e]: 1:p@h\n",
    );
    let terms: Vec<_> = plan.targets.iter().map(|target| target.terms.clone()).collect();
    assert_eq!(terms, [vec![0], vec![0, 1], vec![1], vec![2], vec![3]]);
    assert_eq!(plan.describe_users(&[0]), "target[a], target[b]");
    assert_eq!(plan.describe_users(&[0, 1, 2, 3]), "target[a], target[b], target[c] and 2 more");
}

#[test]
fn rrds_are_those_of_mrtg() {
    let plan = plan(
        "Interval: 1:40\nTarget[A]: `x`\nMaxBytes[a]: 1000\nDirectory[a]: Sw/1/\nTarget[b]: `x`\nOptions[b]: gauge, absolute\n\
         AbsMax[b]: 500\nMaxBytes2[c]: 7\nTarget[c]: `x`\nOptions[c]: derive growright\nRRDRowCount[c]: 5\n\
         RRDHWRRAs[c]: RRA:HWPREDICT:1440:0.1:0.0035:288\n",
    );
    let shown = |index: usize| {
        let target = &plan.targets[index];
        let spec = plan.inventory.spec(target.rrd);
        format!(
            "{} {} {}",
            String::from_utf8_lossy(plan.inventory.name(target.rrd)),
            spec.step,
            spec.create_args().join(" ")
        )
    };
    // As Debian's mrtg called RRDs::create.
    assert_eq!(
        shown(0),
        "Sw/1/a.rrd 99 DS:ds0:COUNTER:600:0:1000 DS:ds1:COUNTER:600:0:1000 RRA:AVERAGE:0.5:1:2400 \
         RRA:AVERAGE:0.5:18:800 RRA:AVERAGE:0.5:72:800 RRA:AVERAGE:0.5:864:800 RRA:MAX:0.5:1:2400 RRA:MAX:0.5:18:800 \
         RRA:MAX:0.5:72:800 RRA:MAX:0.5:864:800"
    );
    assert!(shown(1).starts_with("b.rrd 99 DS:ds0:GAUGE:600:0:500 DS:ds1:GAUGE:600:0:500 "));
    let third = shown(2);
    assert!(
        third.starts_with("c.rrd 99 DS:ds0:DERIVE:600:0:100 DS:ds1:DERIVE:600:0:7 RRA:AVERAGE:0.5:1:5 "),
        "{third}"
    );
    assert!(third.ends_with(" RRA:HWPREDICT:1440:0.1:0.0035:288"), "{third}");
    let third = plan.inventory.spec(plan.targets[2].rrd);
    assert_eq!((third.tunes(), third.max_age()), (true, None));
}

#[test]
fn readings_have_the_values_and_times_of_mrtg() {
    let plan = plan(
        "Target[a]: `x`\nTarget[b]: `x` / `y`\nTarget[c]: `x` / `y`\nOptions[c]: gauge\nTarget[d]: max(`x`)\n\
         Target[e]: `z`\nTarget[f]: 7 * 3\n",
    );
    let number = |text| Operand::Number(Decimal::parse(text).unwrap());
    let answer = |time, input, output| Answer { time, input, output, is_reset: false };
    let answers = [
        answer(100, number("7.5"), number("-9.5")),
        answer(101, number("2"), Operand::Unsigned(3)),
        answer(102, Operand::Unsigned(u64::MAX), Operand::Unknown),
    ];
    let mut readings = Readings::default();
    plan.targets.iter().for_each(|target| plan.push_reading(target, &answers, 110, &mut readings));
    let texts: Vec<String> = readings
        .iter()
        .map(|reading| {
            let mut text = Vec::new();
            readings.push_text(reading, &mut text);
            String::from_utf8(text).unwrap()
        })
        .collect();
    assert_eq!(
        texts,
        [
            "100:8:-10",
            "110:4:-3",
            "110:3.75:-3.166666666666666666666666666666666666667",
            "100:U:U",
            "102:18446744073709551615:U",
            "110:21:21",
        ]
    );
}
