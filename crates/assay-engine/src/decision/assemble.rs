//! From the readings of all nodes to a question's labels.

use assay_kernels::exp64::{exp64, ln64};

use super::read::NodeReading;
use super::reading::{LabelReading, LabelScore};
use super::trie::LabelTrie;

/// How often a prompt's tokens were computed, for the reading to tell.
#[derive(Clone, Copy, Debug)]
pub(super) struct PromptCounts {
    pub(super) prompt_tokens: u32,
    pub(super) cached_tokens: u32,
}

/// The reading of a question; `nodes` are those of its trie, in order.
pub(super) fn label_reading(
    trie: &LabelTrie,
    nodes: &[&NodeReading],
    counts: PromptCounts,
) -> LabelReading {
    // A node's own step, and the steps from the root to it added in order.
    let mut steps = vec![0.0; nodes.len()];
    let mut sums = vec![0.0; nodes.len()];
    for (index, node) in trie.nodes.iter().enumerate() {
        for (&child, &logprob) in node.children.values().zip(&nodes[index].children) {
            steps[child] = logprob;
            sums[child] = sums[index] + logprob;
        }
    }
    let healed_logprob =
        (trie.healing.num_bytes() > 0).then(|| ln64(healed_mass(trie, nodes, &steps)));
    let healed = healed_logprob.unwrap_or(0.0);
    let labels: Vec<LabelScore> = trie
        .label_nodes
        .iter()
        .map(|&node| {
            let end = nodes[node].end.expect("a label's node is read for its end");
            LabelScore {
                steps: path(trie, node).iter().map(|&node| steps[node]).collect(),
                end,
                joint: sums[node] + end - healed,
            }
        })
        .collect();
    let label_mass = labels
        .iter()
        .fold(0.0, |mass, label| mass + exp64(label.joint));
    let leaving_mass = nodes.iter().zip(&sums).fold(0.0, |mass, (node, sum)| {
        mass + exp64(sum - healed) * node.leaving
    });
    LabelReading {
        labels,
        label_mass,
        leaving_mass,
        healed_logprob,
        argmax_is_label: argmax_is_label(trie, nodes),
        prompt_tokens: counts.prompt_tokens,
        cached_tokens: counts.cached_tokens,
        trie_edges: u32::try_from(trie.num_edges()).expect("a request's edges are limited"),
    }
}

/// Nodes from the first behind the root to `node`.
fn path(trie: &LabelTrie, mut node: usize) -> Vec<usize> {
    let mut path = Vec::new();
    while node != 0 {
        path.push(node);
        node = trie.nodes[node].parent;
    }
    path.reverse();
    path
}

/// The probability that the healed bytes come, over all ways to cut them into tokens.
fn healed_mass(trie: &LabelTrie, nodes: &[&NodeReading], steps: &[f64]) -> f64 {
    let mut masses: Vec<f64> = nodes.iter().map(|node| node.covering).collect();
    // Children come behind their parents, so each is whole when it is added.
    for node in (1..nodes.len()).rev() {
        if !trie.is_healed(node) {
            masses[trie.nodes[node].parent] += exp64(steps[node]) * masses[node];
        }
    }
    masses[0]
}

/// Whether the likeliest token at every place leads through a label to its end.
fn argmax_is_label(trie: &LabelTrie, nodes: &[&NodeReading]) -> bool {
    let mut node = 0;
    loop {
        let Some(token_id) = nodes[node].argmax else {
            return false;
        };
        match trie.nodes[node].children.get(&token_id) {
            Some(&child) => node = child,
            // It is named and no child: it ends the label that is whole here.
            None => return true,
        }
    }
}
