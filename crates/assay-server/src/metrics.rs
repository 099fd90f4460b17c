//! Counters of the server, and their text form. Names are vLLM's where the meaning is the same, so that
//! dashboards and gateways made for it work; ours begin with `assay_`. What the engine counts is read from
//! it at a scrape; times are measured here, as the engine has no clock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use assay_engine::EngineStats;
use prometheus_client::encoding::{EncodeLabelSet, prometheus_text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Finished {
    finished_reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KvBlocks {
    state: &'static str,
}

/// All metrics.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    num_running: Gauge<f64, AtomicU64>,
    num_waiting: Gauge<f64, AtomicU64>,
    kv_cache_usage: Gauge<f64, AtomicU64>,
    kv_blocks: Family<KvBlocks, Gauge<f64, AtomicU64>>,
    prefix_cache_queries: Counter,
    prefix_cache_hits: Counter,
    prefix_cache_evictions: Counter,
    row_cache_hits: Counter,
    prompt_tokens: Counter,
    generation_tokens: Counter,
    preemptions: Counter,
    drafts: Counter,
    draft_tokens: Counter,
    accepted_tokens: Counter,
    finished: Family<Finished, Counter>,
    steps: Counter,
    cancelled: Counter,
    decisions: Counter,
    trie_edges: Counter,
    numerical_errors: Counter,
    refused: Counter,
    request_overhead: Histogram,
    queue_time: Histogram,
    time_to_first_token: Histogram,
    request_latency: Histogram,
}

/// Upper ends of the latency buckets, in seconds.
const SECONDS: [f64; 18] = [
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 10.0, 30.0,
    60.0, 120.0,
];

/// The same for times that are mostly below a step.
const SHORT_SECONDS: [f64; 22] = [
    0.0001, 0.0002, 0.0003, 0.0004, 0.0005, 0.0006, 0.0008, 0.001, 0.0015, 0.002, 0.003, 0.004,
    0.005, 0.0075, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0, 10.0, 60.0,
];

/// A registry whose metrics all carry the model's name.
struct Registration<'registry>(&'registry mut Registry);

impl Registration<'_> {
    fn add<M: Metric + Clone + Default>(&mut self, name: &str, help: &str) -> M {
        self.add_made(name, help, M::default())
    }

    fn add_made<M: Metric + Clone>(&mut self, name: &str, help: &str, metric: M) -> M {
        self.0.register(name, help, metric.clone());
        metric
    }
}

impl Metrics {
    pub(crate) fn new(model_id: &str) -> Self {
        let mut registry = Registry::default();
        let label = ("model_name".into(), model_id.to_owned().into());
        let mut r = Registration(registry.sub_registry_with_label(label));
        Self {
            num_running: r.add("vllm:num_requests_running", "Sequences in the batch"),
            num_waiting: r.add("vllm:num_requests_waiting", "Sequences that wait"),
            kv_cache_usage: r.add(
                "vllm:kv_cache_usage_perc",
                "Share of KV blocks in use, 0 to 1",
            ),
            kv_blocks: r.add(
                "assay_kv_blocks",
                "KV blocks: held by sequences, cached for later ones, free",
            ),
            prefix_cache_queries: r.add(
                "vllm:prefix_cache_queries",
                "Prompt tokens looked for in the prefix cache",
            ),
            prefix_cache_hits: r.add(
                "vllm:prefix_cache_hits",
                "Prompt tokens found in the prefix cache",
            ),
            prefix_cache_evictions: r.add(
                "assay_prefix_cache_evictions",
                "Cached KV blocks given up for others",
            ),
            row_cache_hits: r.add(
                "assay_row_cache_hits",
                "Requests answered from a kept row of logits, without a pass",
            ),
            prompt_tokens: r.add("vllm:prompt_tokens", "Prompt tokens processed"),
            generation_tokens: r.add("vllm:generation_tokens", "Tokens generated"),
            preemptions: r.add(
                "vllm:num_preemptions",
                "Times a sequence gave its blocks back",
            ),
            drafts: r.add(
                "vllm:spec_decode_num_drafts",
                "Drafts that went through the model",
            ),
            draft_tokens: r.add(
                "vllm:spec_decode_num_draft_tokens",
                "Draft tokens that went through the model",
            ),
            accepted_tokens: r.add(
                "vllm:spec_decode_num_accepted_tokens",
                "Draft tokens that plain decoding drew as well",
            ),
            finished: r.add("vllm:request_success", "Choices that ended, by reason"),
            steps: r.add("assay_steps", "Forward passes"),
            cancelled: r.add("assay_requests_cancelled", "Choices whose client went away"),
            decisions: r.add("assay_decisions", "Decisions read to their end"),
            trie_edges: r.add(
                "assay_decision_trie_edges",
                "Label tokens computed for decisions",
            ),
            numerical_errors: r.add(
                "assay_numerical_errors",
                "Requests that failed because a logit was not a number",
            ),
            refused: r.add(
                "assay_requests_refused",
                "Requests refused for a full queue or a shutdown",
            ),
            request_overhead: r.add_made(
                "assay_request_overhead_seconds",
                "From a request's last byte to the step that computes its first token",
                Histogram::new(SHORT_SECONDS),
            ),
            queue_time: r.add_made(
                "vllm:request_queue_time_seconds",
                "From a request's place in the engine's queue to the step that computes its first token",
                Histogram::new(SHORT_SECONDS),
            ),
            time_to_first_token: r.add_made(
                "vllm:time_to_first_token_seconds",
                "From a request's arrival to its first text",
                Histogram::new(SECONDS),
            ),
            request_latency: r.add_made(
                "vllm:e2e_request_latency_seconds",
                "From a request's arrival to its last text",
                Histogram::new(SECONDS),
            ),
            registry,
        }
    }

