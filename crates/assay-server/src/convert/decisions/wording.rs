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
        let parts = [self.words, self.description];
        let said: Vec<&str> = parts.into_iter().flatten().collect();
        let said = said.join(": ");
        let label = self.label;
        match (self.words, self.description) {
            (Some(_), _) => format!("{label}. {said}"),
            (None, Some(_)) => format!("- {label}: {said}"),
            (None, None) => format!("- {label}"),
        }
    }
}

/// The text of `question`, its answers `listed` in this order; none are where the question describes them.
pub(super) fn question_text(
    question: &Question,
    listed: &[Listed<'_>],
    readout: Readout,
) -> String {
    let (fallback, heading) = match &question.answers {
        Answers::YesNo { .. } => ("Which applies?", None),
        Answers::Choice(_) => ("Which option applies?", Some("Options:")),
        Answers::Score(_) => ("Which level applies?", Some("Levels:")),
    };
    let instructions = question.instructions.as_deref().unwrap_or(fallback);
    let mut lines = vec![format!("Question: {instructions}")];
    let is_plain_yes_no =
        matches!(question.answers, Answers::YesNo { .. }) && readout == Readout::Label;
    if !listed.is_empty() {
        lines.extend(heading.map(str::to_owned));
    }
    let shown = listed
        .iter()
        .filter(|one| !is_plain_yes_no || one.description.is_some());
    lines.extend(shown.map(Listed::line));
    let request = match (&question.described, &question.answers, readout) {
        (Some(described), _, _) => format!("Reply with {described} only."),
        (None, Answers::YesNo { .. }, Readout::Label) => {
            let labels: Vec<&str> = listed.iter().map(|one| one.label).collect();
            format!("Reply with {} only.", labels.join(" or "))
        }
        (None, Answers::Choice(_), Readout::Label) => {
            "Reply with one of the options only.".to_owned()
        }
        (None, Answers::YesNo { .. } | Answers::Choice(_), Readout::Code) => {
            "Reply with the code of one option only.".to_owned()
        }
        (None, Answers::Score(_), _) => "Reply with the number of one level only.".to_owned(),
    };
    format!("{}\n\n{request}", lines.join("\n"))
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

/// What stands above the questions.
pub(super) fn above_questions(state: &str) -> String {
    format!("Text: {state}")
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
