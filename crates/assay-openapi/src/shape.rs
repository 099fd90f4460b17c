//! The objects of a request: which fields its reader asked for in each, over all samples.

use std::collections::{BTreeMap, BTreeSet};

use assay_api::record::{Asked, Event};

use crate::path::{Step, at, join, steps, without_kinds};
use crate::request::Request;

/// The objects of a request by their keys: paths in which indices and clients' names are left out, and in which each
/// object that has kinds tells its own, such as `input[]<message>.content[]<input_text>`.
pub(crate) struct Shape {
    pub(crate) objects: BTreeMap<String, Object>,
}

/// One object, or one kind of it.
#[derive(Default)]
pub(crate) struct Object {
    /// Its fields in the order of the questions; the first question counts.
    pub(crate) fields: Vec<(String, Asked)>,
    /// Where it stands: number of the sample, path in it.
    pub(crate) places: Vec<(usize, String)>,
}

/// The objects of one sample by path, each with its kind.
type Kinds = BTreeMap<String, Option<String>>;

impl Shape {
    /// Reads all samples; faults are samples that are not taken.
    pub(crate) fn new(request: &Request, faults: &mut Vec<String>) -> Self {
        let mut recorded = Vec::new();
        for (index, sample) in request.samples.iter().enumerate() {
            let (read, events) = request.recorded(&sample.body);
            match read {
                Ok(read) if read.ignored.is_empty() => {}
                Ok(read) => faults.push(format!(
                    "{}: sample {index} has unknown fields: {:?}",
                    request.key, read.ignored
                )),
                Err(error) => faults.push(format!(
                    "{}: sample {index} is refused: {error}",
                    request.key
                )),
            }
            recorded.push(events);
        }
        let typed = typed_paths(request, &recorded);
        let mut shape = Self {
            objects: BTreeMap::new(),
        };
        for (index, events) in recorded.into_iter().enumerate() {
            shape.add(request, index, events, &typed);
        }
        shape
    }

    fn add(
        &mut self,
        request: &Request,
        sample: usize,
        events: Vec<Event>,
        typed: &BTreeSet<String>,
    ) {
        let mut kinds = Kinds::new();
        // A text in place of blocks is read as a block that the body does not have.
        let mut body = request.samples[sample].body.clone();
        let mut is_there = |path: &str| at(&mut body, path).is_some_and(|value| value.is_object());
        for event in events {
            match event {
                Event::Entered { path, kind } if is_there(&path) => {
                    kinds.insert(path.clone(), kind);
                    let object = self.objects.entry(key(request, &path, &kinds, typed));
                    object.or_default().places.push((sample, path));
                }
                Event::Asked {
                    object,
                    name,
                    asked,
                } if is_there(&object) => {
                    let object = self.objects.entry(key(request, &object, &kinds, typed));
                    let fields = &mut object.or_default().fields;
                    if !fields.iter().any(|(known, _)| *known == name) {
                        fields.push((name, asked));
                    }
                }
                _ => {}
            }
        }
    }

    /// The kinds of the object whose key is `key` without its own; the kind of an object without any is empty.
    pub(crate) fn kinds(&self, key: &str) -> Vec<(String, String)> {
        let keys = self.objects.keys().filter_map(|known| {
            let rest = known.strip_prefix(key)?;
            let kind = rest
                .strip_prefix('<')
                .and_then(|rest| rest.strip_suffix('>'));
            let is_own = rest.is_empty() || kind.is_some_and(|kind| !kind.contains(['<', '.']));
            is_own.then(|| (kind.unwrap_or_default().to_owned(), known.clone()))
        });
        keys.collect()
    }
}

/// Paths of objects that are asked for their `type`.
fn typed_paths(request: &Request, recorded: &[Vec<Event>]) -> BTreeSet<String> {
    let events = recorded.iter().flatten();
    let asked = events.filter_map(|event| match event {
        Event::Asked { object, name, .. } if name == "type" => Some(bare(request, object)),
        _ => None,
    });
    asked.collect()
}

fn bare(request: &Request, path: &str) -> String {
    without_kinds(&key(request, path, &Kinds::new(), &BTreeSet::new()))
}

fn key(request: &Request, path: &str, kinds: &Kinds, typed: &BTreeSet<String>) -> String {
    let (mut concrete, mut key, mut in_map) = (String::new(), String::new(), false);
    for step in steps(path) {
        match step {
            Step::Index(index) => {
                concrete.push_str(&format!("[{index}]"));
                key.push_str("[]");
            }
            Step::Name(name) => {
                concrete = join(&concrete, name);
                key = join(&key, if in_map { "{name}" } else { name });
            }
        }
        in_map = !in_map && request.maps.contains(&key.as_str());
        let kind = kinds.get(&concrete).and_then(Option::as_ref);
        if let Some(kind) = kind.filter(|_| typed.contains(&without_kinds(&key))) {
            key.push_str(&format!("<{kind}>"));
        }
    }
    key
}
