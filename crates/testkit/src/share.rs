//! The share of comparisons with a peer that were made.

/// Fewer comparisons, as in a replay of one seed, say nothing about the share.
const FEW: u64 = 100;

/// Counts the comparisons that a test tries and makes. A test cannot compare an answer if its peer crashes; a peer that always
/// crashes must fail the test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    tried: u64,
    made: u64,
}

impl Share {
    /// Adds a comparison that the test tried.
    pub fn add(&mut self, is_made: bool) {
        self.tried += 1;
        self.made += u64::from(is_made);
    }

    /// Adds the comparisons of another count.
    pub fn add_all(&mut self, other: Share) {
        self.tried += other.tried;
        self.made += other.made;
    }

    /// Prints the share, and requires it to be at least `percent`. Of few comparisons, requires a single one.
    ///
    /// # Panics
    /// If fewer comparisons were made.
    pub fn require(self, what: &str, percent: u64) {
        let Share { tried, made } = self;
        println!("{what}: {made} of {tried} compared");
        let least = if tried < FEW { 1 } else { (tried * percent).div_ceil(100) };
        assert!(
            made >= least,
            "{what}: only {made} of {tried} were compared, and at least {least} must be: does the peer work?"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::Share;

    fn share(tried: u64, made: u64) -> Share {
        Share { tried, made }
    }

    #[test]
    fn a_share_is_required_of_many_and_one_of_few() {
        let mut sum = Share::default();
        (0..3).for_each(|number| sum.add(number == 1));
        assert_eq!(sum, share(3, 1));
        sum.require("answers", 50);
        sum.add_all(share(97, 49));
        sum.require("answers", 50);
    }

    #[test]
    #[should_panic(expected = "answers: only 49 of 100 were compared, and at least 50 must be")]
    fn too_small_a_share_fails() {
        share(100, 49).require("answers", 50);
    }

    #[test]
    #[should_panic(expected = "answers: only 0 of 0 were compared")]
    fn nothing_fails() {
        Share::default().require("answers", 50);
    }
}
