// Exact attention over f16 keys and values in blocks of 16 tokens. A block of 256 threads takes a tile: up to P pairs of
// (row, query head) of one key/value head, pair p being row p / group and head p % group of it, rows ascending. One
// thread is one key of a 256-key chunk for the scores, one element of the head for the values.
#include "decode.cuh"
#include "wide.cuh"

namespace assay {

template <int P>
struct ChunkShared {
    float p[CHUNK_KEYS][P];
    float warp_max[8][P];
    float max[P], sum[P];            // of the chunk
    float running_max[P], running_sum[P];
    float old_factor[P], new_factor[P];
    Range keys[P];
    uint32_t blocks[CHUNK_KEYS / BLOCK_TOKENS];  // of the chunk's keys, as far as the table goes
};

/// Adds `p·v` of one key to the pairs `first..first + N` that see it.
template <int P, int N, bool CHECKED>
__device__ __forceinline__ void add_value(const ChunkShared<P>& shared, int key, float v, int first, float (&o)[P]) {
    const float* p = &shared.p[key % CHUNK_KEYS][first];
#pragma unroll
    for (int i = 0; i < N; i++) {
        if (!CHECKED || shared.keys[first + i].has(key)) o[i] = fma_rn(p[i], v, o[i]);
    }
}

/// `o[i] += p·v` over `range`, keys ascending, pairs `first..first + N`; `CHECKED` asks of each pair whether it sees the key.
template <int P, int N, bool CHECKED>
__device__ __forceinline__ void add_values(
    const ChunkShared<P>& shared, const AttentionLayer& layer, const uint16_t* staged, int kv_head, int d, int first,
    Range range, float (&o)[P]) {
    const auto values_of = [&](int key) {
        if (staged) return staged + key % CHUNK_KEYS * layer.head_dim + d;
        const size_t block = (size_t)shared.blocks[key % CHUNK_KEYS / BLOCK_TOKENS] * layer.num_kv_heads + kv_head;
        return layer.v + (block * BLOCK_TOKENS + key % BLOCK_TOKENS) * layer.head_dim + d;
    };
    int key = range.start;
    for (; key < range.end && key % BLOCK_TOKENS != 0; key++) {
        add_value<P, N, CHECKED>(shared, key, half_at(values_of(key)), first, o);
    }
    // Whole blocks, all loads of one before its first use.
#pragma unroll 2
    for (; key + BLOCK_TOKENS <= range.end; key += BLOCK_TOKENS) {
        const uint16_t* from = values_of(key);
        uint16_t v[BLOCK_TOKENS];
#pragma unroll
        for (int i = 0; i < BLOCK_TOKENS; i++) v[i] = from[i * layer.head_dim];
#pragma unroll
        for (int i = 0; i < BLOCK_TOKENS; i++) add_value<P, N, CHECKED>(shared, key + i, half_at(&v[i]), first, o);
    }
    for (; key < range.end; key++) {
        add_value<P, N, CHECKED>(shared, key, half_at(values_of(key)), first, o);
    }
}

template <int P, int N>
__device__ __forceinline__ void chunk_values(
    const ChunkShared<P>& shared, const AttentionLayer& layer, const uint16_t* staged, int kv_head, int d, int first,
    Range all, Range common, float (&o)[P]) {
#pragma unroll
    for (int i = 0; i < N; i++) o[i] = 0.0f;
    add_values<P, N, true>(shared, layer, staged, kv_head, d, first, {all.start, common.start}, o);
    add_values<P, N, false>(shared, layer, staged, kv_head, d, first, common, o);
    add_values<P, N, true>(shared, layer, staged, kv_head, d, first, {common.end, all.end}, o);
}

/// Asks for the blocks of a chunk in shared memory, keys then values: a warp two blocks. What earlier passes wrote is
/// asked for before the kernel waits for the one that stores this pass's rows.
__device__ __forceinline__ void stage_chunk(
    const AttentionLayer& layer, const AttentionTile& tile, const uint32_t* table, int kv_head, int chunk, int first_key,
    int num_blocks, uint16_t* keys, uint16_t* values, uint64_t* arrived) {
#if ASSAY_HOPPER
    const int first = max(first_key / BLOCK_TOKENS, chunk * (CHUNK_KEYS / BLOCK_TOKENS));
    const int end = min(num_blocks, (chunk + 1) * (CHUNK_KEYS / BLOCK_TOKENS));
    const uint32_t barrier = shared_address(arrived), bytes = layer.head_dim * BLOCK_TOKENS * sizeof(uint16_t);
    if (threadIdx.x == 0) {
        barrier_init(barrier, 1);
        barrier_fence();
        barrier_expect(barrier, (end - first) * 2 * bytes);
    }
    __syncthreads();
    const auto ask = [&](bool is_old) {
        if (threadIdx.x % 32 != 0) return;
        for (int i = 0; i < 2; i++) {
            const int within = threadIdx.x / 32 * 2 + i, index = chunk * (CHUNK_KEYS / BLOCK_TOKENS) + within;
            if (index < first || index >= end || (index < tile.first_position / BLOCK_TOKENS) != is_old) continue;
            const size_t from = ((size_t)table[index] * layer.num_kv_heads + kv_head) * layer.head_dim * BLOCK_TOKENS;
            const int to = within * layer.head_dim * BLOCK_TOKENS;
            bulk_copy(shared_address(keys + to), layer.k + from, bytes, barrier);
            bulk_copy(shared_address(values + to), layer.v + from, bytes, barrier);
        }
    };
    ask(true);
    begin();
    ask(false);
#endif
}

/// Scratch of split chunks: `sums` `[row][head][chunk]` of (maximum, sum), `values` `[row][head][chunk][head_dim]`.
template <int P, bool SPLIT, bool STAGED>
__device__ __forceinline__ void attention(
    const AttentionLayer& layer, const AttentionTile* tiles, const uint32_t* tables, const float* q, int num_chunks,
    float2* sums, float* values, float* out) {
    extern __shared__ __align__(128) uint8_t shared_bytes[];
    float* const q_scaled = (float*)shared_bytes;  // [head_dim][P], then the staged chunk
    __shared__ ChunkShared<P> shared;
    __shared__ uint64_t arrived;
    if (!STAGED) begin();
    const AttentionTile tile = tiles[blockIdx.x];
    const int kv_head = blockIdx.y, head_dim = layer.head_dim;
    const int thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
    const uint32_t* table = tables + tile.table;
    const int group = layer.num_heads / layer.num_kv_heads;
    const int last_position = tile.first_position + (tile.first_pair + tile.num_pairs - 1) / group;
    const int first_position = tile.first_position + tile.first_pair / group;
    const int first_key = layer.window > 0 ? max(0, first_position + 1 - layer.window) : 0;
    int chunk = first_key / CHUNK_KEYS, end_chunk = last_position / CHUNK_KEYS + 1;
    if (SPLIT) {
        if ((int)blockIdx.z < chunk || (int)blockIdx.z >= end_chunk) return;
        chunk = blockIdx.z;
        end_chunk = chunk + 1;
    }
    uint16_t* const staged = (uint16_t*)(q_scaled + head_dim * P);
    const uint16_t* const values_at = STAGED ? staged + CHUNK_KEYS * head_dim : nullptr;
    if (STAGED) {
        const int num_blocks = last_position / BLOCK_TOKENS + 1;
        stage_chunk(
            layer, tile, table, kv_head, chunk, first_key, num_blocks, staged, staged + CHUNK_KEYS * head_dim, &arrived);
    }

    for (int i = thread; i < head_dim * P; i += blockDim.x) {
        const int d = i / P, pair = i % P;
        float scaled = 0.0f;
        if (pair < tile.num_pairs) {
            const size_t row = row_of(layer, tile, pair), head = head_of(layer, tile, kv_head, pair);
            scaled = mul(q[(row * layer.num_heads + head) * head_dim + d], layer.scale);
        }
        q_scaled[i] = scaled;
    }
    if (thread < P) {
        shared.running_max[thread] = NEG_INFINITY_F;
        shared.running_sum[thread] = 0.0f;
    }

    // Threads as (element of the head, group of pairs).
    int width = 16;
    while (width < head_dim) width *= 2;
    const int num_groups = CHUNK_KEYS / width, pairs_per_group = max(1, P / num_groups);
    const int d = thread % width, first = thread / width * pairs_per_group;
    const bool has_values = d < head_dim && first < P;
    float joined[P];
#pragma unroll
    for (int i = 0; i < P; i++) joined[i] = 0.0f;

    for (; chunk < end_chunk; chunk++) {
        __syncthreads();
        if (thread < P) {
            const Range none = {chunk * CHUNK_KEYS, chunk * CHUNK_KEYS};
            shared.keys[thread] = thread < tile.num_pairs ? keys_of(layer, tile, thread, chunk) : none;
        }
        const int num_blocks = last_position / BLOCK_TOKENS + 1;
        if (thread >= 32 && thread < 32 + CHUNK_KEYS / BLOCK_TOKENS) {
            const int block = chunk * (CHUNK_KEYS / BLOCK_TOKENS) + thread - 32;
            if (block < num_blocks) shared.blocks[thread - 32] = table[block];
        }
        __syncthreads();
        // What any pair sees, and what all do.
        Range all = {(chunk + 1) * CHUNK_KEYS, chunk * CHUNK_KEYS}, common = {chunk * CHUNK_KEYS, (chunk + 1) * CHUNK_KEYS};
        for (int pair = 0; pair < tile.num_pairs; pair++) {
            const Range keys = shared.keys[pair];
            if (keys.start < keys.end) {
                all = {min(all.start, keys.start), max(all.end, keys.end)};
            }
            common = {max(common.start, keys.start), min(common.end, keys.end)};
        }
        if (all.start >= all.end) continue;
        if (common.start >= common.end) common = {all.start, all.start};

#if ASSAY_HOPPER
        if (STAGED) barrier_wait(shared_address(&arrived), 0);
#endif
        // 1. Scores of this thread's key
        float s[P];
#pragma unroll
        for (int pair = 0; pair < P; pair++) s[pair] = 0.0f;
        const int key = chunk * CHUNK_KEYS + thread;
        if (all.has(key)) {
            const size_t block = (size_t)shared.blocks[thread / BLOCK_TOKENS] * layer.num_kv_heads + kv_head;
            const uint16_t* k = STAGED ? staged + thread / BLOCK_TOKENS * head_dim * BLOCK_TOKENS
                                       : layer.k + block * head_dim * BLOCK_TOKENS;
            k += key % BLOCK_TOKENS;
            // head_dim is a multiple of 16: all loads of sixteen elements before the first use.
            for (int start = 0; start < head_dim; start += 16) {
                uint16_t values[16];
#pragma unroll
                for (int i = 0; i < 16; i++) values[i] = k[(start + i) * BLOCK_TOKENS];
#pragma unroll
                for (int i = 0; i < 16; i++) {
                    const float value = half_at(&values[i]);
#pragma unroll
                    for (int pair = 0; pair < P; pair++) {
                        s[pair] = fma_rn(q_scaled[(start + i) * P + pair], value, s[pair]);
                    }
                }
            }
            if (layer.softcap > 0.0f) {
#pragma unroll
                for (int pair = 0; pair < P; pair++) s[pair] = softcap_one(s[pair], layer.softcap);
            }
        }

        // 2. Maximum over the keys in sight
#pragma unroll
        for (int pair = 0; pair < P; pair++) {
            float largest = shared.keys[pair].has(key) ? s[pair] : NEG_INFINITY_F;
#pragma unroll
            for (int step = 16; step > 0; step /= 2) {
                largest = max_or_nan(largest, __shfl_xor_sync(0xFFFFFFFFu, largest, step));
            }
            if (lane == 0) shared.warp_max[warp][pair] = largest;
        }
        __syncthreads();
        if (thread < P) {
            float largest = NEG_INFINITY_F;
            for (int w = 0; w < 8; w++) largest = max_or_nan(largest, shared.warp_max[w][thread]);
            shared.max[thread] = largest;
        }
        __syncthreads();

        // 3. Weights, and their sums by lanes of the position
#pragma unroll
        for (int pair = 0; pair < P; pair++) {
            shared.p[thread][pair] = shared.keys[pair].has(key) ? exp32(sub(s[pair], shared.max[pair])) : 0.0f;
        }
        __syncthreads();
        for (int pair = warp; pair < P; pair += 8) {
            float sum = 0.0f;
            const Range keys = shared.keys[pair];
            for (int i = lane; i < CHUNK_KEYS; i += 32) {
                if (keys.has(chunk * CHUNK_KEYS + i)) sum = add(sum, shared.p[i][pair]);
            }
            sum = sum_lanes(sum);
            if (lane == 0) shared.sum[pair] = sum;
        }
        __syncthreads();

        // 4. Values
        float o[P];
        if (has_values) {
            switch (pairs_per_group) {
                case 1: chunk_values<P, 1>(shared, layer, values_at, kv_head, d, first, all, common, o); break;
                case 2: chunk_values<P, (P < 2 ? P : 2)>(shared, layer, values_at, kv_head, d, first, all, common, o); break;
                case 4: chunk_values<P, (P < 4 ? P : 4)>(shared, layer, values_at, kv_head, d, first, all, common, o); break;
                case 8: chunk_values<P, (P < 8 ? P : 8)>(shared, layer, values_at, kv_head, d, first, all, common, o); break;
                default: chunk_values<P, P>(shared, layer, values_at, kv_head, d, first, all, common, o); break;
            }
        }

        if (SPLIT) {
            if (thread < tile.num_pairs) {
                const size_t row = row_of(layer, tile, thread), head = head_of(layer, tile, kv_head, thread);
                sums[(row * layer.num_heads + head) * num_chunks + chunk] = make_float2(shared.max[thread], shared.sum[thread]);
            }
#pragma unroll
            for (int i = 0; i < P; i++) {
                const int pair = first + i;
                if (has_values && i < pairs_per_group && pair < tile.num_pairs) {
                    const size_t row = row_of(layer, tile, pair), head = head_of(layer, tile, kv_head, pair);
                    values[((row * layer.num_heads + head) * num_chunks + chunk) * head_dim + d] = o[i];
                }
            }
            return;
        }

        // 5. Join, where the pair saw a key
        if (thread < P) {
            const Range keys = shared.keys[thread];
            if (keys.start < keys.end) {
                const float old = shared.running_max[thread];
                const float joint = max_or_nan(old, shared.max[thread]);
                const float a = exp32(sub(old, joint)), b = exp32(sub(shared.max[thread], joint));
                shared.running_sum[thread] = fma_rn(shared.sum[thread], b, mul(shared.running_sum[thread], a));
                shared.running_max[thread] = joint;
                shared.old_factor[thread] = a;
                shared.new_factor[thread] = b;
            }
        }
        __syncthreads();
#pragma unroll
        for (int i = 0; i < P; i++) {
            const int pair = min(first + i, P - 1);
            if (has_values && i < pairs_per_group && shared.keys[pair].start < shared.keys[pair].end) {
                joined[i] = fma_rn(o[i], shared.new_factor[pair], mul(joined[i], shared.old_factor[pair]));
            }
        }
    }
    if (SPLIT) return;
    __syncthreads();

    // 6. The sink, then o / l
#pragma unroll
    for (int i = 0; i < P; i++) {
        const int pair = first + i;
        if (!has_values || i >= pairs_per_group || pair >= tile.num_pairs) continue;
        const size_t row = row_of(layer, tile, pair), head = head_of(layer, tile, kv_head, pair);
        float sum = shared.running_sum[pair], o = joined[i];
        if (layer.sinks) {
            const float old = shared.running_max[pair], logit = layer.sinks[head];
            const float joint = max_or_nan(old, logit);
            const float a = exp32(sub(old, joint)), b = exp32(sub(logit, joint));
            sum = fma_rn(1.0f, b, mul(sum, a));
            o = mul(o, a);
        }
        out[(row * layer.num_heads + head) * head_dim + d] = div(o, sum);
    }
}

}  // namespace assay

