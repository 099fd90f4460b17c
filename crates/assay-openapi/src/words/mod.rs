//! What fields mean: all that their readers do not know of them.

mod chat;
mod decisions;
mod generation;
mod messages;
mod responses;
mod tokens;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::path::without_kinds;

/// What is said of one field.
pub(crate) struct Word {
    /// For people.
    pub(crate) says: &'static str,
    /// What it is where it is absent.
    pub(crate) default: Option<Value>,
    /// What its reader does not say: replaces members of the field's schema.
    pub(crate) schema: Option<Value>,
    /// Whether what is inside is not told one by one.
    pub(crate) opaque: bool,
}

/// Says what a field means.
fn says(says: &'static str) -> Word {
    Word {
        says,
        default: None,
        schema: None,
        opaque: false,
    }
}

impl Word {
    fn default(self, default: Value) -> Self {
        Self {
            default: Some(default),
            ..self
        }
    }

    fn schema(self, schema: Value) -> Self {
        Self {
            schema: Some(schema),
            ..self
        }
    }

    fn opaque(self) -> Self {
        Self {
            opaque: true,
            ..self
        }
    }
}

/// A table of fields: `n`, or `responses|input[]<message>.role` where it means another thing in one request.
type Table = Vec<(&'static str, Word)>;

/// All words; knows which were used.
pub(crate) struct Words {
    words: BTreeMap<&'static str, Word>,
    names: BTreeMap<&'static str, &'static str>,
    used: RefCell<BTreeSet<&'static str>>,
}

/// Objects that have a schema of their own among the document's.
const NAMES: [(&str, &str); 20] = [
    ("messages[]", "ChatMessage"),
    ("messages[].content[]", "ChatContentPart"),
    ("messages[].tool_calls[]", "ChatMessageToolCall"),
    ("tools[]", "Tool"),
    ("response_format", "ResponseFormat"),
    ("structured_outputs", "StructuredOutputs"),
    ("stream_options", "StreamOptions"),
    ("responses|input[]", "ResponsesInputItem"),
    ("responses|tools[]", "ResponsesTool"),
    ("anthropic|messages[]", "MessagesTurn"),
    ("anthropic|messages[].content[]", "MessagesContentBlock"),
    ("anthropic|system[]", "MessagesSystemBlock"),
    ("anthropic|tools[]", "MessagesTool"),
    ("decisions|input[]", "DecisionInputItem"),
    ("decisions|input[].content[]", "DecisionContentPart"),
    ("decide|search", "DecideSearch"),
    ("decisions|questions[]", "DecisionQuestion"),
    ("systemone|questions.{name}", "SystemOneQuestion"),
    ("debias", "Debias"),
    ("anthropic|thinking", "Thinking"),
];

impl Words {
    pub(crate) fn new(faults: &mut Vec<String>) -> Self {
        let mut words = BTreeMap::new();
        let tables = [
            chat::table(),
            decisions::table(),
            generation::table(),
            messages::table(),
            responses::table(),
            tokens::table(),
        ];
        for (key, word) in tables.into_iter().flatten() {
            if words.insert(key, word).is_some() {
                faults.push(format!("words: `{key}` stands twice"));
            }
        }
        Self {
            words,
            names: NAMES.into_iter().collect(),
            used: RefCell::default(),
        }
    }

    /// What is said of the field `key` of the request `request`: by its kind or whatever its kind, here or everywhere.
    pub(crate) fn get(&self, request: &str, key: &str) -> Option<&Word> {
        look_up(&self.words, request, key).map(|(key, word)| {
            self.used.borrow_mut().insert(key);
            word
        })
    }

    /// The name of the object `key` of the request `request`.
    pub(crate) fn name(&self, request: &str, key: &str) -> Option<&'static str> {
        look_up(&self.names, request, key).map(|(key, name)| {
            self.used.borrow_mut().insert(key);
            *name
        })
    }

    /// Words of fields that nobody asks for.
    pub(crate) fn unused(&self) -> Vec<String> {
        let used = self.used.borrow();
        let all = self.words.keys().chain(self.names.keys());
        let unused = all.filter(|key| !used.contains(*key));
        unused
            .map(|key| format!("words: no request has the field `{key}`"))
            .collect()
    }
}

fn look_up<'t, T>(
    table: &'t BTreeMap<&'static str, T>,
    request: &str,
    key: &str,
) -> Option<(&'static str, &'t T)> {
    let bare = without_kinds(key);
    let keys = [
        format!("{request}|{key}"),
        format!("{request}|{bare}"),
        key.to_owned(),
        bare,
    ];
    let found = keys
        .iter()
        .find_map(|key| table.get_key_value(key.as_str()));
    found.map(|(key, value)| (*key, value))
}
