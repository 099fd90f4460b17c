//! The server seen from outside: JSON in, JSON out, on the real engine over a scripted model. Files mirror
//! routes and concerns; test names carry the row of the specification that they check.

mod access;
mod asking;
mod completion_asks;
mod completion_echo;
mod completions;
mod context;
mod decide;
mod decision_asks;
mod decisions;
mod decisions_templates;
mod fields;
mod hostile;
mod joins;
mod lifecycle;
mod messages;
mod models;
mod named_tokens;
mod prefix_cache;
mod probes;
mod prompt_scores;
mod real_model;
mod reasoning;
mod responses;
mod score;
mod scored;
mod spelling;
mod stream;
mod structured;
mod structured_outputs;
mod tokenize;
mod tool_calls;
mod tools;
mod values;
mod vocab;
mod world;
