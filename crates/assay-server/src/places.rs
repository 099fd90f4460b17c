//! Places for work on the model's words, which runs on threads of its own and takes as long as its text is long.

use std::sync::Arc;

use assay_api::openai::{ReplyForm, ResponseFormat, Tools};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Of each kind at once; more would only fight for the engine's cores.
const NUM_AT_ONCE: usize = 2;

/// What is done for a request beside the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextWork {
    /// Rendering and tokenising: milliseconds.
    Words,
    /// A grammar to compile besides: at most seconds.
    Grammar,
    /// A receipt to compute again: as long as its reply took.
    Replay,
}

impl TextWork {
    /// What a reply of this form, which may call `tools`, takes.
    pub(crate) fn of(form: &ReplyForm, tools: Option<&Tools>) -> Self {
        let calls = tools.is_some_and(|tools| !tools.tools.is_empty());
        if calls || form.format != ResponseFormat::Text {
            Self::Grammar
        } else {
            Self::Words
        }
    }
}

/// The places. Each kind of work has its own, so that grammars and replays never keep words waiting.
#[derive(Debug)]
pub(crate) struct TextPlaces {
    words: Arc<Semaphore>,
    grammars: Arc<Semaphore>,
    replays: Arc<Semaphore>,
}

impl TextPlaces {
    pub(crate) fn new() -> Self {
        Self {
            words: Arc::new(Semaphore::new(NUM_AT_ONCE)),
            grammars: Arc::new(Semaphore::new(NUM_AT_ONCE)),
            replays: Arc::new(Semaphore::new(NUM_AT_ONCE)),
        }
    }

    /// Waits for a place; the work ends when what it gets is dropped.
    pub(crate) async fn take(&self, work: TextWork) -> Option<OwnedSemaphorePermit> {
        let places = match work {
            TextWork::Words => &self.words,
            TextWork::Grammar => &self.grammars,
            TextWork::Replay => &self.replays,
        };
        // Never closed.
        Arc::clone(places).acquire_owned().await.ok()
    }
}

#[cfg(test)]
mod tests {
    use assay_api::openai::{ReplyForm, ResponseFormat, Tools};
    use futures_util::FutureExt;

    use super::{NUM_AT_ONCE, TextPlaces, TextWork};

    #[test]
    fn grammars_keep_no_words_waiting() {
        let places = TextPlaces::new();
        let take = |work| places.take(work).now_or_never().flatten();
        let held: Vec<_> = (0..NUM_AT_ONCE)
            .map(|_| take(TextWork::Grammar).expect("a free place"))
            .collect();
        assert!(take(TextWork::Grammar).is_none(), "all are taken");
        assert!(take(TextWork::Words).is_some());
        drop(held);
        assert!(take(TextWork::Grammar).is_some());
    }

    #[test]
    fn forms_and_tools_are_grammars() {
        let form = |format| ReplyForm {
            path: "response_format",
            format,
        };
        let text = form(ResponseFormat::Text);
        let regex = form(ResponseFormat::Regex("a".to_owned()));
        assert_eq!(TextWork::of(&text, None), TextWork::Words);
        assert_eq!(
            TextWork::of(&text, Some(&Tools::default())),
            TextWork::Words
        );
        assert_eq!(TextWork::of(&regex, None), TextWork::Grammar);
    }
}
