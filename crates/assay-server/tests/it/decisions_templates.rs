//! Decisions of models without a chat template, and of those whose template is of no use.

use axum::http::StatusCode;
use serde_json::{Value, json};

use crate::completions::list;
use crate::decisions::{
    DECISIONS, STATE, SYSTEM_ONE, choice_of, decide, echoed_sum, openai_teams, system_one, teams,
};
use crate::vocab;
use crate::world::{Setup, with};

#[tokio::test]
async fn d4_a_base_model_is_asked_in_plain_text() {
    let world = Setup {
        template: None,
        ..Setup::default()
    }
    .build();
    let body = with(
        system_one(json!({"team": teams()})),
        json!({"diagnostics": true}),
    );
    let reply = decide(&world, SYSTEM_ONE, &body).await;
    let text = format!(
        "Text: {STATE}\n\nQuestion: Which team?\nOptions:\n- Billing: Payments, refunds\n- Tech\n- 1\n- 11\n\nReply with one of the options only.\nAnswer:"
    );
    let answer = &reply["answers"]["team"];
    let prompt = vocab::encode(text.as_bytes());
    assert_eq!(
        answer["x_diagnostics"]["prompt_tokens"],
        json!(prompt.len())
    );
    for label in list(&answer["x_diagnostics"]["labels"]) {
        let words = format!(" {}", label["label"].as_str().expect("text"));
        assert_eq!(label["token_ids"], json!(vocab::encode(words.as_bytes())));
        // Every token that begins with a line feed ends a label: the byte and the doubled one.
        let steps = list(&label["logprobs"]);
        let mut end = 0.0;
        for end_token in [u32::from(b'\n'), 256 + 5] {
            let path = [&vocab::encode(words.as_bytes())[..], &[end_token]].concat();
            let whole = echoed_sum(&world, &prompt, &path).await;
            let before = echoed_sum(&world, &prompt, &path[..path.len() - 1]).await;
            end += (whole - before).exp();
        }
        let found = steps.last().and_then(Value::as_f64).expect("an end");
        assert!((found - end.ln()).abs() < 1e-9, "{found} {}", end.ln());
    }
    // Two options that a line break tells apart cannot be.
    let broken = choice_of(&[("a\nb", None), ("c", None)]);
    let answer = world
        .post_to(SYSTEM_ONE, &system_one(json!({"q": broken})))
        .await;
    let errors = answer
        .expect_status(StatusCode::UNPROCESSABLE_ENTITY)
        .json();
    assert_eq!(
        errors["detail"][0]["loc"],
        json!(["body", "questions", "q", "criteria", "a\nb"])
    );
}

#[tokio::test]
async fn d5_a_template_that_leaves_a_block_of_thoughts_open_is_refused() {
    let thinking = "{% for m in messages %}{{ m.content }}\n{% endfor %}{% if add_generation_prompt %}<|go|><think>\n\
        {% if not enable_thinking and closes is not defined %}%CLOSE%{% endif %}{% endif %}";
    let build = |close: &str| {
        let template: &'static str = Box::leak(thinking.replace("%CLOSE%", close).into_boxed_str());
        Setup {
            template: Some(template),
            ..Setup::default()
        }
        .build()
    };
    let body = system_one(json!({"team": teams()}));
    let answer = build("").post_to(SYSTEM_ONE, &body).await;
    let error = answer.expect_status(StatusCode::BAD_REQUEST).json();
    let message = error["detail"]["message"].as_str().expect("a message");
    assert!(message.contains("<think>"), "{message}");
    let open = build("")
        .post_to(
            DECISIONS,
            &json!({"input": "x", "questions": [openai_teams()]}),
        )
        .await;
    assert_eq!(
        open.error(StatusCode::BAD_REQUEST)["code"],
        "model_not_askable"
    );
    decide(&build("</think>\n"), SYSTEM_ONE, &body).await;
}
