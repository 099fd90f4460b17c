//! What readers ask of bodies, written down while they read: the OpenAPI document describes requests by it, so that it
//! cannot say otherwise than they do.
//!
//! A server is built without the feature `record`, and nothing is written down.

#[cfg(feature = "record")]
pub use recording::{Asked, Event, record};

use serde_json::Value;

/// Notes that an object stands at `path`, read by its fields.
pub(crate) fn entered(path: &str, value: &Value) {
    #[cfg(feature = "record")]
    recording::entered(path, value);
    #[cfg(not(feature = "record"))]
    let _ = (path, value);
}

/// Notes a question for the field at `path`.
macro_rules! asked {
    ($path:expr, $($asked:tt)*) => {
        #[cfg(feature = "record")]
        $crate::record::note($path, $crate::record::Asked::$($asked)*);
    };
}
pub(crate) use asked;

#[cfg(feature = "record")]
pub(crate) use recording::note;

/// Reads a part of a body by a reader that asks for more than stands there: only its questions for `names`, and for
/// what is inside them, are noted.
pub(crate) fn within<T>(names: &'static [&'static str], read: impl FnOnce() -> T) -> T {
    #[cfg(feature = "record")]
    return recording::within(names, read);
    #[cfg(not(feature = "record"))]
    {
        let _ = names;
        read()
    }
}

#[cfg(feature = "record")]
mod recording {
    use std::cell::RefCell;
    use std::ops::RangeInclusive;

    use serde_json::Value;

    use crate::fields::NumberRange;

    /// What a field is asked for.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Asked {
        /// Anything; what it may be is judged elsewhere.
        Any,
        /// Anything: it has no effect.
        Harmless,
        /// One of these values (JSON, space-separated), which ask for nothing.
        Only(String),
        /// A boolean.
        Boolean,
        /// An integer.
        Integer(RangeInclusive<i64>),
        /// A real number.
        Number(NumberRange),
        /// A string.
        String,
        /// One of these strings.
        Choice(Vec<String>),
        /// An object.
        Object,
        /// An array.
        Array,
    }

    /// One thing that a reader did.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Event {
        /// It began to read an object.
        Entered {
            /// Where the object stands; empty for the body.
            path: String,
            /// Its `type`, where that is a string.
            kind: Option<String>,
        },
        /// It asked for a field, there or not.
        Asked {
            /// Where the field's object stands.
            object: String,
            /// The field.
            name: String,
            /// For what.
            asked: Asked,
        },
    }

    #[derive(Default)]
    struct Recorder {
        events: Vec<Event>,
        only: Option<&'static [&'static str]>,
    }

    impl Recorder {
        fn is_muted(&self, path: &str) -> bool {
            let top = path.split(['.', '[']).next().unwrap_or_default();
            self.only.is_some_and(|names| !names.contains(&top))
        }
    }

    thread_local! {
        static RECORDER: RefCell<Option<Recorder>> = const { RefCell::new(None) };
    }

    /// Runs a reader, and gives what it did on this thread.
    pub fn record<T>(read: impl FnOnce() -> T) -> (T, Vec<Event>) {
        RECORDER.set(Some(Recorder::default()));
        let done = read();
        let recorder = RECORDER.take().unwrap_or_default();
        (done, recorder.events)
    }

    fn with(write: impl FnOnce(&mut Recorder)) {
        RECORDER.with_borrow_mut(|recorder| {
            if let Some(recorder) = recorder {
                write(recorder);
            }
        });
    }

    pub(super) fn entered(path: &str, value: &Value) {
        with(|recorder| {
            if recorder.only.is_some() && (path.is_empty() || recorder.is_muted(path)) {
                return;
            }
            recorder.events.push(Event::Entered {
                path: path.to_owned(),
                kind: value.get("type").and_then(Value::as_str).map(str::to_owned),
            });
        });
    }

    pub(crate) fn note(path: (&str, &str), asked: Asked) {
        let (object, name) = path;
        with(|recorder| {
            if recorder.is_muted(if object.is_empty() { name } else { object }) {
                return;
            }
            recorder.events.push(Event::Asked {
                object: object.to_owned(),
                name: name.to_owned(),
                asked,
            });
        });
    }

    pub(super) fn within<T>(names: &'static [&'static str], read: impl FnOnce() -> T) -> T {
        with(|recorder| recorder.only = Some(names));
        let done = read();
        with(|recorder| recorder.only = None);
        done
    }
}