    /// The text form, with the engine's present counts.
    pub(crate) fn render(&self, engine: &EngineStats) -> Result<String, std::fmt::Error> {
        // Counts of sequences and blocks stay far below 2^53.
        self.num_running.set(engine.num_running as f64);
        self.num_waiting.set(engine.num_waiting as f64);
        let blocks_used = engine.num_kv_blocks_used as f64;
        let blocks = engine.num_kv_blocks.max(1) as f64;
        self.kv_cache_usage.set(blocks_used / blocks);
        let free = engine
            .num_kv_blocks
            .saturating_sub(engine.num_kv_blocks_used + engine.num_kv_blocks_cached);
        for (state, num_blocks) in [
            ("used", engine.num_kv_blocks_used),
            ("cached", engine.num_kv_blocks_cached),
            ("free", free),
        ] {
            let gauge = self.kv_blocks.get_or_create(&KvBlocks { state });
            gauge.set(num_blocks as f64);
        }
        let stopped = engine.num_finished_end_token + engine.num_finished_stop_string;
        for (counter, count) in [
            (&self.prompt_tokens, engine.num_prompt_tokens),
            (&self.generation_tokens, engine.num_generation_tokens),
            (&self.prefix_cache_queries, engine.num_prefix_cache_queries),
            (&self.prefix_cache_hits, engine.num_prefix_cache_hits),
            (
                &self.prefix_cache_evictions,
                engine.num_prefix_cache_evictions,
            ),
            (&self.row_cache_hits, engine.num_row_cache_hits),
            (&self.preemptions, engine.num_preemptions),
            (&self.drafts, engine.num_drafts),
            (&self.draft_tokens, engine.num_draft_tokens),
            (&self.accepted_tokens, engine.num_accepted_tokens),
            (&self.finished_with("stop"), stopped),
            (&self.finished_with("length"), engine.num_finished_length),
            (&self.steps, engine.num_steps),
            (&self.cancelled, engine.num_cancelled),
            (&self.decisions, engine.num_decisions),
            (&self.trie_edges, engine.num_trie_edges),
            (&self.numerical_errors, engine.num_numerical_errors),
        ] {
            counter.inner().store(count, Ordering::Relaxed);
        }
        let mut text = String::new();
        prometheus_text::encode(&mut text, &self.registry)?;
        Ok(text)
    }

    fn finished_with(&self, finished_reason: &'static str) -> Counter {
        let finished = Finished { finished_reason };
        self.finished.get_or_create(&finished).clone()
    }

    pub(crate) fn count_refused(&self) {
        self.refused.inc();
    }
}

/// Times one request.
#[derive(Debug)]
pub(crate) struct RequestTimer {
    metrics: Arc<Metrics>,
    received: Instant,
    has_text: bool,
}

impl RequestTimer {
    /// `received` is when the last of the request's bytes was there.
    pub(crate) fn start(metrics: Arc<Metrics>, received: Instant) -> Self {
        Self {
            metrics,
            received,
            has_text: false,
        }
    }

    /// Times the wait of a request that joins the engine's queue now.
    pub(crate) fn wait(&self) -> WaitTimer {
        WaitTimer {
            metrics: Arc::clone(&self.metrics),
            received: self.received,
            queued: Instant::now(),
            has_ended: AtomicBool::new(false),
        }
    }

    pub(crate) fn text(&mut self) {
        if !self.has_text {
            self.has_text = true;
            let elapsed = self.received.elapsed().as_secs_f64();
            self.metrics.time_to_first_token.observe(elapsed);
        }
    }

    pub(crate) fn completed(&self) {
        let elapsed = self.received.elapsed().as_secs_f64();
        self.metrics.request_latency.observe(elapsed);
    }
}

/// Times a request's way to the step that computes its first token, whichever of its prompts that is of.
#[derive(Debug)]
pub(crate) struct WaitTimer {
    metrics: Arc<Metrics>,
    received: Instant,
    queued: Instant,
    has_ended: AtomicBool,
}

impl WaitTimer {
    /// The first call counts.
    pub(crate) fn end(&self) {
        if !self.has_ended.swap(true, Ordering::Relaxed) {
            for (histogram, start) in [
                (&self.metrics.request_overhead, self.received),
                (&self.metrics.queue_time, self.queued),
            ] {
                histogram.observe(start.elapsed().as_secs_f64());
            }
        }
    }
}
