// Keys and values of a layer, and which of them a pair of (row, query head) sees.
#pragma once

#include "../quantize/quantize.cuh"

namespace assay {

constexpr int CHUNK_KEYS = 256;
constexpr int BLOCK_TOKENS = 16;
constexpr float NEG_INFINITY_F = -__builtin_huge_valf();

/// What a layer's attention needs; `attention/cuda.rs` has the same fields in the same order.
struct AttentionLayer {
    const uint16_t* k;  // [block][kv_head][head_dim][16]
    const uint16_t* v;  // [block][kv_head][16][head_dim]
    const float* sinks; // [num_heads], or null
    int num_heads, num_kv_heads, head_dim;
    float scale;
    int window;     // tokens, or 0 for no window
    float softcap;  // or 0 for none
};

/// Some pairs of one sequence.
struct AttentionTile {
    int first_row;       // of the sequence in the batch
    int first_position;  // of that row
    int first_pair, num_pairs;
    int table;           // where the sequence's block table begins
};

/// Positions that a pair's row sees, within one chunk: empty where it sees none.
struct Range {
    int start, end;
    __device__ __forceinline__ bool has(int key) const { return key >= start && key < end; }
};

__device__ __forceinline__ Range keys_of(const AttentionLayer& layer, const AttentionTile& tile, int pair, int chunk) {
    const int group = layer.num_heads / layer.num_kv_heads;
    const int position = tile.first_position + (tile.first_pair + pair) / group;
    const int first = layer.window > 0 ? max(0, position + 1 - layer.window) : 0;
    const int start = max(first, chunk * CHUNK_KEYS), end = min(position + 1, (chunk + 1) * CHUNK_KEYS);
    return {start, max(start, end)};
}

__device__ __forceinline__ int row_of(const AttentionLayer& layer, const AttentionTile& tile, int pair) {
    return tile.first_row + (tile.first_pair + pair) / (layer.num_heads / layer.num_kv_heads);
}

__device__ __forceinline__ int head_of(const AttentionLayer& layer, const AttentionTile& tile, int kv_head, int pair) {
    const int group = layer.num_heads / layer.num_kv_heads;
    return kv_head * group + (tile.first_pair + pair) % group;
}

/// Stores K and V of one head of a row in a slot.
__device__ __forceinline__ void store_head(
    uint32_t slot, int head, int num_kv_heads, int head_dim, const float* k, const float* v, uint16_t* to_k, uint16_t* to_v) {
    const size_t first = ((size_t)(slot / BLOCK_TOKENS) * num_kv_heads + head) * head_dim * BLOCK_TOKENS;
    for (int d = threadIdx.x; d < head_dim; d += blockDim.x) {
        to_k[first + d * BLOCK_TOKENS + slot % BLOCK_TOKENS] = to_half_saturating(k[d]);
        to_v[first + slot % BLOCK_TOKENS * head_dim + d] = to_half_saturating(v[d]);
    }
}

}  // namespace assay
