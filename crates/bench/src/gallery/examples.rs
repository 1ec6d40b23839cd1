//! The examples: a text file, so that an argument list can be read and changed as one.

use crate::Outcome;

/// One graph.
#[derive(Debug, PartialEq)]
pub struct Example {
    /// The chapter it stands in.
    pub chapter: String,
    /// Its title.
    pub title: String,
    /// What to look at.
    pub note: String,
    /// Whether only Roundel knows its options.
    pub only_ours: bool,
    /// `PNG` or another of `--imgformat`.
    pub format: String,
    /// The arguments after the file name.
    pub arguments: Vec<String>,
}

/// Every example of the gallery.
pub fn all() -> Outcome<Vec<Example>> {
    parse(include_str!("examples.txt"))
}

/// Reads the form that the head of `examples.txt` describes.
fn parse(text: &str) -> Outcome<Vec<Example>> {
    let mut chapter = String::new();
    let mut examples: Vec<Example> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if let Some(title) = line.strip_prefix("## ") {
            chapter = title.to_string();
        } else if let Some(title) = line.strip_prefix("== ") {
            examples.push(Example {
                chapter: chapter.clone(),
                title: title.to_string(),
                note: String::new(),
                only_ours: false,
                format: "PNG".to_string(),
                arguments: Vec::new(),
            });
        } else if line.is_empty() {
            // Arguments of an example never are.
        } else if let Some(example) = examples.last_mut() {
            if let Some(note) = line.strip_prefix("-- ") {
                example.note = note.to_string();
            } else if line == "@ours" {
                example.only_ours = true;
            } else if let Some(format) = line.strip_prefix("@format ") {
                example.format = format.to_string();
                example.arguments.extend(["--imgformat".to_string(), format.to_string()]);
            } else if line.starts_with('@') {
                return Err(format!("examples.txt:{}: {line}?", number + 1).into());
            } else {
                example.arguments.push(line.to_string());
            }
        }
    }
    Ok(examples)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_has_a_chapter_arguments_and_its_own_title() {
        let examples = all().unwrap();
        assert!(examples.len() > 30);
        for example in &examples {
            assert!(!example.chapter.is_empty() && !example.arguments.is_empty(), "{example:?}");
            assert!(example.arguments.iter().any(|argument| argument.starts_with("DEF:")), "{example:?}");
        }
    }

    #[test]
    fn arguments_are_taken_as_they_are() {
        let text = "what a head says\n## A\n== b\n-- look\n@format SVG\n-t\n a \"b\" \\l\n@ours\n\n== c\nx\n";
        let examples = parse(text).unwrap();
        assert_eq!(examples.len(), 2);
        assert_eq!(examples[0].arguments, ["--imgformat", "SVG", "-t", " a \"b\" \\l"]);
        assert!(examples[0].only_ours && examples[0].note == "look" && examples[0].format == "SVG");
        assert_eq!((examples[1].chapter.as_str(), examples[1].title.as_str()), ("A", "c"));
        assert!(parse("== a\n@what\n").is_err());
    }
}
