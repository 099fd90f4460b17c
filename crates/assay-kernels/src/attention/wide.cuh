// Attention of many rows: a block of 256 threads takes 64 pairs of (row, query head) of one key/value head. Scores and
// values are products of tiles in registers, as in a matrix product; each output's chain is the contract's.
#pragma once

#include "pairs.cuh"

namespace assay {

constexpr int WIDE_PAIRS = 64;
/// Elements of the head that pass through shared memory together, for all keys of a chunk.
constexpr int SLICE_DIMS = 8;
/// Floats of a slice of values.
constexpr int VALUE_SLICE = 2048;
/// A row of a slice of keys, padded so that neighbouring rows begin in other banks.
constexpr int SLICE_STRIDE = CHUNK_KEYS + 4;

template <int HEAD_DIM>
struct WideShared {
    float q[HEAD_DIM][WIDE_PAIRS];     // scaled
    float p[CHUNK_KEYS][WIDE_PAIRS];   // quads of pairs are swizzled by key
    float slice[SLICE_DIMS * SLICE_STRIDE];
    float running_max[WIDE_PAIRS], running_sum[WIDE_PAIRS];
    float max[WIDE_PAIRS], old_factor[WIDE_PAIRS], new_factor[WIDE_PAIRS];
    float warp_max[8][WIDE_PAIRS];
    Range keys[WIDE_PAIRS];
    uint32_t blocks[CHUNK_KEYS / BLOCK_TOKENS];
};

// What `attention/cuda.rs` asks for.
static_assert(sizeof(WideShared<64>) == 94144 && sizeof(WideShared<128>) == 110528, "shared memory");

/// Where quad `quad` of the weights of a key lies: threads that write or read together meet in no bank.
__device__ __forceinline__ int swizzled(int key, int quad) {
    return (quad ^ ((key >> 2 & 3) * 2) ^ (key & 1) ^ (key & 2) << 1) * 4;
}

/// The larger, NaN if either is.
__device__ __forceinline__ float max_nan(float a, float b) {
    float largest;
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(largest) : "f"(a), "f"(b));
    return largest;
}

/// Eight halves as floats, to shared memory.
__device__ __forceinline__ void store_eight(const uint4& halves, float* to) {
    const uint32_t words[4] = {halves.x, halves.y, halves.z, halves.w};
    float values[8];
#pragma unroll
    for (int i = 0; i < 8; i++) values[i] = __half2float(__ushort_as_half((uint16_t)(words[i / 2] >> (16 * (i % 2)))));
    *(float4*)to = make_float4(values[0], values[1], values[2], values[3]);
    *(float4*)(to + 4) = make_float4(values[4], values[5], values[6], values[7]);
}

