// `y = W·x` of 16-bit activations with int8 tensor cores, for every block format. One m16n8k32 product gives 16 rows
// of a panel times four tokens, upper and lower halves side by side, so that a lane holds both parts of the sums of two
// rows (lane/4 and lane/4 + 8) and one token (lane%4). The float chains are the contract's, per output, in registers.
#include "layout.cuh"

namespace assay {

/// Quantised activations as `quantize.cu` leaves them.
struct Activations {
    const uint2* words;
    const float* scales;
    const int* sums16;
    const int* sums32;
};

/// `d = a·b + c` of m16n8k32, unsigned by signed.
__device__ __forceinline__ void product(int (&c)[4], const uint32_t (&a)[4], uint2 b) {
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b.x), "r"(b.y));
}

/// The sums of one 256-block: `acc[n][r]` of row lane/4 + 8r and token lane%4 of tile n, from +0 by the level-1 chain.
template <typename Q, typename S, int NT, bool WHOLE>
__device__ __forceinline__ void step_sums(
    const Step<Q, S>& step, int first_block, int num_blocks, const Activations& x, int first_tile, int num_tokens,
    float (&acc)[NT][2]) {
    const int lane = threadIdx.x % 32, row = lane / 4, token = lane % 4;
#pragma unroll
    for (int n = 0; n < NT; n++) acc[n][0] = acc[n][1] = 0.0f;
#pragma unroll(WHOLE && NT == 1 ? 8 : 1)
    for (int b = 0; b < (WHOLE ? 8 : step.num_blocks); b++) {
        const uint8_t* sub_block = step.quants + (size_t)b * Q::SUB_BLOCK_BYTES;
        const Pair upper = Q::pair(sub_block, row, token), lower = Q::pair(sub_block, row + 8, token);
        const uint32_t a[4] = {upper.even, lower.even, upper.odd, lower.odd};
        constexpr int PARTS = BLOCK / S::SUB_BLOCK;
        float w[PARTS][2], offset[PARTS][2];
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
#pragma unroll
            for (int r = 0; r < 2; r++) {
                w[part][r] = S::weight(step.section, b * PARTS + part, row + 8 * r);
                offset[part][r] = S::offset(step.section, b * PARTS + part, row + 8 * r);
            }
        }
#pragma unroll
        for (int n = 0; n < NT; n++) {
            const size_t tile = first_tile + n;
            const size_t block = first_block + b;
            // Columns of tokens that the batch does not have are zero and need no load.
            const bool is_token = 4 * (int)tile + row / 2 < num_tokens;
            const uint2 words = is_token ? x.words[(tile * num_blocks + block) * 32 + lane] : make_uint2(0, 0);
#pragma unroll
            for (int part = 0; part < PARTS; part++) {
                const int* sums = PARTS == 1 ? x.sums32 + (tile * num_blocks + block) * 4
                                             : x.sums16 + (tile * 2 * num_blocks + 2 * block + part) * 4;
                const bool needs_sum = Q::ZERO_POINT != 0 || S::HAS_OFFSET;
                const int sum = needs_sum && 4 * (int)tile + token < num_tokens ? sums[token] : 0;
                // The zero point's part of the sum goes with the lower halves, whose factor is 1.
                const int start = -Q::ZERO_POINT * sum;
                int c[4] = {0, start, 0, start};
                // Of a 16-wide sub-block only the pairs of its half take part.
                const bool takes_part = PARTS == 1 || token / 2 == part;
                product(c, a, takes_part ? words : make_uint2(0, 0));
#pragma unroll
                for (int r = 0; r < 2; r++) {
                    const int s = c[2 * r] * 256 + c[2 * r + 1];
                    acc[n][r] = fma_rn(__int2float_rn(s), w[part][r], acc[n][r]);
                    if (S::HAS_OFFSET) acc[n][r] = fma_rn(__int2float_rn(sum), offset[part][r], acc[n][r]);
                }
            }
        }
    }
}

template <typename Q, typename S, int NT>
__device__ __forceinline__ void step_sums_of(
    const uint8_t* panel, int num_blocks, int index, const Activations& x, int first_tile, int num_tokens,
    float (&acc)[NT][2]) {
    const Step<Q, S> step(panel, num_blocks, index);
    const int first_block = index * BLOCKS_PER_STEP;
    if (step.num_blocks == BLOCKS_PER_STEP) {
        step_sums<Q, S, NT, true>(step, first_block, num_blocks, x, first_tile, num_tokens, acc);
    } else {
        step_sums<Q, S, NT, false>(step, first_block, num_blocks, x, first_tile, num_tokens, acc);
    }
}

/// What a launch multiplies.
struct Shape {
    int n, k, num_tokens;
    size_t panel_bytes;
};

