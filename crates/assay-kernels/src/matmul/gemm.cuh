// Many tokens on compute capability 9.0: a block of 8 warps takes 128 rows and 128 tokens. Each warp streams the panel
// of its 16 rows through a ring of its own in shared memory; activations pass through stages that all warps share, four
// 32-blocks each. Sums are exact integers of products that four warps make together; the chains over them are the
// contract's, per output, in registers.
#pragma once

#include "targets.cuh"

namespace assay {

constexpr int GEMM_WARPS = 8;
constexpr int GEMM_TILES = 32;
constexpr int GEMM_TOKENS = 4 * GEMM_TILES;
static_assert(GEMM_TOKENS == GROUP_TOKENS, "a block of threads takes a group");
constexpr int GEMM_STAGES = 4;
/// 32-blocks of a stage: half a step.
constexpr int HALF_BLOCKS = BLOCKS_PER_STEP / 2;
/// 256-blocks of a warp's ring.
constexpr int GEMM_SLOTS = 2;
/// Tiles of one product: 64 columns.
constexpr int CHUNK_TILES = 8;
constexpr int CHUNKS = GEMM_TILES / CHUNK_TILES;

/// What the tokens have of four 32-blocks.
struct GemmStage {
    uint32_t words[HALF_BLOCKS][GEMM_TILES][64];
    float sums[HALF_BLOCKS][GEMM_TOKENS];
    float scales[GEMM_TOKENS];
};

/// Shared memory; the rings follow.
struct GemmShared {
    GemmStage stages[GEMM_STAGES];
    uint64_t full[GEMM_STAGES], empty[GEMM_STAGES], weights[GEMM_WARPS][GEMM_SLOTS];
};

// What `matmul/cuda.rs` asks for.
static_assert(sizeof(GemmShared) == 141504, "shared memory");

#if ASSAY_HOPPER

/// Weights as signed bytes: a panel's quants are unsigned, above their zero point.
template <typename Q>
__device__ __forceinline__ uint32_t signed_quants(uint32_t quants) {
    if (Q::ZERO_POINT == 0) return quants;
    // No byte carries: quant + 128 - zero point is below 256.
    return (quants + (0x80u - Q::ZERO_POINT) * 0x01010101u) ^ 0x80808080u;
}

/// What a whole 256-block says of two rows of a panel, lane/4 and lane/4 + 8.
template <typename S>
struct RowPair {
    typename S::Row of[2];
    __device__ __forceinline__ explicit RowPair(Shared section)
        : of{S::row_of(section, threadIdx.x % 32 / 4), S::row_of(section, threadIdx.x % 32 / 4 + 8)} {}
};

/// What the two rows have of one 32-block that lies in shared memory.
template <typename Q, typename S>
struct BlockWeights {
    static constexpr int PARTS = BLOCK / S::SUB_BLOCK;
    uint32_t a[4];
    float w[PARTS][2], offset[PARTS][2];

    __device__ __forceinline__ void load(const Step<Q, S, Shared>& step, const RowPair<S>& rows, int b) {
        const int lane = threadIdx.x % 32, row = lane / 4, pair = lane % 4;
        const Shared sub_block = step.quants + b * Q::SUB_BLOCK_BYTES;
        const Pair upper = Q::pair(sub_block, row, pair), lower = Q::pair(sub_block, row + 8, pair);
        a[0] = signed_quants<Q>(upper.even), a[1] = signed_quants<Q>(lower.even);
        a[2] = signed_quants<Q>(upper.odd), a[3] = signed_quants<Q>(lower.odd);
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
#pragma unroll
            for (int r = 0; r < 2; r++) {
                w[part][r] = S::weight(step.section, b * PARTS + part, row + 8 * r, rows.of[r]);
                offset[part][r] = S::offset(step.section, b * PARTS + part, row + 8 * r, rows.of[r]);
            }
        }
    }

    /// The A operand of sub-block `part`: of a 16-wide one only the pairs of its half take part.
    __device__ __forceinline__ void operand(int part, uint32_t (&out)[4]) const {
        const bool takes_part = PARTS == 1 || (int)(threadIdx.x % 4) / 2 == part;
#pragma unroll
        for (int i = 0; i < 4; i++) out[i] = takes_part ? a[i] : 0;
    }
};

