use super::*;

fn account(name: &str, token: &str) -> Account {
    let sha256 = TokenHash::of(token.as_bytes()).map(|hash| hash.text());
    Account { name: name.to_string(), sha256, read: vec!["**".to_string()], ..Account::default() }
}

#[test]
fn a_token_is_found_by_what_a_client_gives_until_it_ends() {
    let mut tokens = Tokens::default();
    tokens.add(account("ann", "one")).unwrap();
    tokens.add(Account { expires: Some(100), ..account("bob", "two") }).unwrap();
    tokens.add(account("eve", "three")).unwrap();
    let tokens = Tokens::parse(&tokens.text().unwrap()).unwrap();
    let find = |tokens: &Tokens, token: &str, now: i64| {
        let hash = TokenHash::of(token.as_bytes())?;
        tokens.find(&hash, now).map(|account| account.name.clone())
    };
    assert_eq!(find(&tokens, "one", 1000).as_deref(), Some("ann"));
    assert_eq!(find(&tokens, "two", 99).as_deref(), Some("bob"));
    assert_eq!(find(&tokens, "two", 100), None);
    assert_eq!(find(&tokens, "", 0), None);
    assert_eq!(find(&tokens, &"x".repeat(1_000_000), 0), None);
    let mut fewer = tokens.clone();
    assert!(fewer.revoke("ann") && !fewer.revoke("ann"));
    assert_eq!([find(&fewer, "one", 0), find(&fewer, "three", 0)], [None, Some("eve".to_string())]);
    assert_eq!(fewer.accounts().len(), 2);
}

#[test]
fn files_that_cannot_be_used_say_why() {
    let hash = TokenHash::of(b"one").unwrap().text();
    for (text, cause) in [
        ("[[token]]\nname = \"a b\"\nsha256 = \"HASH\"".to_string(), "cannot use the name"),
        ("[[token]]\nname = \"a\"\nsha256 = \"12\"".to_string(), "64 hexadecimal digits"),
        ("[[token]]\nname = \"a\"".to_string(), "64 hexadecimal digits"),
        ("[[token]]\nname = \"a\"\nsha256 = \"HASH\"\nread = [\"/a\"]".to_string(), "single slashes"),
        ("[[token]]\nname = \"a\"\nsha256 = \"HASH\"\nreed = [\"a\"]".to_string(), "unknown field"),
        ("[[token]]\nname = \"a\"\nsha256 = \"HASH\"\nunix_user = \"b\"".to_string(), "[[access.user]]"),
        ("[[token]]\nname = \"a\"\nsha256 = \"HASH\"\n".repeat(2), "one of that name"),
        (
            "[[token]]\nname = \"a\"\nsha256 = \"HASH\"\n[[token]]\nname = \"b\"\nsha256 = \"HASH\""
                .to_string(),
            "the same hash",
        ),
    ] {
        let error = Tokens::parse(&text.replace("HASH", &hash)).unwrap_err();
        assert!(error.contains(cause), "{text}: {error}");
    }
    assert!(Tokens::parse("").unwrap().accounts().is_empty());
}

#[test]
fn new_tokens_are_texts_that_need_no_quotes() {
    let text = token_text(&[0xfb; 32]);
    assert!(text.starts_with("rdl_") && text.len() == 47, "{text}");
    assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)));
}