/// Stores a lane's two outputs of tile `tile`.
__device__ __forceinline__ void store(const Shape& shape, int panel, int tile, const float (&y)[2], const float* bias, float* out) {
    const int lane = threadIdx.x % 32, token = 4 * tile + lane % 4;
    if (token >= shape.num_tokens) return;
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const int row = panel * PANEL_ROWS + lane / 4 + 8 * r;
        if (row < shape.n) out[(size_t)token * shape.n + row] = bias ? add(y[r], bias[row]) : y[r];
    }
}

/// Few tokens: a block of threads a panel and NT tiles; its warps share the 256-blocks out, then each tile's chain over
/// them runs in one warp.
template <typename Q, typename S, int NT>
__device__ __forceinline__ void gemv(
    const uint8_t* panels, const Shape& shape, const Activations& x, const float* bias, float* out) {
    extern __shared__ float2 parts[];  // [256-block][NT][32]
    const int num_blocks = shape.k / BLOCK, num_steps = (num_blocks + 7) / 8;
    const int warp = threadIdx.x / 32, num_warps = blockDim.x / 32, lane = threadIdx.x % 32;
    const int first_tile = blockIdx.y * NT;
    const uint8_t* panel = panels + (size_t)blockIdx.x * shape.panel_bytes;
    for (int step = warp; step < num_steps; step += num_warps) {
        float acc[NT][2];
        step_sums_of<Q, S, NT>(panel, num_blocks, step, x, first_tile, shape.num_tokens, acc);
        for (int n = 0; n < NT; n++) parts[(step * NT + n) * 32 + lane] = make_float2(acc[n][0], acc[n][1]);
    }
    __syncthreads();
    for (int n = warp; n < NT; n += num_warps) {
        const int tile = first_tile + n;
        if (4 * tile >= shape.num_tokens) break;
        float y[2] = {0.0f, 0.0f};
#pragma unroll 4
        for (int step = 0; step < num_steps; step++) {
            const float2 acc = parts[(step * NT + n) * 32 + lane];
            const float scale = x.scales[((size_t)tile * num_steps + step) * 4 + lane % 4];
            y[0] = fma_rn(acc.x, scale, y[0]);
            y[1] = fma_rn(acc.y, scale, y[1]);
        }
        store(shape, blockIdx.x, tile, y, bias, out);
    }
}

/// Many tokens: a warp a panel and NT tiles over all of K.
template <typename Q, typename S, int NT>
__device__ __forceinline__ void gemm(
    const uint8_t* panels, const Shape& shape, const Activations& x, const float* bias, float* out) {
    const int num_blocks = shape.k / BLOCK, num_steps = (num_blocks + 7) / 8;
    const int lane = threadIdx.x % 32;
    const int index = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (index * PANEL_ROWS >= shape.n) return;
    const int first_tile = blockIdx.y * NT;
    const uint8_t* panel = panels + (size_t)index * shape.panel_bytes;
    float y[NT][2] = {};
    for (int step = 0; step < num_steps; step++) {
        float acc[NT][2];
        step_sums_of<Q, S, NT>(panel, num_blocks, step, x, first_tile, shape.num_tokens, acc);
#pragma unroll
        for (int n = 0; n < NT; n++) {
            const int tile = first_tile + n;
            const bool is_token = 4 * tile + lane % 4 < shape.num_tokens;
            const float scale = is_token ? x.scales[((size_t)tile * num_steps + step) * 4 + lane % 4] : 0.0f;
            y[n][0] = fma_rn(acc[n][0], scale, y[n][0]);
            y[n][1] = fma_rn(acc[n][1], scale, y[n][1]);
        }
    }
#pragma unroll
    for (int n = 0; n < NT; n++) store(shape, index, first_tile + n, y[n], bias, out);
}

}  // namespace assay

#define ASSAY_MATMUL(KIND, TILES, NAME, Q, S)                                                                       \
    extern "C" __global__ void KIND##_##TILES##_##NAME(                                                             \
        const uint8_t* panels, size_t panel_bytes, int n, int k, int num_tokens, const uint2* words,                \
        const float* scales, const int* sums16, const int* sums32, const float* bias, float* out) {                 \
        assay::KIND<Q, S, TILES>(                                                                                   \
            panels, {n, k, num_tokens, panel_bytes}, {words, scales, sums16, sums32}, bias, out);                   \
    }
#define ASSAY_MATMULS(NAME, Q, S)       \
    ASSAY_MATMUL(gemv, 1, NAME, Q, S)   \
    ASSAY_MATMUL(gemv, 4, NAME, Q, S)   \
    ASSAY_MATMUL(gemm, 8, NAME, Q, S)
ASSAY_FORMATS(ASSAY_MATMULS)
