// `y = W·x` of 16-bit activations with int8 tensor cores, for every block format. One m16n8k32 product gives 16 rows
// of a panel times four tokens, upper and lower halves side by side, so that a lane holds both parts of the sums of two
// rows (lane/4 and lane/4 + 8) and one token (lane%4). The float chains are the contract's, per output, in registers.
#include "targets.cuh"

namespace assay {

/// `d = a·b + c` of m16n8k32, unsigned by signed.
__device__ __forceinline__ void product(int (&c)[4], const uint32_t (&a)[4], uint2 b) {
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b.x), "r"(b.y));
}

/// What two rows of a panel, lane/4 and lane/4 + 8, have of one 32-block.
template <typename Q, typename S>
struct Loaded {
    static constexpr int PARTS = BLOCK / S::SUB_BLOCK;
    Pair upper, lower;
    float w[PARTS][2], offset[PARTS][2];

    __device__ __forceinline__ void load(const Step<Q, S>& step, int b) {
        const int lane = threadIdx.x % 32, row = lane / 4, pair = lane % 4;
        const uint8_t* sub_block = step.quants + (size_t)b * Q::SUB_BLOCK_BYTES;
        upper = Q::pair(sub_block, row, pair);
        lower = Q::pair(sub_block, row + 8, pair);
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
#pragma unroll
            for (int r = 0; r < 2; r++) {
                const typename S::Row of = S::row_of(step.section, row + 8 * r);
                w[part][r] = S::weight(step.section, b * PARTS + part, row + 8 * r, of);
                offset[part][r] = S::offset(step.section, b * PARTS + part, row + 8 * r, of);
            }
        }
    }
};

/// A lane's part of one tile's B operand and sums of one 32-block.
template <typename Q, typename S>
struct Column {
    static constexpr int PARTS = BLOCK / S::SUB_BLOCK;
    uint2 words;
    int sum[PARTS];

    /// Columns of tokens that the batch does not have are zero and need no load.
    __device__ __forceinline__ void load(const Activations& x, size_t tile, size_t block, int num_blocks, int num_tokens) {
        const int lane = threadIdx.x % 32, token = lane % 4;
        words = make_uint2(0, 0);
        if (4 * (int)tile + lane / 8 < num_tokens) words = words_at(x, tile, block, num_blocks);
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
            const int* sums = PARTS == 1 ? x.sums32 + (tile * num_blocks + block) * 4
                                         : x.sums16 + (tile * 2 * num_blocks + 2 * block + part) * 4;
            const bool is_needed = (Q::ZERO_POINT != 0 || S::HAS_OFFSET) && 4 * (int)tile + token < num_tokens;
            sum[part] = is_needed ? __ldg(sums + token) : 0;
        }
    }
};

/// One 32-block's part of the level-1 chain of a tile: `acc[r]` of row lane/4 + 8r and token lane%4.
template <typename Q, typename S>
__device__ __forceinline__ void add_block(const Loaded<Q, S>& w, const Column<Q, S>& x, float (&acc)[2]) {
    constexpr int PARTS = BLOCK / S::SUB_BLOCK;
    const uint32_t a[4] = {w.upper.even, w.lower.even, w.upper.odd, w.lower.odd};
#pragma unroll
    for (int part = 0; part < PARTS; part++) {
        // The zero point's part of the sum goes with the lower halves, whose factor is 1.
        const int start = -Q::ZERO_POINT * x.sum[part];
        int c[4] = {0, start, 0, start};
        // Of a 16-wide sub-block only the pairs of its half take part.
        const bool takes_part = PARTS == 1 || (int)(threadIdx.x % 4) / 2 == part;
        product(c, a, takes_part ? x.words : make_uint2(0, 0));
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const int s = c[2 * r] * 256 + c[2 * r + 1];
            acc[r] = fma_rn(__int2float_rn(s), w.w[part][r], acc[r]);
            if (S::HAS_OFFSET) acc[r] = fma_rn(__int2float_rn(x.sum[part]), w.offset[part][r], acc[r]);
        }
    }
}

/// The sums of one 256-block: `acc[n]` of tile n, from +0 by the level-1 chain.
template <typename Q, typename S, int NT>
__device__ __forceinline__ void step_sums_of(
    const uint8_t* panel, int num_blocks, int index, const Activations& x, int first_tile, int num_tokens,
    float (&acc)[NT][2]) {
    const Step<Q, S> step(panel, num_blocks, index);
    const size_t first_block = (size_t)index * BLOCKS_PER_STEP;
#pragma unroll
    for (int n = 0; n < NT; n++) acc[n][0] = acc[n][1] = 0.0f;
    if (NT == 1 && step.num_blocks == BLOCKS_PER_STEP) {
        // One token: the panel's stream is all that matters, so all of the step is asked for before its first use.
        Loaded<Q, S> w[BLOCKS_PER_STEP];
        Column<Q, S> columns[BLOCKS_PER_STEP];
#pragma unroll
        for (int b = 0; b < BLOCKS_PER_STEP; b++) {
            w[b].load(step, b);
            columns[b].load(x, first_tile, first_block + b, num_blocks, num_tokens);
        }
#pragma unroll
        for (int b = 0; b < BLOCKS_PER_STEP; b++) add_block(w[b], columns[b], acc[0]);
        return;
    }
    Loaded<Q, S> next;
    next.load(step, 0);
    for (int b = 0; b < step.num_blocks; b++) {
        const Loaded<Q, S> w = next;
        if (b + 1 < step.num_blocks) next.load(step, b + 1);
        Column<Q, S> columns[NT];
#pragma unroll
        for (int n = 0; n < NT; n++) columns[n].load(x, first_tile + n, first_block + b, num_blocks, num_tokens);
#pragma unroll
        for (int n = 0; n < NT; n++) add_block(w, columns[n], acc[n]);
    }
}

