use super::*;
use crate::presets::Preset;

fn mrtg(rrds: u32, pages_per_rrd: f64) -> Setup {
    Setup {
        geometry: Preset::Mrtg.geometry(),
        rrds,
        cache_pages: (f64::from(rrds) * pages_per_rrd) as u64,
        policy: Policy::Lru,
        readahead: 1,
        batch: 1,
        passes: 0,
        seed: 7,
    }
}

fn faults(setup: &Setup) -> f64 {
    setup.run(&mut |_| true).unwrap().faults
}

#[test]
fn the_table_of_the_reconstruction() {
    let want =
        [(0.5, 3.32, 0.02), (4.2, 0.83, 0.02), (5.2, 0.34, 0.03), (7.2, 0.041, 0.1), (9.5, 0.017, 0.15)];
    for (pages, faults_wanted, tolerance) in want {
        let got = faults(&mrtg(2_000, pages));
        assert!((got / faults_wanted - 1.0).abs() < tolerance, "{pages}: {got} and not {faults_wanted}");
    }
}

#[test]
fn far_from_the_edges_it_is_the_staircase() {
    for preset in Preset::ALL {
        let geometry = preset.geometry();
        // Nothing stays.
        let setup = Setup { geometry: geometry.clone(), ..mrtg(500, 0.3) };
        let (got, want) = (faults(&setup), geometry.faults_cold());
        assert!((got / want - 1.0).abs() < 0.05, "{preset:?}: {got} and not {want}");
        // All that is written stays, and its predecessors do not.
        let levels = geometry.staircase(1);
        // Beyond the last step's edge, which the formula for LRU has at 1.15 for MRTG and Cacti, and before whole rings stay, which for collectd
        // begins at 1.15.
        let beyond = if preset == Preset::Collectd { 1.15 } else { 1.3 };
        let pages = beyond * levels.last().unwrap().pages_per_rrd as f64;
        let setup = Setup { cache_pages: (500.0 * pages) as u64, passes: 576, ..setup };
        let (got, want) = (faults(&setup), geometry.faults_hot());
        assert!((got / want - 1.0).abs() < 0.5, "{preset:?}: {got} and not {want}");
    }
}

#[test]
fn the_formula_for_lru_agrees() {
    for preset in [Preset::Mrtg, Preset::Cacti, Preset::LibreNms] {
        let geometry = preset.geometry();
        for batch in [1, 12] {
            for pages in [0.5, 2.5, 4.5, 6.6, 8.6, 11.0] {
                let setup = Setup { geometry: geometry.clone(), batch, ..mrtg(1_000, pages) };
                let setup = Setup { cache_pages: (1_000.0 * pages) as u64, ..setup };
                let (got, want) = (faults(&setup), geometry.faults_in_lru(pages, batch));
                let near = (got - want).abs() < 0.15 * want.max(0.04);
                assert!(near, "{preset:?}, batch {batch}, {pages} pages: {got}, by the formula {want}");
            }
        }
    }
}

#[test]
fn batches_write_less() {
    for (batch, want) in [(1, 3.42), (3, 1.43), (6, 0.93), (12, 0.52), (24, 0.31), (288, 0.041)] {
        let setup = Setup { batch, passes: 288 / batch.min(288) * 2, ..mrtg(300, 0.5) };
        let writes = setup.run(&mut |_| true).unwrap().writes;
        assert!((writes / want - 1.0).abs() < 0.06, "{batch}: {writes} and not {want}");
    }
}

#[test]
fn a_seed_says_all() {
    let run = |seed| mrtg_with_seed(seed).run(&mut |_| true).unwrap();
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

fn mrtg_with_seed(seed: u64) -> Setup {
    Setup { seed, ..mrtg(300, 4.2) }
}

#[test]
fn readahead_drags_in_whole_files() {
    // Room for 12 pages of each, which is enough without readahead; with it, 26 are needed.
    let setup = Setup { readahead: 32, ..mrtg(500, 12.0) };
    let outcome = setup.run(&mut |_| true).unwrap();
    assert!(outcome.faults > 0.9 && outcome.pages_read > 15.0, "{outcome:?}");
    let roomy = Setup { cache_pages: 500 * 27, ..setup };
    assert_eq!(roomy.run(&mut |_| true).unwrap().faults, 0.0);
}

#[test]
fn linux_keeps_what_is_touched_again() {
    for pages in [0.5, 12.0, 26.0] {
        let lru = faults(&mrtg(500, pages));
        let linux = faults(&Setup { policy: Policy::Linux { random_advice: false }, ..mrtg(500, pages) });
        assert!(linux <= 1.5 * lru + 0.05, "{pages}: {linux}, LRU {lru}");
    }
}

#[test]
fn what_cannot_be_simulated_is_refused() {
    let many = mrtg(u32::MAX, 1.0).run(&mut |_| true).unwrap_err();
    assert!(many.contains("memory"), "{many}");
    assert!(mrtg(0, 1.0).run(&mut |_| true).is_err());
    assert!(mrtg(10, 1.0).run(&mut |done| done < 0.5).is_err());
}

/// Geometries of any shape end, and count no more faults than touches.
#[test]
fn odd_geometries_end() {
    testkit::random::each_seed(60, |seed| {
        let random = &mut testkit::random::Random::new(seed);
        let count = 1 + random.below(5);
        let mut words = vec!["DS:a:GAUGE:600:U:U".to_string(); 1];
        for index in 0..random.below(40) {
            words.push(format!("DS:b{index}:GAUGE:600:U:U"));
        }
        for _ in 0..count {
            words.push(format!("RRA:LAST:0.5:{}:{}", 1 + random.below(400), 1 + random.below(3_000)));
        }
        let geometry = Geometry::parse(60, &words).unwrap();
        let setup = Setup {
            geometry,
            rrds: 1 + random.below(40) as u32,
            cache_pages: random.below(500),
            policy: if random.below(2) == 0 {
                Policy::Lru
            } else {
                Policy::Linux { random_advice: random.below(2) == 0 }
            },
            readahead: random.below(40) as u32,
            batch: random.below(50),
            passes: 1 + random.below(30),
            seed: random.below(u64::MAX),
        };
        let outcome = setup.run(&mut |_| true).unwrap();
        assert!(outcome.faults <= outcome.writes && outcome.pages_read >= outcome.faults, "{outcome:?}");
        let model = setup.geometry.faults_in_lru(1.5, setup.batch);
        assert!(model.is_finite() && model >= 0.0);
    });
}
