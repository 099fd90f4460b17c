//! Constraints that are not JSON: regular expressions, choices and grammars.

use assay_constrain::{Constraint, ConstraintError, Shape};
use serde_json::{Value, json};

use crate::vocabulary::{Walk, factory, vocabulary, walk};

/// Each text in `accepted` is complete, each in `refused` is not, whether spelt in bytes or pieces.
fn check_texts(name: &str, constraint: &Constraint, accepted: &[&str], refused: &[&str]) {
    let vocabulary = vocabulary();
    for (texts, is_accepted) in [(accepted, true), (refused, false)] {
        for text in texts {
            let bytes: Vec<u32> = text.bytes().map(u32::from).collect();
            for token_ids in [bytes, vocabulary.encode(text.as_bytes())] {
                let outcome = walk(constraint, &token_ids);
                assert_eq!(
                    outcome == Walk::Complete,
                    is_accepted,
                    "{name}: {text:?} as {token_ids:?}: {outcome:?}"
                );
            }
        }
    }
}

#[test]
fn a_regular_expression_matches_the_whole_reply() {
    let cases: [(&str, &[&str], &[&str]); 9] = [
        ("[0-9]{2,3}", &["12", "123"], &["1", "1234", "a12", "12a"]),
        ("^[0-9]+$", &["7", "123"], &["", "x7", "7\n"]),
        ("^a|b$", &["a", "b"], &["ab", "xb", "c"]),
        (r"a/b\\c", &[r"a/b\c"], &["a/b", r"a/b\\c"]),
        ("(?i:yes|no)", &["YES", "no", "Yes"], &["maybe", "yesno"]),
        ("[а-я]+", &["привет"], &["Привет", "hello"]),
        ("(a|b)*", &["", "abba"], &["abc"]),
        ("a\nb", &["a\nb"], &["ab", "a b"]),
        (r#"say "\w+""#, &[r#"say "hi""#], &["say hi", r#"say """#]),
    ];
    for (regex, accepted, refused) in cases {
        let constraint = factory()
            .compile_regex(regex)
            .unwrap_or_else(|error| panic!("{regex}: {error}"));
        check_texts(regex, &constraint, accepted, refused);
    }
}

#[test]
fn a_choice_is_one_of_its_options() {
    let options = |options: &[&str]| -> Vec<String> {
        options.iter().map(|&option| option.to_owned()).collect()
    };
    let cases: [(&[&str], &[&str]); 4] = [
        (&["yes", "no", "yes"], &["ye", "yesno", "", "maybe"]),
        (&["1", "11", "111"], &["", "1111", "2"]),
        (
            &["a\"b", "c\\d", "e\nf", "g\u{7f}h", "i/j"],
            &["ab", "c\\\\d", "e", "gh"],
        ),
        (
            &["Müller", "中", "🙂", " leading", "<|im_end|>"],
            &["Muller", "leading", "<|"],
        ),
    ];
    for (accepted, refused) in cases {
        let constraint = factory()
            .compile_choice(&options(accepted))
            .unwrap_or_else(|error| panic!("{accepted:?}: {error}"));
        check_texts(&format!("{accepted:?}"), &constraint, accepted, refused);
    }
    let many: Vec<String> = (0..4_096)
        .map(|number| format!("option {number}"))
        .collect();
    let constraint = factory()
        .compile_choice(&many)
        .expect("as many as are allowed");
    check_texts(
        "many",
        &constraint,
        &["option 0", "option 4095"],
        &["option", "option 4096"],
    );
}

#[test]
fn a_grammar_derives_the_whole_reply() {
    let arithmetic = r#"
        // sums of products
        start: sum
        sum: product ("+" product)*
        product: atom ("*" atom)*
        atom: INT | "(" sum ")"
        %import common.INT
        %ignore / +/
    "#;
    let constraint = factory()
        .compile_grammar(arithmetic)
        .unwrap_or_else(|error| panic!("{error}"));
    check_texts(
        "arithmetic",
        &constraint,
        &["1", "1+2*3", "(1+2)*3", "1 + 2"],
        &["", "1+", "(1", "1a", "1)"],
    );
    let optional = "start: \"a\" [\"b\"] \"<%c>\"";
    let constraint = factory()
        .compile_grammar(optional)
        .unwrap_or_else(|error| panic!("{error}"));
    check_texts(
        "optional",
        &constraint,
        &["a<%c>", "ab<%c>"],
        &["a", "abb<%c>"],
    );
}

type Compiled = Result<Constraint, ConstraintError>;

#[test]
fn what_is_not_enforced_in_full_is_refused_by_name() {
    for (text, reason) in [
        ("", "empty text"),
        ("(", "unclosed group (character 1)"),
        (r"abc\", "escape sequence"),
        ("a{3,1}", "repetition"),
        (r"a(?=b)", "look-around"),
        (r"\bword\b", "it cannot be enforced"),
        ("a^b", "it cannot be enforced"),
        ("a(?P<stop>b)", "a group named `stop`"),
        (&"a".repeat(16_385), "16385 bytes"),
    ] {
        check_refused(text, factory().compile_regex(text), reason);
    }
    for (grammar, reason) in [
        ("", "it cannot be enforced"),
        ("a: \"b\"", "it cannot be enforced"),
        ("start: missing", "it cannot be enforced"),
        ("start[temperature=0.5]: \"a\"", "`[temperature=0.5]`"),
        ("start: a\na [capture] : \"a\"", "`[capture]`"),
        ("start: <|im_end|>", "special token"),
        ("start: /a\n\"/ <[1]> \"b\"", "over several lines"),
        ("start: /a\\\n/ <[1]>", "over several lines"),
        ("start: @other", "another grammar"),
        ("start: %json {\"type\": \"null\"}", "`%json`"),
        ("%llguidance {}\nstart: \"a\"", "`%llguidance`"),
        ("start: /a(?P<stop>b)/", "a group named `stop`"),
        (&"x".repeat(65_537), "65537 bytes"),
    ] {
        check_refused(grammar, factory().compile_grammar(grammar), reason);
    }
    let long = vec!["x".repeat(1 << 17); 3];
    for (options, reason) in [
        (vec![], "no option"),
        (vec![String::new()], "an option is empty"),
        (vec!["a".to_owned(); 4_097], "more than 4096"),
        (long, "bytes"),
    ] {
        check_refused("choice", factory().compile_choice(&options), reason);
    }
}

fn check_refused(name: &str, compiled: Compiled, reason: &str) {
    let name: String = name.chars().take(60).collect();
    let error = match compiled {
        Ok(_) => panic!("{name}: compiled"),
        Err(error) => error,
    };
    assert!(error.is_callers_fault(), "{name}: {error}");
    assert!(error.to_string().contains(reason), "{name}: {error}");
}

#[test]
fn sources_of_the_same_text_do_not_mix() {
    let factory = factory();
    let text = "\"1\"";
    let regex = factory.compile_regex(text).expect("a regex");
    let choice = factory
        .compile_choice(&[text.to_owned()])
        .expect("a choice");
    let grammar = factory
        .compile_grammar(&format!("start: {text}"))
        .expect("a grammar");
    for _ in 0..2 {
        check_texts("regex", &regex, &[text], &["1"]);
        check_texts("choice", &choice, &[text], &["1"]);
        check_texts("grammar", &grammar, &["1"], &[text]);
    }
}

/// Frames around values with schemas, as calls of tools are.
#[test]
fn a_shape_is_its_parts_in_order() {
    let literal = |text: &str| Shape::Literal(text.to_owned());
    let json = |schema: Value| Shape::Json {
        schema,
        path: String::new(),
    };
    let call = |name: &str, schema: Value| {
        Shape::Sequence(vec![
            literal(&format!("<c>{{\"name\": \"{name}\", \"arguments\": ")),
            json(schema),
            literal("}</c>"),
        ])
    };
    let either = Shape::Choice(vec![
        call(
            "f",
            json!({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": false}),
        ),
        call("g", json!({"enum": [{}, {"b": "é"}]})),
    ]);
    let several = Shape::Repeated {
        shape: Box::new(either.clone()),
        separator: "\n".to_owned(),
    };
    let tags = Shape::Sequence(vec![
        literal("<f>"),
        Shape::Optional(Box::new(Shape::Sequence(vec![
            literal("<p>"),
            Shape::TextUntil("</p>".to_owned()),
        ]))),
        literal("</f>"),
    ]);
    let cases: [(&Shape, &[&str], &[&str]); 3] = [
        (
            &either,
            &[
                "<c>{\"name\": \"f\", \"arguments\": {\"a\": -12}}</c>",
                "<c>{\"name\": \"g\", \"arguments\": {}}</c>",
                "<c>{\"name\": \"g\", \"arguments\": {\"b\": \"é\"}}</c>",
            ],
            &[
                "<c>{\"name\": \"f\", \"arguments\": {}}</c>",
                "<c>{\"name\": \"f\", \"arguments\": {\"a\": 1.5}}</c>",
                "<c>{\"name\": \"h\", \"arguments\": {}}</c>",
                "<c>{\"name\": \"g\", \"arguments\": {}}",
                "<c>{\"name\": \"g\", \"arguments\": {}}</c>\n<c>{\"name\": \"g\", \"arguments\": {}}</c>",
                "text",
                "",
            ],
        ),
        (
            &several,
            &[
                "<c>{\"name\": \"g\", \"arguments\": {}}</c>",
                "<c>{\"name\": \"g\", \"arguments\": {}}</c>\n<c>{\"name\": \"f\", \"arguments\": {\"a\":0}}</c>",
            ],
            &["<c>{\"name\": \"g\", \"arguments\": {}}</c>\n", ""],
        ),
        (
            &tags,
            &["<f></f>", "<f><p></p></f>", "<f><p>1 < 2 </ p> é\n</p></f>"],
            &[
                "<f><p>x</f>",
                "<f><p>x</p>",
                "<f>x</f>",
                "<f><p>x</p>y</p></f>",
            ],
        ),
    ];
    for (shape, accepted, refused) in cases {
        let constraint = factory()
            .compile_shape(shape)
            .unwrap_or_else(|error| panic!("{shape:?}: {error}"));
        check_texts("shape", &constraint, accepted, refused);
    }
}

#[test]
fn a_schema_in_a_shape_is_refused_by_its_path() {
    let shape = Shape::Json {
        schema: json!({"properties": {"a": {"not": {}}}}),
        path: "tools[1].function.parameters".to_owned(),
    };
    let error = factory().compile_shape(&shape).expect_err("no grammar");
    assert_eq!(error.path(), "tools[1].function.parameters.properties.a");
}