/// Stores a lane's two outputs of tile `tile` and panel `panel` of its matrix.
__device__ __forceinline__ void store(const Target& target, int panel, int tile, int num_tokens, const float (&y)[2]) {
    const int lane = threadIdx.x % 32, token = 4 * tile + lane % 4;
    if (token >= num_tokens) return;
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int row = panel * PANEL_ROWS + lane / 4 + 8 * r;
        if (row < target.n) target.store(row, token, y[r]);
    }
}

/// Few tokens: a block of threads a panel and NT tiles; its warps share the 256-blocks out, then each tile's chain over
/// them runs in one warp.
template <typename Q, typename S, int NT>
__device__ __forceinline__ void gemv(
    const Targets& targets, size_t panel_bytes, int k, int num_tokens, const Activations& x) {
    extern __shared__ float2 parts[];  // [256-block][NT][32]
    begin();
    const int num_blocks = k / BLOCK, num_steps = (num_blocks + 7) / 8;
    const int warp = threadIdx.x / 32, num_warps = blockDim.x / 32, lane = threadIdx.x % 32;
    const int first_tile = blockIdx.y * NT;
    int index = blockIdx.x;
    const uint8_t* panels;
    const Target target = find(targets, index, panels);
    const uint8_t* panel = panels + (size_t)index * panel_bytes;
    for (int step = warp; step < num_steps; step += num_warps) {
        float acc[NT][2];
        step_sums_of<Q, S, NT>(panel, num_blocks, step, x, first_tile, num_tokens, acc);
        for (int n = 0; n < NT; n++) parts[(step * NT + n) * 32 + lane] = make_float2(acc[n][0], acc[n][1]);
    }
    __syncthreads();
    for (int n = warp; n < NT; n += num_warps) {
        const int tile = first_tile + n;
        if (4 * tile >= num_tokens) break;
        float y[2] = {0.0f, 0.0f};
#pragma unroll 4
        for (int step = 0; step < num_steps; step++) {
            const float2 acc = parts[(step * NT + n) * 32 + lane];
            const float scale = x.scales[place_of(4 * tile + lane % 4, step, num_steps)];
            y[0] = fma_rn(acc.x, scale, y[0]);
            y[1] = fma_rn(acc.y, scale, y[1]);
        }
        store(target, index, tile, num_tokens, y);
    }
}

/// Many tokens: a warp a panel and NT tiles over all of K.
template <typename Q, typename S, int NT>
__device__ __forceinline__ void gemm(
    const Targets& targets, size_t panel_bytes, int k, int num_tokens, const Activations& x) {
    begin();
    const int num_blocks = k / BLOCK, num_steps = (num_blocks + 7) / 8;
    const int lane = threadIdx.x % 32;
    int index = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (index >= targets.end_panel[2]) return;
    const int first_tile = blockIdx.y * NT;
    const uint8_t* panels;
    const Target target = find(targets, index, panels);
    const uint8_t* panel = panels + (size_t)index * panel_bytes;
    float y[NT][2] = {};
    for (int step = 0; step < num_steps; step++) {
        float acc[NT][2];
        step_sums_of<Q, S, NT>(panel, num_blocks, step, x, first_tile, num_tokens, acc);
#pragma unroll
        for (int n = 0; n < NT; n++) {
            const int token = 4 * (first_tile + n) + lane % 4;
            const float scale = token < num_tokens ? x.scales[place_of(token, step, num_steps)] : 0.0f;
            y[n][0] = fma_rn(acc[n][0], scale, y[n][0]);
            y[n][1] = fma_rn(acc[n][1], scale, y[n][1]);
        }
    }
#pragma unroll
    for (int n = 0; n < NT; n++) store(target, index, first_tile + n, num_tokens, y[n]);
}

}  // namespace assay

#define ASSAY_MATMUL(KIND, TILES, THREADS, NAME, Q, S)                                                              \
    extern "C" __global__ void __launch_bounds__(THREADS) KIND##_##TILES##_##NAME(                                  \
        assay::Targets targets, size_t panel_bytes, int k, int num_tokens, assay::Activations x) {                  \
        assay::KIND<Q, S, TILES>(targets, panel_bytes, k, num_tokens, x);                                           \
    }
#define ASSAY_MATMULS(NAME, Q, S)           \
    ASSAY_MATMUL(gemv, 1, 512, NAME, Q, S)  \
    ASSAY_MATMUL(gemv, 4, 512, NAME, Q, S)  \
    ASSAY_MATMUL(gemm, 8, 128, NAME, Q, S)
ASSAY_FORMATS(ASSAY_MATMULS)
