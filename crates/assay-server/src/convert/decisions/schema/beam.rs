//! One instance of a schema as far as it is filled in, and what is to be asked next.

use std::sync::Arc;

use assay_api::decisions::schema::{Condition, Field, Node, Object, OneOf, Subset};
use assay_api::decisions::{Question, Reading};
use serde_json::{Map, Value};

use super::subset::{self, Step};

/// One key or index on the way to a place in the instance.
#[derive(Clone, Debug)]
pub(super) enum Key {
    Name(String),
    Item(usize),
}

/// What is still to be done, in order; the last comes first.
#[derive(Clone, Debug)]
enum Task<'s> {
    Node(Vec<Key>, &'s Node),
    Subset(Vec<Key>, &'s Subset, Vec<usize>),
    Condition(Vec<Key>, &'s Condition),
}

/// What was asked and answered at one field.
#[derive(Clone, Debug)]
pub(super) struct Answered {
    pub(super) asked: Arc<AskedField>,
    /// Index of the answer.
    pub(super) answer: usize,
}

/// What was read for one field.
#[derive(Debug)]
pub(super) struct AskedField {
    /// JSON pointer.
    pub(super) path: String,
    /// By answer; of an array's end, null.
    pub(super) values: Vec<Value>,
    pub(super) is_number: bool,
    pub(super) reading: Reading,
}

/// An instance as far as it is filled in.
#[derive(Clone, Debug)]
pub(super) struct Beam<'s> {
    /// Of all answers so far, given their state: the product of theirs.
    pub(super) probability: f64,
    pub(super) value: Value,
    /// Questions and answers so far, as they were put.
    pub(super) earlier: Vec<(String, String)>,
    pub(super) fields: Vec<Answered>,
    tasks: Vec<Task<'s>>,
}

/// What a beam asks next.
#[derive(Clone, Debug)]
pub(super) enum Next<'s> {
    Field(Vec<Key>, &'s Field),
    OneOf(Vec<Key>, &'s OneOf),
    Item(Vec<Key>, &'s Subset, Vec<usize>, Step),
}

impl Next<'_> {
    pub(super) fn question(&self) -> Question {
        match self {
            Self::Field(_, field) => field.question.clone(),
            Self::OneOf(_, one_of) => one_of.field.question.clone(),
            Self::Item(_, subset, chosen, step) => step.question(subset, chosen.is_empty()),
        }
    }

    /// JSON pointer of what is asked.
    pub(super) fn path(&self) -> String {
        match self {
            Self::Field(at, _) => pointer(at),
            Self::OneOf(at, one_of) => pointer(&inside(at, Key::Name(one_of.tag.clone()))),
            Self::Item(at, _, chosen, _) => pointer(&inside(at, Key::Item(chosen.len()))),
        }
    }

    /// By answer; of an array's end, null.
    pub(super) fn values(&self) -> Vec<Value> {
        match self {
            Self::Field(_, field) => field.values.clone(),
            Self::OneOf(_, one_of) => one_of.field.values.clone(),
            Self::Item(_, subset, _, step) => {
                let items = step
                    .items
                    .iter()
                    .filter_map(|item| subset.values.get(*item).cloned());
                let end = step.may_stop.then_some(Value::Null);
                items.chain(end).collect()
            }
        }
    }

    /// Whether nothing more is asked behind this answer but what the beam has to do anyway.
    fn ends_with(&self, answer: usize) -> bool {
        match self {
            Self::Field(..) => true,
            Self::OneOf(_, one_of) => {
                let branch = one_of.branches.get(answer);
                branch.is_some_and(|branch| {
                    branch.properties.is_empty() && branch.condition.is_none()
                })
            }
            Self::Item(_, subset, chosen, step) => match step.items.get(answer) {
                None => true,
                Some(item) => {
                    let after = [&chosen[..], &[*item]].concat();
                    subset::step(subset, &after).count() == 1 && after.len() == subset.max_items
                }
            },
        }
    }
}

impl<'s> Beam<'s> {
    /// Nothing filled in.
    pub(super) fn new(schema: &'s Node) -> Self {
        Self {
            probability: 1.0,
            value: Value::Null,
            earlier: Vec::new(),
            fields: Vec::new(),
            tasks: vec![Task::Node(Vec::new(), schema)],
        }
    }

    /// Whether the instance is whole once `next` is answered so. May say no of one that is.
    pub(super) fn would_be_whole(&self, next: &Next<'_>, answer: usize) -> bool {
        self.tasks.is_empty() && next.ends_with(answer)
    }

    /// Does what needs no answer, up to what does; `None` once the instance is whole.
    pub(super) fn next(&mut self) -> Option<Next<'s>> {
        while let Some(task) = self.tasks.pop() {
            match task {
                Task::Node(at, Node::Given(value)) => self.put(&at, value.clone()),
                Task::Node(at, Node::Ask(field)) => return Some(Next::Field(at, field)),
                Task::Node(at, Node::Object(object)) => self.open(&at, object),
                Task::Node(at, Node::OneOf(one_of)) => {
                    self.put(&at, Value::Object(Map::new()));
                    return Some(Next::OneOf(at, one_of));
                }
                Task::Node(at, Node::Subset(subset)) => {
                    self.put(&at, Value::Array(Vec::new()));
                    self.tasks.push(Task::Subset(at, subset, Vec::new()));
                }
                Task::Subset(at, subset, mut chosen) => {
                    let step = subset::step(subset, &chosen);
                    match (step.count(), step.items.first()) {
                        (0, _) | (1, None) => {}
                        // The only way on is no question.
                        (1, Some(&item)) => {
                            self.choose(&at, subset, item);
                            chosen.push(item);
                            self.tasks.push(Task::Subset(at, subset, chosen));
                        }
                        _ => return Some(Next::Item(at, subset, chosen, step)),
                    }
                }
                Task::Condition(at, condition) => self.decide(&at, condition),
            }
        }
        None
    }

    /// Takes an answer to `next`, whose words were `label`.
    pub(super) fn answer(
        &mut self,
        next: Next<'s>,
        asked: &Arc<AskedField>,
        question: &str,
        label: &str,
        answer: usize,
    ) {
        self.probability *= asked
            .reading
            .probabilities
            .get(answer)
            .copied()
            .unwrap_or(0.0);
        self.earlier.push((question.to_owned(), label.to_owned()));
        self.fields.push(Answered {
            asked: Arc::clone(asked),
            answer,
        });
        let value = asked.values.get(answer).cloned().unwrap_or(Value::Null);
        match next {
            Next::Field(at, _) => self.put(&at, value),
            Next::OneOf(at, one_of) => {
                self.put(&inside(&at, Key::Name(one_of.tag.clone())), value);
                if let Some(branch) = one_of.branches.get(answer) {
                    self.push_object(&at, branch);
                }
            }
            Next::Item(at, subset, mut chosen, step) => {
                if let Some(&item) = step.items.get(answer) {
                    self.choose(&at, subset, item);
                    chosen.push(item);
                    self.tasks.push(Task::Subset(at, subset, chosen));
                }
            }
        }
    }

    fn choose(&mut self, at: &[Key], subset: &Subset, item: usize) {
        let value = subset.values.get(item).cloned().unwrap_or(Value::Null);
        if let Some(Value::Array(items)) = place(&mut self.value, at) {
            items.push(value);
        }
    }

    fn open(&mut self, at: &[Key], object: &'s Object) {
        self.put(at, Value::Object(Map::new()));
        self.push_object(at, object);
    }

    fn push_object(&mut self, at: &[Key], object: &'s Object) {
        if let Some(condition) = &object.condition {
            self.tasks.push(Task::Condition(at.to_vec(), condition));
        }
        self.push_properties(at, &object.properties);
    }

    fn push_properties(&mut self, at: &[Key], properties: &'s [(String, Node)]) {
        let tasks = properties
            .iter()
            .rev()
            .map(|(name, node)| Task::Node(inside(at, Key::Name(name.clone())), node));
        self.tasks.extend(tasks);
    }

    fn decide(&mut self, at: &[Key], condition: &'s Condition) {
        let tested = inside(at, Key::Name(condition.property.clone()));
        let holds = place(&mut self.value, &tested).is_some_and(|value| *value == condition.value);
        let properties = if holds {
            &condition.then
        } else {
            &condition.otherwise
        };
        self.push_properties(at, properties);
    }

    fn put(&mut self, at: &[Key], value: Value) {
        let Some((Key::Name(name), parent)) = at.split_last() else {
            self.value = value;
            return;
        };
        if let Some(Value::Object(members)) = place(&mut self.value, parent) {
            members.insert(name.clone(), value);
        }
    }
}

fn place<'v>(value: &'v mut Value, at: &[Key]) -> Option<&'v mut Value> {
    at.iter().try_fold(value, |value, key| match key {
        Key::Name(name) => value.get_mut(name),
        Key::Item(index) => value.get_mut(index),
    })
}

fn inside(at: &[Key], key: Key) -> Vec<Key> {
    let mut at = at.to_vec();
    at.push(key);
    at
}

/// RFC 6901.
fn pointer(at: &[Key]) -> String {
    let steps = at.iter().map(|key| match key {
        Key::Name(name) => format!("/{}", name.replace('~', "~0").replace('/', "~1")),
        Key::Item(index) => format!("/{index}"),
    });
    steps.collect()
}
