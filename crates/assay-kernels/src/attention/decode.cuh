// Attention of sequences that have one row in the pass: a block of 256 threads takes one or two query heads of a
// key/value head and a chunk of 256 keys, which the copy engine brings. The block that is the last to end joins the chunks.
#pragma once

#include "pairs.cuh"

namespace assay {

constexpr int DECODE_PAIRS = 2;
constexpr int DECODE_THREADS = 256;
static_assert(DECODE_THREADS / 32 * 2 == CHUNK_KEYS / BLOCK_TOKENS, "a warp asks for two blocks");
/// Bytes between the keys of two blocks beyond their own, so that threads that read together meet in no bank.
constexpr int KEY_PAD = 32;

/// Row `row`'s chunks, joined: 256 elements of its heads by a warp, a lane eight of one head, and their integers.
__device__ __forceinline__ void join_step(
    const AttentionLayer& layer, int row, int step, int position, int num_chunks, const float2* sums,
    const float* values, float* out, const Integers& integers) {
    constexpr int AT_ONCE = 4;
    const int n = layer.num_heads * layer.head_dim;
    const int at = step * 256 + threadIdx.x % 32 * 8, head = at / layer.head_dim, d = at % layer.head_dim;
    float o[8] = {};
    if (at < n) {
        const size_t first = ((size_t)row * layer.num_heads + head) * num_chunks;
        const int first_key = layer.window > 0 ? max(0, position + 1 - layer.window) : 0;
        const int end_chunk = position / CHUNK_KEYS + 1;
        float largest = NEG_INFINITY_F, sum = 0.0f;
        for (int start = first_key / CHUNK_KEYS; start < end_chunk; start += AT_ONCE) {
            // All of some chunks is asked for before its first use. Other multiprocessors wrote it: not by this one's cache.
            float2 parts[AT_ONCE];
            float4 low[AT_ONCE], high[AT_ONCE];
#pragma unroll
            for (int c = 0; c < AT_ONCE; c++) {
                const size_t chunk = first + min(start + c, end_chunk - 1);
                parts[c] = __ldcg(sums + chunk);
                low[c] = __ldcg((const float4*)(values + chunk * layer.head_dim + d));
                high[c] = __ldcg((const float4*)(values + chunk * layer.head_dim + d + 4));
            }
#pragma unroll
            for (int c = 0; c < AT_ONCE; c++) {
                if (start + c >= end_chunk) break;
                const float o_c[8] = {low[c].x, low[c].y, low[c].z, low[c].w, high[c].x, high[c].y, high[c].z, high[c].w};
                const float joint = max_or_nan(largest, parts[c].x);
                const float a = exp32(sub(largest, joint)), b = exp32(sub(parts[c].x, joint));
                sum = fma_rn(parts[c].y, b, mul(sum, a));
#pragma unroll
                for (int i = 0; i < 8; i++) o[i] = fma_rn(o_c[i], b, mul(o[i], a));
                largest = joint;
            }
        }
        if (layer.sinks) {
            const float logit = layer.sinks[head];
            const float joint = max_or_nan(largest, logit);
            const float a = exp32(sub(largest, joint)), b = exp32(sub(logit, joint));
            sum = fma_rn(1.0f, b, mul(sum, a));
#pragma unroll
            for (int i = 0; i < 8; i++) o[i] = mul(o[i], a);
        }
#pragma unroll
        for (int i = 0; i < 8; i++) o[i] = div(o[i], sum);
        store_eight_of(out + (size_t)row * n, at, n, o);
    }
    if (integers.words) quantize_step(o, row, step, n, integers);
}

#if ASSAY_HOPPER

/// Which of the tiles of a row, all key/value heads', head `head` belongs to.
__device__ __forceinline__ int tile_of_head(int head, int group) {
    const int tiles = (group + DECODE_PAIRS - 1) / DECODE_PAIRS;
    return head / group * tiles + head % group / DECODE_PAIRS;
}

struct DecodeShared {
    float p[DECODE_PAIRS][CHUNK_KEYS];
    float warp_max[DECODE_THREADS / 32];
    float sum[DECODE_PAIRS];
    int is_last[8];
    uint64_t arrived;
};

/// Scratch: `sums` `[row][head][chunk]` of (maximum, sum), `values` `[row][head][chunk][head_dim]`, `arrivals`
/// `[row][256 elements]`, all zero between launches.
__device__ __forceinline__ void attention_decode(
    const AttentionLayer& layer, const AttentionTile* tiles, const uint32_t* tables, const float* q, int num_chunks,
    float2* sums, float* values, uint32_t* arrivals, float* out, const Integers& integers) {
    extern __shared__ __align__(128) uint8_t shared_bytes[];
    __shared__ DecodeShared shared;
    const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
    const int head_dim = layer.head_dim, kv_head = blockIdx.y, chunk = blockIdx.z;
    const int block_bytes = head_dim * BLOCK_TOKENS * sizeof(uint16_t);
    uint8_t* const keys = shared_bytes;                                           // [block][head_dim][16], padded
    uint8_t* const key_values = keys + (CHUNK_KEYS / BLOCK_TOKENS) * (block_bytes + KEY_PAD);  // [key][head_dim]
    float* const q_scaled = (float*)(key_values + (CHUNK_KEYS / BLOCK_TOKENS) * block_bytes);  // [pair][head_dim]

    const AttentionTile tile = tiles[blockIdx.x];
    const int position = tile.first_position;
    const int first_key = layer.window > 0 ? max(0, position + 1 - layer.window) : 0;
    if (chunk < first_key / CHUNK_KEYS || chunk > position / CHUNK_KEYS) return;
    const int start = max(first_key, chunk * CHUNK_KEYS), end = min(position + 1, (chunk + 1) * CHUNK_KEYS);

    // 1. The chunk's blocks: what earlier passes wrote is asked for before the kernel waits for the one that stores this
    //    pass's rows.
    const uint32_t barrier = shared_address(&shared.arrived);
    const int first_block = start / BLOCK_TOKENS, end_block = (end + BLOCK_TOKENS - 1) / BLOCK_TOKENS;
    const int num_old = min(end_block, position / BLOCK_TOKENS);
    // Each warp asks for two blocks: one instruction of many lanes would take as many turns.
    const int within = warp * 2 + lane, block = chunk * (CHUNK_KEYS / BLOCK_TOKENS) + within;
    const bool has_block = lane < 2 && block >= first_block && block < end_block;
    const uint32_t stored = has_block ? tables[tile.table + block] : 0;
    const auto ask = [&]() {
        const size_t from = ((size_t)stored * layer.num_kv_heads + kv_head) * head_dim * BLOCK_TOKENS;
        bulk_copy(shared_address(keys + within * (block_bytes + KEY_PAD)), layer.k + from, block_bytes, barrier);
        bulk_copy(shared_address(key_values + within * block_bytes), layer.v + from, block_bytes, barrier);
    };
    if (thread == 0) {
        barrier_init(barrier, 1);
        barrier_fence();
        barrier_expect(barrier, (end_block - first_block) * 2 * block_bytes);
    }
    __syncthreads();
    if (has_block && block < num_old) ask();
    begin();
    if (has_block && block >= num_old) ask();

    // 2. Queries, scaled
    const int group = layer.num_heads / layer.num_kv_heads, first_head = kv_head * group + tile.first_pair % group;
    const float* const heads = q + ((size_t)tile.first_row * layer.num_heads + first_head) * head_dim;
    for (int i = thread; i < DECODE_PAIRS * head_dim; i += DECODE_THREADS) {
        q_scaled[i] = i < tile.num_pairs * head_dim ? mul(heads[i], layer.scale) : 0.0f;
    }
    __syncthreads();
    barrier_wait(barrier, 0);

    // 3. Scores: a thread two neighbouring keys of one head
    constexpr int PAIR_THREADS = DECODE_THREADS / DECODE_PAIRS;
    const int pair = thread / PAIR_THREADS, key = 2 * (thread % PAIR_THREADS), at = chunk * CHUNK_KEYS + key;
    const bool has[2] = {at >= start && at < end, at + 1 >= start && at + 1 < end};
    float s[2] = {0.0f, 0.0f};
    if (has[0] || has[1]) {
        const uint32_t* k = (const uint32_t*)(keys + key / BLOCK_TOKENS * (block_bytes + KEY_PAD)) + key % BLOCK_TOKENS / 2;
        const float* of = q_scaled + pair * head_dim;
        for (int d = 0; d < head_dim; d += 16) {
            uint32_t words[16];
#pragma unroll
            for (int i = 0; i < 16; i++) words[i] = k[(d + i) * (BLOCK_TOKENS / 2)];
#pragma unroll
            for (int i = 0; i < 16; i += 4) {
                const float4 four = *(const float4*)(of + d + i);
                const float qs[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    const uint32_t word = words[i + j];
                    s[0] = fma_rn(qs[j], __half2float(__ushort_as_half((uint16_t)(word & 0xFFFFu))), s[0]);
                    s[1] = fma_rn(qs[j], __half2float(__ushort_as_half((uint16_t)(word >> 16))), s[1]);
                }
            }
        }
        if (layer.softcap > 0.0f) s[0] = softcap_one(s[0], layer.softcap), s[1] = softcap_one(s[1], layer.softcap);
    }

    // 4. Maximum over the keys in sight, and weights
    float largest = max_or_nan(has[0] ? s[0] : NEG_INFINITY_F, has[1] ? s[1] : NEG_INFINITY_F);
#pragma unroll
    for (int step = 16; step > 0; step /= 2) largest = max_or_nan(largest, __shfl_xor_sync(0xFFFFFFFFu, largest, step));
    if (lane == 0) shared.warp_max[warp] = largest;
    __syncthreads();
    constexpr int PAIR_WARPS = PAIR_THREADS / 32;
#pragma unroll
    for (int w = 0; w < PAIR_WARPS; w++) largest = max_or_nan(largest, shared.warp_max[pair * PAIR_WARPS + w]);
    *(float2*)&shared.p[pair][key] =
        make_float2(has[0] ? exp32(sub(s[0], largest)) : 0.0f, has[1] ? exp32(sub(s[1], largest)) : 0.0f);
    __syncthreads();

    const auto part_of = [&](int pair) {
        return ((size_t)tile.first_row * layer.num_heads + first_head + pair) * num_chunks + chunk;
    };
    // 5. Values: a thread two neighbouring elements of one head, keys ascending
    const int half_dim = head_dim / 2, value_pair = thread / half_dim;
    if (thread < DECODE_PAIRS * half_dim && value_pair < tile.num_pairs) {
        const int d = 2 * (thread % half_dim);
        const float* const p = shared.p[value_pair];
        const uint32_t* const v = (const uint32_t*)key_values + d / 2;
        float o[2] = {0.0f, 0.0f};
        const auto add_key = [&](float weight, uint32_t word) {
            o[0] = fma_rn(weight, __half2float(__ushort_as_half((uint16_t)(word & 0xFFFFu))), o[0]);
            o[1] = fma_rn(weight, __half2float(__ushort_as_half((uint16_t)(word >> 16))), o[1]);
        };
        int i = start % CHUNK_KEYS;
        const int stop = (end - 1) % CHUNK_KEYS + 1;
        for (; i < stop && i % 16 != 0; i++) add_key(p[i], v[i * half_dim]);
        for (; i + 16 <= stop; i += 16) {
            uint32_t words[16];
            float4 weights[4];
#pragma unroll
            for (int j = 0; j < 16; j++) words[j] = v[(i + j) * half_dim];
#pragma unroll
            for (int j = 0; j < 4; j++) weights[j] = *(const float4*)(p + i + 4 * j);
#pragma unroll
            for (int j = 0; j < 4; j++) {
                add_key(weights[j].x, words[4 * j]), add_key(weights[j].y, words[4 * j + 1]);
                add_key(weights[j].z, words[4 * j + 2]), add_key(weights[j].w, words[4 * j + 3]);
            }
        }
        for (; i < stop; i++) add_key(p[i], v[i * half_dim]);
        *(float2*)(values + part_of(value_pair) * head_dim + d) = make_float2(o[0], o[1]);
    }
    // 6. Meanwhile the sums of the weights, by lanes of the position
    const int sum_pair = warp - (DECODE_THREADS / 32 - DECODE_PAIRS);
    if (sum_pair >= 0) {
        float sum = 0.0f;
#pragma unroll
        for (int i = lane; i < CHUNK_KEYS; i += 32) {
            const int at = chunk * CHUNK_KEYS + i;
            if (at >= start && at < end) sum = add(sum, shared.p[sum_pair][i]);
        }
        sum = sum_lanes(sum);
        if (lane == 0) shared.sum[sum_pair] = sum;
    }
    __syncthreads();
    if (thread % PAIR_THREADS == 0 && pair < tile.num_pairs) {
        sums[part_of(pair)] = make_float2(largest, shared.sum[pair]);
    }

    // 7. Of each 256 elements the last block of threads joins the chunks: all others' parts are there
    __threadfence();
    __syncthreads();
    const int n = layer.num_heads * head_dim, num_steps = (n + 255) / 256;
    const int first_step = first_head * head_dim / 256;
    const int end_step = ((first_head + tile.num_pairs) * head_dim + 255) / 256;
    if (thread < end_step - first_step) {
        const int step = first_step + thread;
        const int first_tile = tile_of_head(step * 256 / head_dim, group);
        const int last_tile = tile_of_head((min(n, (step + 1) * 256) - 1) / head_dim, group);
        const int chunks = position / CHUNK_KEYS - first_key / CHUNK_KEYS + 1;
        const uint32_t expected = (last_tile - first_tile + 1) * chunks;
        uint32_t* const counter = arrivals + tile.first_row * num_steps + step;
        const bool is_last = atomicAdd(counter, 1) + 1 == expected;
        if (is_last) *counter = 0;
        shared.is_last[thread] = is_last;
    }
    __syncthreads();
    if (warp < end_step - first_step && shared.is_last[warp]) {
        __threadfence();
        join_step(layer, tile.first_row, first_step + warp, position, num_chunks, sums, values, out, integers);
    }
}

#endif

}  // namespace assay
