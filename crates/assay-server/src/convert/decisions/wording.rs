//! The words of a question. Its name is not among them.

use assay_api::decisions::{Answers, Item, ItemKind, Question, Readout, Role, State};

/// The words that answer a yes-or-no question.
pub(super) const YES_NO: [&str; 2] = ["Yes", "No"];

/// One answer as the question lists it.
#[derive(Clone, Debug)]
pub(super) struct Listed<'a> {
    /// What is answered: the caller's words, a number or a code.
    pub(super) label: &'a str,
    /// The caller's words, where the label stands for them.
    pub(super) words: Option<&'a str>,
    /// When it applies.
    pub(super) description: Option<&'a str>,
}

impl Listed<'_> {
    fn line(&self) -> String {
        let parts = [Some(self.label), self.words, self.description];
        let parts: Vec<&str> = parts.into_iter().flatten().collect();
        parts.join(": ")
    }
}

/// The text of `question`, its answers `listed` in this order; empty where they are described instead.
pub(super) fn question_text(
    question: &Question,
    listed: &[Listed<'_>],
    readout: Readout,
) -> String {
    let fallback = match &question.answers {
        Answers::YesNo { .. } => "Which applies?",
        Answers::Choice(_) => "Which option applies?",
        Answers::Score(_) => "Which level applies?",
    };
    let mut text = question
        .instructions
        .as_deref()
        .unwrap_or(fallback)
        .to_owned();
    let is_plain_yes_no =
        matches!(question.answers, Answers::YesNo { .. }) && readout == Readout::Label;
    let lines = listed
        .iter()
        .filter(|one| !is_plain_yes_no || one.description.is_some());
    for line in lines.map(Listed::line) {
        text.push('\n');
        text.push_str(&line);
    }
    text.push_str("\n\n");
    if let Some(described) = &question.described {
        return format!("{text}Answer only with {described}.");
    }
    let request = match (&question.answers, readout) {
        (Answers::YesNo { .. }, Readout::Label) => {
            let labels: Vec<&str> = listed.iter().map(|one| one.label).collect();
            format!("Answer only {}.", labels.join(" or "))
        }
        (Answers::Choice(_), Readout::Label) => {
            "Answer only with one option, in its exact words.".to_owned()
        }
        (Answers::YesNo { .. } | Answers::Choice(_), Readout::Code) => {
            "Answer only with the code of one option.".to_owned()
        }
        (Answers::Score(_), _) => "Answer only with the number of one level.".to_owned(),
    };
    text.push_str(&request);
    text
}

/// The state as text: a conversation is written down with its speakers.
pub(crate) fn state_text(state: &State) -> String {
    match state {
        State::Text(text) => text.clone(),
        State::Items(items) => {
            let written: Vec<String> = items.iter().map(item_text).collect();
            written.join("\n\n")
        }
    }
}

fn item_text(item: &Item) -> String {
    let text = &item.text;
    match &item.kind {
        ItemKind::Message(Role::System) => format!("System:\n{text}"),
        ItemKind::Message(Role::Developer) => format!("Developer:\n{text}"),
        ItemKind::Message(Role::User) => format!("User:\n{text}"),
        ItemKind::Message(Role::Assistant) => format!("Assistant:\n{text}"),
        ItemKind::ToolCall(name) => format!("Call of {name}:\n{text}"),
        ItemKind::ToolOutput(name) => format!("Output of {name}:\n{text}"),
    }
}