template <int HEAD_DIM>
__device__ __forceinline__ void attention_wide(
    const AttentionLayer& layer, const AttentionTile* tiles, const uint32_t* tables, const float* q, float* out) {
    constexpr int DIMS = HEAD_DIM / 32;                  // of the head, a thread
    constexpr int SLICE_KEYS = VALUE_SLICE / HEAD_DIM;   // of values, together
    extern __shared__ __align__(128) uint8_t shared_bytes[];
    WideShared<HEAD_DIM>& shared = *(WideShared<HEAD_DIM>*)shared_bytes;
    begin();
    const AttentionTile tile = tiles[blockIdx.x];
    const int kv_head = blockIdx.y, thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
    const uint32_t* table = tables + tile.table;
    const int group = layer.num_heads / layer.num_kv_heads;
    const int last_position = tile.first_position + (tile.first_pair + tile.num_pairs - 1) / group;
    const int first_position = tile.first_position + tile.first_pair / group;
    const int first_key = layer.window > 0 ? max(0, first_position + 1 - layer.window) : 0;
    const int num_blocks = last_position / BLOCK_TOKENS + 1;

    for (int i = thread; i < WIDE_PAIRS * (HEAD_DIM / 4); i += 256) {
        const int pair = i % WIDE_PAIRS, d = i / WIDE_PAIRS * 4;
        float4 values = make_float4(0, 0, 0, 0);
        if (pair < tile.num_pairs) {
            const size_t row = row_of(layer, tile, pair), head = head_of(layer, tile, kv_head, pair);
            values = *(const float4*)(q + (row * layer.num_heads + head) * HEAD_DIM + d);
        }
        shared.q[d][pair] = mul(values.x, layer.scale);
        shared.q[d + 1][pair] = mul(values.y, layer.scale);
        shared.q[d + 2][pair] = mul(values.z, layer.scale);
        shared.q[d + 3][pair] = mul(values.w, layer.scale);
    }
    if (thread < WIDE_PAIRS) {
        shared.running_max[thread] = NEG_INFINITY_F;
        shared.running_sum[thread] = 0.0f;
    }
    // Of scores a thread has pairs 4g..4g+3 and 32+4g.. (g = lane/4), keys 4t..4t+3 and 16+4t.. (t = lane%4) of its
    // warp's 32. Of values it has eight pairs and DIMS elements.
    const int g = lane / 4, t = lane % 4;
    const int value_pair = warp / 4 * 32 + lane / 8 * 8, value_dim = warp % 4 * (HEAD_DIM / 4) + lane % 8 * DIMS;
    const auto out_of = [&](int pair) {
        const size_t row = row_of(layer, tile, pair), head = head_of(layer, tile, kv_head, pair);
        return out + (row * layer.num_heads + head) * HEAD_DIM + value_dim;
    };

    bool is_first = true;
    for (int chunk = first_key / CHUNK_KEYS; chunk <= last_position / CHUNK_KEYS; chunk++, is_first = false) {
        __syncthreads();
        if (thread < WIDE_PAIRS) {
            const Range none = {chunk * CHUNK_KEYS, chunk * CHUNK_KEYS};
            shared.keys[thread] = thread < tile.num_pairs ? keys_of(layer, tile, thread, chunk) : none;
        } else if (thread < WIDE_PAIRS + CHUNK_KEYS / BLOCK_TOKENS) {
            const int block = chunk * (CHUNK_KEYS / BLOCK_TOKENS) + thread - WIDE_PAIRS;
            if (block < num_blocks) shared.blocks[thread - WIDE_PAIRS] = table[block];
        }
        __syncthreads();
        // What any pair sees, and what all do: rows ascend, and so do both ends of what they see.
        const Range lowest = shared.keys[0], highest = shared.keys[tile.num_pairs - 1];
        const Range all = {min(lowest.start, highest.start), max(lowest.end, highest.end)};
        Range common = {max(lowest.start, highest.start), min(lowest.end, highest.end)};
        if (common.start >= common.end) common = {all.start, all.start};
        // Blocks of the chunk that hold a key in sight.
        const int end_block = (all.end - chunk * CHUNK_KEYS + BLOCK_TOKENS - 1) / BLOCK_TOKENS;

        // 1. Scores
        float s[8][8];  // [pair][key]
#pragma unroll
        for (int i = 0; i < 8; i++) {
#pragma unroll
            for (int j = 0; j < 8; j++) s[i][j] = 0.0f;
        }
        const int key_block = thread / 16, key_dim = thread / 2 % 8, key_half = thread % 2 * 8;
        uint4 next = make_uint4(0, 0, 0, 0);
        const uint16_t* k = nullptr;
        if (key_block < end_block) {
            const size_t block = (size_t)shared.blocks[key_block] * layer.num_kv_heads + kv_head;
            k = layer.k + (block * HEAD_DIM + key_dim) * BLOCK_TOKENS + key_half;
            next = __ldg((const uint4*)k);
        }
        const bool is_seen = warp * 32 < all.end - chunk * CHUNK_KEYS && (warp + 1) * 32 > all.start - chunk * CHUNK_KEYS;
#pragma unroll 1
        for (int start = 0; start < HEAD_DIM; start += SLICE_DIMS) {
            store_eight(next, shared.slice + key_dim * SLICE_STRIDE + key_block * BLOCK_TOKENS + key_half);
            __syncthreads();
            if (k && start + SLICE_DIMS < HEAD_DIM) next = __ldg((const uint4*)(k + (start + SLICE_DIMS) * BLOCK_TOKENS));
            if (is_seen) {
#pragma unroll
                for (int d = 0; d < SLICE_DIMS; d++) {
                    const float* keys = shared.slice + d * SLICE_STRIDE + warp * 32 + 4 * t;
                    const float4 k0 = *(const float4*)keys, k1 = *(const float4*)(keys + 16);
                    const float* pairs = shared.q[start + d] + 4 * g;
                    const float4 q0 = *(const float4*)pairs, q1 = *(const float4*)(pairs + 32);
                    const float of_key[8] = {k0.x, k0.y, k0.z, k0.w, k1.x, k1.y, k1.z, k1.w};
                    const float of_pair[8] = {q0.x, q0.y, q0.z, q0.w, q1.x, q1.y, q1.z, q1.w};
#pragma unroll
                    for (int i = 0; i < 8; i++) {
#pragma unroll
                        for (int j = 0; j < 8; j++) s[i][j] = fma_rn(of_pair[i], of_key[j], s[i][j]);
                    }
                }
            }
            __syncthreads();
        }
        const auto key_of = [&](int j) { return chunk * CHUNK_KEYS + warp * 32 + 4 * t + j % 4 + j / 4 * 16; };
        const auto pair_of = [&](int i) { return 4 * g + i % 4 + i / 4 * 32; };
        if (layer.softcap > 0.0f) {
#pragma unroll
            for (int i = 0; i < 8; i++) {
#pragma unroll
                for (int j = 0; j < 8; j++) s[i][j] = softcap_one(s[i][j], layer.softcap);
            }
        }

        // 2. Maximum over the keys in sight
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const Range keys = shared.keys[pair_of(i)];
            float largest = NEG_INFINITY_F;
#pragma unroll
            for (int j = 0; j < 8; j++) {
                if (keys.has(key_of(j))) largest = max_nan(largest, s[i][j]);
            }
            largest = max_nan(largest, __shfl_xor_sync(0xFFFFFFFFu, largest, 1));
            largest = max_nan(largest, __shfl_xor_sync(0xFFFFFFFFu, largest, 2));
            if (t == 0) shared.warp_max[warp][pair_of(i)] = largest;
        }
        __syncthreads();
        if (thread < WIDE_PAIRS) {
            float largest = NEG_INFINITY_F;
            for (int w = 0; w < 8; w++) largest = max_nan(largest, shared.warp_max[w][thread]);
            shared.max[thread] = largest;
        }
        __syncthreads();

        // 3. Weights
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const Range keys = shared.keys[pair_of(i)];
            const float largest = shared.max[pair_of(i)];
#pragma unroll
            for (int j = 0; j < 8; j++) s[i][j] = keys.has(key_of(j)) ? exp32(sub(s[i][j], largest)) : 0.0f;
        }
