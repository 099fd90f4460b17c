//! The engine at its own door: requests in, outputs out, over a scripted model; and its pure parts
//! (scheduler, text pipeline, sampler) against naive references.

mod checked;
mod collect;
mod constraints;
mod decisions;
mod draft_model;
mod draft_rows;
mod generation;
mod guide;
mod invariance;
mod lifecycle;
mod limits;
mod naive_pool;
mod prefill_shares;
mod prefix_hits;
mod prompt_scores;
mod real_model;
mod real_path;
mod reply_parts;
mod sampling;
mod scheduling;
mod scores;
mod speculation;
mod storage;
mod text_reference;
