//! Receipts of the real models: made with eight requests in flight, computed again on the scalar instruction set.

use serde_json::{Value, json};

use crate::binary::{assay, output};
use crate::receipts::check;
use crate::serving::Serving;

/// Eight requests at once; what the scalar set computes again is short, as it is slow.
fn check_receipts(model: &str) {
    let server = Serving::start(&["--model", model, "--receipts"]);
    let replies: Vec<Value> = std::thread::scope(|scope| {
        let asked = (0..8).map(|number| {
            let server = &server;
            let (path, body) = match number {
                0 => (
                    "/v1/completions",
                    json!({"prompt": "Once upon", "max_tokens": 5, "seed": 4, "n": 2}),
                ),
                1 => (
                    "/v1/decisions",
                    json!({"input": "Refund!", "questions": [{"type": "predicate", "instructions": "Money?"}]}),
                ),
                _ => (
                    "/v1/completions",
                    json!({"prompt": format!("{number}, and then").repeat(20), "max_tokens": 20}),
                ),
            };
            scope.spawn(move || server.ask(path, &body).expect("an answer"))
        });
        let asked: Vec<_> = asked.collect();
        asked
            .into_iter()
            .map(|one| one.join().expect("asked"))
            .collect()
    });
    drop(server);
    for reply in &replies[..2] {
        let mut command = assay(&["replay", "-", "--model", model, "--threads", "1"]);
        command.env("ASSAY_ISA", "scalar");
        check(&output(command, &reply.to_string()), 0, "identical: ");
    }
}

#[test]
fn smollm2_receipts_are_identical_on_the_scalar_set_and_one_thread() {
    check_receipts("smollm2-135m-instruct");
}

#[test]
fn gemma3_receipts_are_identical_on_the_scalar_set_and_one_thread() {
    check_receipts("gemma-3-270m");
}
