use super::*;

fn account(name: &str, read: &[&str], write: &[&str]) -> Account {
    let texts = |patterns: &[&str]| patterns.iter().map(ToString::to_string).collect();
    Account { name: name.to_string(), read: texts(read), write: texts(write), ..Account::default() }
}

#[test]
fn who_has_no_account_may_do_everything_once_it_is_known() {
    let settings =
        AccessSettings { users: vec![account("ann", &["a/**"], &[])], ..AccessSettings::default() };
    let access = Access::new(&settings).unwrap();
    assert!(
        access.of_user("ann").rights.may(::access::Verb::Read, b"a/b")
            && !access.of_user("ann").rights.is_all()
    );
    assert!(access.of_user("bob").rights.is_all());
    assert_eq!(access.of_user("bob").id, access.of_user("bob").id);
    let names = ["x.example".to_string(), "ann".to_string()];
    assert_eq!(access.of_certificate(&names).unwrap().name, "ann");
    assert_eq!(access.of_certificate(&names[..1]).unwrap().name, "x.example");
    assert!(access.of_certificate(&[]).is_none());
    for index in 0..3 * OTHERS_MAX {
        access.of_user(&format!("other-{index}"));
    }
    assert!(access.others.lock().unwrap().len() <= OTHERS_MAX);
}

#[test]
fn programs_on_a_unix_socket_are_known_by_user_and_group() {
    let own = Account { unix_user: Some("4711".to_string()), ..account("own", &["a/**"], &[]) };
    let group = Account { unix_group: Some("root".to_string()), ..account("group", &["b/**"], &[]) };
    let access = Access::of_users(&[own.clone(), group]).unwrap();
    let name = |user, group| access.of_unix(user, group).map(|who| who.name.clone());
    assert_eq!(name(4711, 0).as_deref(), Some("own"));
    assert_eq!(name(1, 0).as_deref(), Some("group"));
    assert_eq!(name(1, 1), None);
    let check = |account: Account, cause: &str| {
        let error = Access::of_users(&[own.clone(), account]).unwrap_err();
        assert!(error.contains(cause), "{error}");
    };
    check(Account { unix_user: Some("no-such-user".to_string()), ..account("x", &[], &[]) }, "no user");
    check(Account { unix_user: Some("4711".to_string()), ..account("x", &[], &[]) }, "the same unix_user");
    check(account("own", &[], &[]), "two of that name");
    check(account("a b", &[], &[]), "cannot use the name");
    check(account("x", &["/a"], &[]), "read \"/a\"");
    check(Account { expires: Some(1), ..account("x", &[], &[]) }, "for tokens");
}

#[test]
fn a_token_counts_until_its_file_says_no() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("tokens");
    let settings = AccessSettings { tokens: Some(path.clone()), ..AccessSettings::default() };
    let access = Access::new(&settings).unwrap();
    assert!(!access.has_tokens() && access.of_token(b"secret").is_none());
    let write = |tokens: &[(&str, &str)]| {
        let mut all = ::access::Tokens::default();
        for (name, token) in tokens {
            let sha256 = TokenHash::of(token.as_bytes()).map(|hash| hash.text());
            all.add(Account { sha256, ..account(name, &["**"], &[]) }).unwrap();
        }
        std::fs::write(&path, all.text().unwrap()).unwrap();
        access.tokens.as_ref().unwrap().expire();
    };
    write(&[("ann", "secret"), ("bob", "other")]);
    let ann = access.of_token(b"secret").unwrap();
    assert!(access.has_tokens() && access.is_known(&ann) && Access::can_change(&ann));
    assert_eq!((ann.name.as_str(), access.of_token(b"secret").unwrap().id), ("ann", ann.id));
    assert!(access.of_token(b"").is_none() && access.of_token(&vec![b'x'; 1 << 20]).is_none());
    // A file that cannot be used changes nothing.
    std::fs::write(&path, "[[token]]\nnam").unwrap();
    access.tokens.as_ref().unwrap().expire();
    assert!(access.is_known(&ann));
    write(&[("bob", "other")]);
    assert!(!access.is_known(&ann) && access.of_token(b"secret").is_none());
    assert!(access.of_token(b"other").is_some());
    std::fs::remove_file(&path).unwrap();
    access.tokens.as_ref().unwrap().expire();
    assert!(access.of_token(b"other").is_none());
}

#[test]
fn those_who_do_not_operate_lack_what_concerns_all() {
    let some = Principal::new("ann", Origin::User, Rights::new(&account("ann", &["**"], &["**"])).unwrap());
    let allowed = some.commands(Permissions::ALL);
    assert!(allowed.allow(Verb::Update) && allowed.allow(Verb::Create) && !allowed.allow(Verb::Stats));
    assert!(!some.commands(Permissions::parse("PING").unwrap()).allow(Verb::Update));
    let nothing = Principal::without_rights().commands(Permissions::ALL);
    assert!(nothing.allow(Verb::Auth) && nothing.allow(Verb::Help) && !nothing.allow(Verb::Ping));
    assert!(Principal::everyone().commands(Permissions::ALL).allow(Verb::Trash));
}
