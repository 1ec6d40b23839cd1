//! The sections `[[metric]]`: what RRDs are called as metrics.

use suggest::{MetricRule, MetricRules};
use toml::Spanned;

use super::{ConfigError, Reader, line_of};

/// More would make each listing of names slow: an RRD is compared with one rule after the other.
const RULES_MAX: usize = 1000;

impl Reader<'_> {
    /// The rules, each checked alone, so that an error has its line.
    pub(super) fn metrics(&self, given: Vec<Spanned<MetricRule>>) -> Result<MetricRules, ConfigError> {
        let mut rules = MetricRules::default();
        for (index, rule) in given.into_iter().enumerate() {
            let line = line_of(self.text, rule.span().start);
            let cannot = |cause: String| ConfigError(format!("{}:{line}: [[metric]] {cause}", self.source));
            if index == RULES_MAX {
                return Err(cannot(format!("at most {RULES_MAX} rules")));
            }
            let one = MetricRules::new(vec![rule.into_inner()]).map_err(|error| cannot(error.to_string()))?;
            rules = rules.before(one);
        }
        Ok(rules)
    }
}