/// Joins the chunks of split attention: a warp a row and 256 elements of its heads, a lane eight of one head. The rows'
/// integers are made on the way where `integers` has room for them.
extern "C" __global__ void attention_join(
    assay::AttentionLayer layer, const uint32_t* positions, int num_chunks, const float2* sums, const float* values,
    float* out, assay::Integers integers) {
    assay::begin();
    assay::join_step(layer, blockIdx.y, blockIdx.x, positions[blockIdx.y], num_chunks, sums, values, out, integers);
}

/// Stores K and V of every row: slots[row] = block·16 + position mod 16; grid (key/value heads, rows).
extern "C" __global__ void kv_write(
    uint16_t* to_k, uint16_t* to_v, int num_kv_heads, int head_dim, const uint32_t* slots, const float* k, const float* v) {
    assay::begin();
    const size_t at = ((size_t)blockIdx.y * num_kv_heads + blockIdx.x) * head_dim;
    assay::store_head(slots[blockIdx.y], blockIdx.x, num_kv_heads, head_dim, k + at, v + at, to_k, to_v);
}

#define ASSAY_ATTENTION(NAME, P, SPLIT, STAGED)                                                                            \
    extern "C" __global__ void __launch_bounds__(256) attention_##NAME##_##P(                                      \
        assay::AttentionLayer layer, const assay::AttentionTile* tiles, const uint32_t* tables, const float* q,    \
        int num_chunks, float2* sums, float* values, float* out) {                                                 \
        assay::attention<P, SPLIT, STAGED>(layer, tiles, tables, q, num_chunks, sums, values, out);                        \
    }
