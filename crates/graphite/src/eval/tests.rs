//! What targets may take: memory is asked for before it is taken, and the clock is looked at whatever is evaluated.

use rrd::when::calendar::Utc;

use super::*;
use crate::source::SourceSeries;

/// So many series without values, and so much memory for what is made of them.
struct Many {
    count: usize,
    bytes: u64,
    looks: usize,
}

impl Source for Many {
    fn fetch(&mut self, _: &Wanted<'_>) -> Result<Vec<SourceSeries>, SourceError> {
        let name = |index| format!("net.host{index}.load.in");
        let one = |index| SourceSeries { name: name(index), step: 60, ..SourceSeries::default() };
        Ok((0..self.count).map(one).collect())
    }

    fn reserve(&mut self, bytes: u64) -> Result<(), SourceError> {
        self.looks += 1;
        self.bytes = self.bytes.checked_sub(bytes).ok_or("no memory")?;
        Ok(())
    }
}

fn evaluated(many: &mut Many, target: &str) -> Result<Vec<Series>, String> {
    let mut context = Context::new(0, 600, 0.0);
    Evaluator::new(many, &Utc, 600).target(target, &mut context).map_err(|error| error.to_string())
}

fn refusal(count: usize, target: &str) -> String {
    match evaluated(&mut Many { count, bytes: 64 << 20, looks: 0 }, target) {
        Ok(all) => format!("{} series", all.len()),
        Err(error) => error,
    }
}

#[test]
fn memory_of_names_is_asked_for() {
    let long = "x".repeat(30_000);
    let marks = "%".repeat(30_000);
    let groups = r"\1".repeat(15_000);
    let nodes = ",1".repeat(101);
    for (count, target, want) in [
        // The name of the sum is in the name of each part.
        (10_000, "asPercent(scale(a,2))".to_owned(), "no memory"),
        (10_000, "divideSeries(scale(a,2),sumSeries(scale(a,2)))".to_owned(), "no memory"),
        (10_000, format!("alias(a,'{long}')"), "no memory"),
        (10_000, format!("color(a,'{long}')"), "no memory"),
        (1, format!("aliasByNode(a{nodes})"), "at most 100"),
        (1, format!("aliasSub(alias(a,'{long}'),'(.*)','{groups}')"), "more than 65536 bytes"),
        (1, format!("applyByNode(alias(a,'{long}'),0,'{marks}')"), "more than 65536 bytes"),
        (1, format!("applyByNode(alias(a,'{long}'),0,'a','{marks}')"), "more than 65536 bytes"),
    ] {
        let said = refusal(count, &target);
        assert!(said.contains(want), "{}: {said}", &target[..40.min(target.len())]);
    }
    for target in ["asPercent(a)", "alias(a,'x')", "aliasByNode(a,1)", "sumSeries(scale(a,2))"] {
        assert!(
            evaluated(&mut Many { count: 10_000, bytes: 64 << 20, looks: 0 }, target).is_ok(),
            "{target}"
        );
    }
}

#[test]
fn each_part_looks_at_the_clock() {
    let parts = vec!["aliasSub(a,'\\w{9}','')"; 100].join(",");
    let mut many = Many { count: 0, bytes: 0, looks: 0 };
    evaluated(&mut many, &format!("group({parts})")).unwrap();
    assert!(many.looks > 100, "{}", many.looks);
}

#[test]
fn many_groups_take_no_time_of_their_square() {
    for target in ["asPercent(a,None,1)", "reduceSeries(mapSeries(a,1),'sumSeries',3,'in','out')"] {
        assert_eq!(
            evaluated(&mut Many { count: 50_000, bytes: 1 << 30, looks: 0 }, target).unwrap().len(),
            50_000
        );
    }
}