/// Adds sub-block sums `c` of chunk `chunk` to the level-1 chains.
template <typename S>
__device__ __forceinline__ void add_chunk(
    const int (&c)[4 * CHUNK_TILES], int chunk, const float* sums, const float (&w)[2], const float (&offset)[2],
    float (&acc)[GEMM_TILES][2]) {
#pragma unroll
    for (int quad = 0; quad < CHUNK_TILES / 4; quad++) {
        float4 sum = make_float4(0, 0, 0, 0);
        if (S::HAS_OFFSET) sum = *(const float4*)(sums + (chunk * (CHUNK_TILES / 4) + quad) * 16 + threadIdx.x % 4 * 4);
        const float of_tile[4] = {sum.x, sum.y, sum.z, sum.w};
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int tile = quad * 4 + i;
            float(&to)[2] = acc[chunk * CHUNK_TILES + tile];
#pragma unroll
            for (int r = 0; r < 2; r++) {
                const int s = c[4 * tile + 2 * r] * 256 + c[4 * tile + 2 * r + 1];
                to[r] = fma_rn(__int2float_rn(s), w[r], to[r]);
                if (S::HAS_OFFSET) to[r] = fma_rn(of_tile[i], offset[r], to[r]);
            }
        }
    }
}

/// Adds N 32-blocks of a stage, `first` of the step on. One product is always under way while the one before is added.
template <typename Q, typename S, int N>
__device__ __forceinline__ void add_blocks(
    const Step<Q, S, Shared>& step, const RowPair<S>& rows, int first, const GemmStage& stage,
    float (&acc)[GEMM_TILES][2]) {
    constexpr int PARTS = BLOCK / S::SUB_BLOCK, PER_BLOCK = PARTS * CHUNKS, COUNT = N * PER_BLOCK;
    const int in_stage = first % HALF_BLOCKS;
    const uint32_t words = shared_address(stage.words[in_stage]);
    const auto columns = [&](int i) {
        const uint32_t tile = i % CHUNKS * CHUNK_TILES, block = i / PER_BLOCK;
        return wgmma_columns(words + (block * GEMM_TILES + tile) * 256, 128, 256);
    };
    BlockWeights<Q, S> weights[2];
    uint32_t a[2][4];
    int c[2][4 * CHUNK_TILES];
    weights[0].load(step, rows, first);
    weights[0].operand(0, a[0]);
    hold(a[0]);
    wgmma_fence();
    wgmma(c[0], a[0], columns(0));
    wgmma_commit();
#pragma unroll
    for (int i = 0; i < COUNT; i++) {
        const int block = i / PER_BLOCK, part = i / CHUNKS % PARTS, chunk = i % CHUNKS, next = i + 1;
        const BlockWeights<Q, S>& here = weights[block % 2];
        if (i % PER_BLOCK == 0 && block + 1 < N) weights[(block + 1) % 2].load(step, rows, first + block + 1);
        if (next < COUNT) {
            if (next % CHUNKS == 0) {
                weights[next / PER_BLOCK % 2].operand(next / CHUNKS % PARTS, a[next / CHUNKS % 2]);
                hold(a[next / CHUNKS % 2]);
            }
            hold(c[next % 2]);
            wgmma_fence();
            wgmma(c[next % 2], a[next / CHUNKS % 2], columns(next));
            wgmma_commit();
            wgmma_wait<1>();
        } else {
            wgmma_wait<0>();
        }
        hold(c[i % 2]);
        if (chunk == CHUNKS - 1) hold(a[i / CHUNKS % 2]);
        add_chunk<S>(c[i % 2], chunk, stage.sums[in_stage + block], here.w[part], here.offset[part], acc);
    }
}