ASSAY_ATTENTION(split, 4, true, false)
ASSAY_ATTENTION(split, 8, true, false)
ASSAY_ATTENTION(split, 16, true, false)
ASSAY_ATTENTION(whole, 16, false, false)
// Launched on compute capability 9.0 only.
ASSAY_ATTENTION(staged, 4, true, ASSAY_HOPPER)
ASSAY_ATTENTION(staged, 8, true, ASSAY_HOPPER)
ASSAY_ATTENTION(staged, 16, true, ASSAY_HOPPER)

/// Grid (tiles, key/value heads, chunks); a tile is up to two heads of one row.
extern "C" __global__ void __launch_bounds__(assay::DECODE_THREADS) attention_decode(
    assay::AttentionLayer layer, const assay::AttentionTile* tiles, const uint32_t* tables, const float* q, int num_chunks,
    float2* sums, float* values, uint32_t* arrivals, float* out, assay::Integers integers) {
#if ASSAY_HOPPER
    assay::attention_decode(layer, tiles, tables, q, num_chunks, sums, values, arrivals, out, integers);
#endif
}

#define ASSAY_ATTENTION_WIDE(HEAD_DIM)                                                                             \
    extern "C" __global__ void __launch_bounds__(256, 2) attention_wide_##HEAD_DIM(                                \
        assay::AttentionLayer layer, const assay::AttentionTile* tiles, const uint32_t* tables, const float* q,    \
        float* out) {                                                                                              \
        assay::attention_wide<HEAD_DIM>(layer, tiles, tables, q, out);                                             \
    }
ASSAY_ATTENTION_WIDE(64)
ASSAY_ATTENTION_WIDE(128)