#pragma unroll
        for (int j = 0; j < 8; j++) {
            const int key = key_of(j) % CHUNK_KEYS;
            *(float4*)&shared.p[key][swizzled(key, g)] = make_float4(s[0][j], s[1][j], s[2][j], s[3][j]);
            *(float4*)&shared.p[key][swizzled(key, 8 + g)] = make_float4(s[4][j], s[5][j], s[6][j], s[7][j]);
        }
        // The first values, while weights are written.
        const auto load_values = [&](int start) {
            const int key = start + thread / (HEAD_DIM / 8), at = thread % (HEAD_DIM / 8) * 8;
            if (key / BLOCK_TOKENS >= end_block) return make_uint4(0, 0, 0, 0);
            const size_t block = (size_t)shared.blocks[key / BLOCK_TOKENS] * layer.num_kv_heads + kv_head;
            return __ldg((const uint4*)(layer.v + (block * BLOCK_TOKENS + key % BLOCK_TOKENS) * HEAD_DIM + at));
        };
        const int first_slice = all.start % CHUNK_KEYS / SLICE_KEYS;
        uint4 values = load_values(first_slice * SLICE_KEYS);
        __syncthreads();

        // Their sums by lanes of the position: a warp eight pairs
#pragma unroll
        for (int quad = 2 * warp; quad < 2 * warp + 2; quad++) {
            float sums[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
            for (int i = lane; i < CHUNK_KEYS; i += 32) {
                const float4 p = *(const float4*)&shared.p[i][swizzled(i, quad)];
                const float of_pair[4] = {p.x, p.y, p.z, p.w};
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    if (shared.keys[4 * quad + e].has(chunk * CHUNK_KEYS + i)) sums[e] = add(sums[e], of_pair[e]);
                }
            }
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const float sum = sum_lanes(sums[e]);
                const int pair = 4 * quad + e;
                const Range keys = shared.keys[pair];
                if (lane == 0 && keys.start < keys.end) {
                    const float old = shared.running_max[pair], largest = shared.max[pair];
                    const float joint = max_nan(old, largest);
                    const float a = exp32(sub(old, joint)), b = exp32(sub(largest, joint));
                    shared.running_sum[pair] = fma_rn(sum, b, mul(shared.running_sum[pair], a));
                    shared.running_max[pair] = joint;
                    shared.old_factor[pair] = a;
                    shared.new_factor[pair] = b;
                }
            }
        }

        // 4. Values
        float o[8][DIMS];