template <typename Q, typename S>
__device__ __forceinline__ void gemm_wide(
    const Targets& targets, size_t panel_bytes, int k, int num_tokens, const Activations& x) {
    constexpr int SLOT = Step<Q, S, Shared>::FULL;
    extern __shared__ __align__(128) uint8_t shared_bytes[];
    GemmShared& shared = *(GemmShared*)shared_bytes;
    const int num_blocks = k / BLOCK, num_steps = (num_blocks + 7) / 8, num_halves = (num_blocks + 3) / 4;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int first_token = blockIdx.x * GEMM_TOKENS, first_tile = first_token / 4;
    uint8_t* const ring = shared_bytes + sizeof(GemmShared) + warp * GEMM_SLOTS * SLOT;
    uint64_t* const ring_full = shared.weights[warp];

    // A warp past the last panel works along on the last, for the products of its four.
    int index = blockIdx.y * GEMM_WARPS + warp;
    const bool has_panel = index < targets.end_panel[2];
    index = min(index, targets.end_panel[2] - 1);
    const uint8_t* panels;
    const Target target = find(targets, index, panels);
    const uint8_t* panel = panels + (size_t)index * panel_bytes;
    // One lane asks for 256-block `step` of the warp's panel.
    const auto ask = [&](int step) {
        const int blocks = min(num_blocks - step * BLOCKS_PER_STEP, BLOCKS_PER_STEP);
        const uint32_t bytes = S::section_bytes(blocks) + blocks * Q::SUB_BLOCK_BYTES;
        const uint32_t barrier = shared_address(&ring_full[step % GEMM_SLOTS]);
        barrier_expect(barrier, bytes);
        bulk_copy(shared_address(ring + step % GEMM_SLOTS * SLOT), panel + (size_t)step * SLOT, bytes, barrier);
    };
    if (lane == 0) {
        for (int i = 0; i < GEMM_SLOTS; i++) barrier_init(shared_address(&ring_full[i]), 1);
        if (warp == 0) {
            for (int i = 0; i < GEMM_STAGES; i++) {
                barrier_init(shared_address(&shared.full[i]), 1);
                barrier_init(shared_address(&shared.empty[i]), GEMM_WARPS);
            }
        }
        barrier_fence();
        for (int step = 0; step < min(GEMM_SLOTS, num_steps); step++) ask(step);
    }
    __syncthreads();
    begin();

    // One thread brings half step `half` to its stage. Of a group of tokens 32-blocks follow each other.
    const auto bring = [&](int half) {
        GemmStage& stage = shared.stages[half % GEMM_STAGES];
        const uint32_t full = shared_address(&shared.full[half % GEMM_STAGES]);
        const int first = half * HALF_BLOCKS, blocks = min(num_blocks - first, HALF_BLOCKS);
        const uint32_t of_words = blocks * sizeof(stage.words[0]), of_sums = S::HAS_OFFSET ? blocks * sizeof(stage.sums[0]) : 0;
        barrier_expect(full, of_words + of_sums + sizeof(stage.scales));
        bulk_copy(shared_address(stage.words), x.words + words_of(first_tile, first, num_blocks), of_words, full);
        if (S::HAS_OFFSET) {
            bulk_copy(shared_address(stage.sums), x.sums + place_of(first_token, first, num_blocks), of_sums, full);
        }
        const float* scales = x.scales + place_of(first_token, half / 2, num_steps);
        bulk_copy(shared_address(stage.scales), scales, sizeof(stage.scales), full);
    };
    if (threadIdx.x == 0) {
        for (int half = 0; half < min(GEMM_STAGES - 1, num_halves); half++) bring(half);
    }

    float y[GEMM_TILES][2] = {}, acc[GEMM_TILES][2] = {};
#pragma unroll 1
    for (int half = 0; half < num_halves; half++) {
        const int step = half / 2, first = half % 2 * HALF_BLOCKS;
        const GemmStage& stage = shared.stages[half % GEMM_STAGES];
        if (first == 0) barrier_wait(shared_address(&ring_full[step % GEMM_SLOTS]), step / GEMM_SLOTS % 2);
        barrier_wait(shared_address(&shared.full[half % GEMM_STAGES]), half / GEMM_STAGES % 2);
        const int in_step = min(num_blocks - step * BLOCKS_PER_STEP, BLOCKS_PER_STEP);
        const Step<Q, S, Shared> here(Shared{shared_address(ring + step % GEMM_SLOTS * SLOT)}, in_step);
        const RowPair<S> rows(here.section);
        if (first + HALF_BLOCKS <= in_step) {
            add_blocks<Q, S, HALF_BLOCKS>(here, rows, first, stage, acc);
        } else {
#pragma unroll 1
            for (int b = first; b < in_step; b++) add_blocks<Q, S, 1>(here, rows, b, stage, acc);
        }
        if (first != 0 || half + 1 == num_halves) {
#pragma unroll
            for (int quad = 0; quad < GEMM_TILES / 4; quad++) {
                const float4 scale = *(const float4*)(stage.scales + quad * 16 + lane % 4 * 4);
                const float of_tile[4] = {scale.x, scale.y, scale.z, scale.w};
#pragma unroll
                for (int i = 0; i < 4; i++) {
#pragma unroll
                    for (int r = 0; r < 2; r++) {
                        y[quad * 4 + i][r] = fma_rn(acc[quad * 4 + i][r], of_tile[i], y[quad * 4 + i][r]);
                        acc[quad * 4 + i][r] = 0.0f;
                    }
                }
            }
            __syncwarp();
            if (lane == 0 && step + GEMM_SLOTS < num_steps) ask(step + GEMM_SLOTS);
        }
        // Every lane has read what it needs of the stage before one lane says so.
        __syncwarp();
        if (lane == 0) barrier_arrive(shared_address(&shared.empty[half % GEMM_STAGES]));
        // The stage of the half before: by now every warp has most likely left it.
        if (threadIdx.x == 0 && half + GEMM_STAGES - 1 < num_halves) {
            const int before = half - 1;
            if (before >= 0) barrier_wait(shared_address(&shared.empty[before % GEMM_STAGES]), before / GEMM_STAGES % 2);
            bring(half + GEMM_STAGES - 1);
        }
        __syncwarp();
    }
    if (!has_panel) return;
#pragma unroll
    for (int tile = 0; tile < GEMM_TILES; tile++) {
        const int token = first_token + 4 * tile + lane % 4;
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const int row = index * PANEL_ROWS + lane / 4 + 8 * r;
            if (token < num_tokens && row < target.n) target.store(row, token, y[tile][r]);
        }
    }
}

#endif

}  // namespace assay
