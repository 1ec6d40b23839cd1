//! The message for parts of Roundel that a build does not contain.

/// Returns the refusal of `subject` (a command, a section, a format) by a build without the cargo feature `feature`.
pub fn missing(subject: &str, feature: &str) -> String {
    format!(
        "{subject}: this build lacks the feature \"{feature}\"; the Debian packages have it, and so has the build by \
         make run FEATURES=full"
    )
}

#[cfg(test)]
mod tests {
    use super::missing;

    #[test]
    fn a_missing_feature_is_named_with_the_build_that_has_it() {
        let text = missing("mount", "mount");
        assert!(text.starts_with("mount: this build lacks the feature \"mount\""), "{text}");
        assert!(text.ends_with("make run FEATURES=full") && !text.contains('\n'), "{text}");
    }
}