#pragma unroll
        for (int i = 0; i < 8; i++) {
#pragma unroll
            for (int d = 0; d < DIMS; d++) o[i][d] = 0.0f;
        }
        const int end = all.end - chunk * CHUNK_KEYS;
#pragma unroll 1
        for (int start = first_slice * SLICE_KEYS; start < end; start += SLICE_KEYS) {
            store_eight(values, shared.slice + thread * 8);
            __syncthreads();
            if (start + SLICE_KEYS < end) values = load_values(start + SLICE_KEYS);
            const auto add_key = [&](int key, bool is_checked) {
                const float4 p0 = *(const float4*)&shared.p[key][swizzled(key, value_pair / 4)];
                const float4 p1 = *(const float4*)&shared.p[key][swizzled(key, value_pair / 4 + 1)];
                const float of_pair[8] = {p0.x, p0.y, p0.z, p0.w, p1.x, p1.y, p1.z, p1.w};
                float v[DIMS];
                const float* from = shared.slice + (key - start) * HEAD_DIM + value_dim;
                if constexpr (DIMS == 4) {
                    const float4 four = *(const float4*)from;
                    v[0] = four.x, v[1] = four.y, v[2] = four.z, v[3] = four.w;
                } else {
                    const float2 two = *(const float2*)from;
                    v[0] = two.x, v[1] = two.y;
                }
#pragma unroll
                for (int i = 0; i < 8; i++) {
                    if (is_checked && !shared.keys[value_pair + i].has(chunk * CHUNK_KEYS + key)) continue;
#pragma unroll
                    for (int d = 0; d < DIMS; d++) o[i][d] = fma_rn(of_pair[i], v[d], o[i][d]);
                }
            };
            const int first = chunk * CHUNK_KEYS + start;
            if (common.start <= first && first + SLICE_KEYS <= common.end) {
#pragma unroll 8
                for (int key = start; key < start + SLICE_KEYS; key++) add_key(key, false);
            } else {
#pragma unroll 1
                for (int key = start; key < start + SLICE_KEYS; key++) add_key(key, true);
            }
            __syncthreads();
        }

        // 5. Join, where the pair saw a key; what is joined so far waits in `out`.
        const bool is_last = chunk == last_position / CHUNK_KEYS;
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const int pair = value_pair + i;
            if (pair >= tile.num_pairs) continue;
            float* const at = out_of(pair);
            const Range keys = shared.keys[pair];
#pragma unroll
            for (int d = 0; d < DIMS; d++) {
                float joined = is_first ? 0.0f : at[d];
                if (keys.start < keys.end) joined = fma_rn(o[i][d], shared.new_factor[pair], mul(joined, shared.old_factor[pair]));
                if (is_last) {
                    float sum = shared.running_sum[pair];
                    if (layer.sinks) {
                        const float old = shared.running_max[pair];
                        const float logit = layer.sinks[head_of(layer, tile, kv_head, pair)];
                        const float joint = max_nan(old, logit);
                        const float a = exp32(sub(old, joint)), b = exp32(sub(logit, joint));
                        sum = fma_rn(1.0f, b, mul(sum, a));
                        joined = mul(joined, a);
                    }
                    joined = div(joined, sum);
                }
                at[d] = joined;
            }
        }
    }
}

}  // namespace assay
