// One token on compute capability 9.0: a product of four warps' lanes has four columns of pairs, and one token needs one.
// So a warp takes four 256-blocks of a panel at a time and gives each a column of its own: the lanes of a column run that
// 256-block's chain, and no lane's work is lost. Weights come as in `gemv_stream`.
#pragma once

#include "gemv.cuh"

namespace assay {

/// 256-blocks that a warp takes together: the columns of a product.
constexpr int GROUP_STEPS = 4;

#if ASSAY_HOPPER

/// Adds 32-block `b` of each 256-block of a group to the chains. Of a whole group nothing is asked for.
template <typename Q, typename S, bool WHOLE>
__device__ __forceinline__ void add_block_of_group(
    uint32_t slot, int num_blocks, int b, uint2 words, const float (&sum)[BLOCK / S::SUB_BLOCK],
    const Step<Q, S, Shared>& mine, const RowPair<S>& rows, float (&acc)[2]) {
    constexpr int PARTS = BLOCK / S::SUB_BLOCK, FULL = Step<Q, S>::FULL;
    const int lane = threadIdx.x % 32, row = lane / 4, pair = lane % 4;
    int c[PARTS][4] = {};
#pragma unroll
    for (int i = 0; i < GROUP_STEPS; i++) {
        const int blocks = WHOLE ? BLOCKS_PER_STEP : min(num_blocks - i * BLOCKS_PER_STEP, BLOCKS_PER_STEP);
        if (!WHOLE && b >= blocks) continue;
        const Step<Q, S, Shared> step(Shared{slot + (uint32_t)(i * FULL)}, blocks);
        const Shared quants = step.quants + b * Q::SUB_BLOCK_BYTES;
        const Pair upper = Q::pair(quants, row, pair), lower = Q::pair(quants, row + 8, pair);
        const uint32_t a[4] = {
            signed_quants<Q>(upper.even), signed_quants<Q>(lower.even), signed_quants<Q>(upper.odd),
            signed_quants<Q>(lower.odd)};
        // Columns 2i and 2i + 1 are lanes 8i to 8i + 7. Of a 16-wide sub-block the pairs of its half take part.
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
            const bool takes_part = lane / 8 == i && (PARTS == 1 || pair / 2 == part);
            product_signed(c[part], a, takes_part ? words : make_uint2(0, 0));
        }
    }
    if (!WHOLE && b >= mine.num_blocks) return;
#pragma unroll
    for (int part = 0; part < PARTS; part++) {
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const int s = c[part][2 * r] * 256 + c[part][2 * r + 1];
            const int j = b * PARTS + part;
            acc[r] = fma_rn(__int2float_rn(s), S::weight(mine.section, j, row + 8 * r, rows.of[r]), acc[r]);
            if (S::HAS_OFFSET) acc[r] = fma_rn(sum[part], S::offset(mine.section, j, row + 8 * r, rows.of[r]), acc[r]);
        }
    }
}

template <typename Q, typename S>
__device__ __forceinline__ void gemv_single(
    const Targets& targets, size_t panel_bytes, int k, const Activations& x, const StreamPlan& plan) {
    constexpr int FULL = Step<Q, S>::FULL, SLOT = GROUP_STEPS * FULL, PARTS = BLOCK / S::SUB_BLOCK;
    constexpr int GROUP_BLOCKS = GROUP_STEPS * BLOCKS_PER_STEP;
    extern __shared__ __align__(128) uint8_t shared_bytes[];
    const int num_blocks = k / BLOCK, num_steps = (num_blocks + 7) / 8;
    const int num_groups = (num_steps + GROUP_STEPS - 1) / GROUP_STEPS;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, num_warps = blockDim.x / 32;
    const int num_panels = targets.end_panel[2];
    const int first_panel = (int)((long long)num_panels * blockIdx.x / gridDim.x);
    const int end_panel = (int)((long long)num_panels * (blockIdx.x + 1) / gridDim.x);
    const int num_items = (end_panel - first_panel) * num_groups;
    const uint32_t slot = shared_address(shared_bytes + (size_t)warp * SLOT);
    uint64_t* const barriers = (uint64_t*)(shared_bytes + (size_t)num_warps * SLOT);
    const uint32_t barrier = shared_address(&barriers[warp]);
    float* const parts = (float*)(barriers + num_warps);  // [two batches][panel][step][row]
    const int batch_parts = plan.batch_panels * num_steps * PANEL_ROWS;
    float* const scales = parts + 2 * batch_parts;

    const auto ask = [&](int item) {
        int index = first_panel + item / num_groups;
        const int group = item % num_groups;
        const uint8_t* panels;
        find(targets, index, panels);
        const int blocks = min(num_blocks - group * GROUP_BLOCKS, GROUP_BLOCKS), rest = blocks % BLOCKS_PER_STEP;
        uint32_t bytes = blocks / BLOCKS_PER_STEP * FULL;
        if (rest > 0) bytes += S::section_bytes(rest) + rest * Q::SUB_BLOCK_BYTES;
        barrier_expect(barrier, bytes);
        bulk_copy(slot, panels + (size_t)index * panel_bytes + group * SLOT, bytes, barrier);
    };
    if (lane == 0) {
        barrier_init(barrier, 1);
        barrier_fence();
        if (warp < num_items) ask(warp);
    }
    __syncwarp();
    begin();
    // Read after the block of threads has waited for itself.
    for (int i = threadIdx.x; i < num_steps; i += blockDim.x) scales[i] = x.scales[place_of(0, i, num_steps)];

    int item = warp, parity = 0, batch = 0;
    for (int first = first_panel; first < end_panel; first += plan.batch_panels, batch ^= 1) {
        const int end = min(end_panel, first + plan.batch_panels);
        float* const to = parts + batch * batch_parts;
        const int first_item = (first - first_panel) * num_groups, end_item = (end - first_panel) * num_groups;
        for (; item < end_item; item += num_warps) {
            const int group = item % num_groups, first_block = group * GROUP_BLOCKS;
            const int blocks = min(num_blocks - first_block, GROUP_BLOCKS);
            // 1. What the token has: a lane the words of its column's 256-block, and the sums of the one whose chain it runs
            uint2 words[BLOCKS_PER_STEP];
            float sums[BLOCKS_PER_STEP][PARTS];
#pragma unroll
            for (int b = 0; b < BLOCKS_PER_STEP; b++) {
                const int column = lane / 8 * BLOCKS_PER_STEP + b, chain = lane % 4 * BLOCKS_PER_STEP + b;
                words[b] = make_uint2(0, 0);
                if (column < blocks) {
                    const uint32_t* at = x.words + words_of(0, first_block + column, num_blocks) + lane % 8;
                    words[b] = make_uint2(__ldg(at), __ldg(at + 32));
                }
#pragma unroll
                for (int part = 0; part < PARTS; part++) {
                    float sum = 0.0f;
                    if (S::HAS_OFFSET && chain < blocks) {
                        const int block = first_block + chain;
                        sum = PARTS == 1 ? __ldg(x.sums + place_of(0, block, num_blocks))
                                         : __int2float_rn(__ldg(x.sums16 + (block * PARTS + part) * 4));
                    }
                    sums[b][part] = sum;
                }
            }
            // 2. Its chains
            barrier_wait(barrier, parity);
            parity ^= 1;
            const int chain = lane % 4, chain_blocks = min(max(blocks - chain * BLOCKS_PER_STEP, 0), BLOCKS_PER_STEP);
            float acc[2] = {0.0f, 0.0f};
            if (blocks == GROUP_BLOCKS) {
                const Step<Q, S, Shared> mine(Shared{slot + (uint32_t)(chain * FULL)}, BLOCKS_PER_STEP);
                const RowPair<S> rows(mine.section);
#pragma unroll
                for (int b = 0; b < BLOCKS_PER_STEP; b++) {
                    add_block_of_group<Q, S, true>(slot, blocks, b, words[b], sums[b], mine, rows, acc);
                }
            } else {
                const Step<Q, S, Shared> mine(Shared{slot + (uint32_t)(chain * FULL)}, chain_blocks);
                const RowPair<S> rows(mine.section);
#pragma unroll
                for (int b = 0; b < BLOCKS_PER_STEP; b++) {
                    add_block_of_group<Q, S, false>(slot, blocks, b, words[b], sums[b], mine, rows, acc);
                }
            }
            if (chain_blocks > 0) {
                const int panel = item / num_groups - (first - first_panel), step = group * GROUP_STEPS + chain;
                float* const at = to + (panel * num_steps + step) * PANEL_ROWS + lane / 4;
                at[0] = acc[0], at[8] = acc[1];
            }
            __syncwarp();
            if (lane == 0 && item + num_warps < num_items) ask(item + num_warps);
        }
        __syncthreads();
        // 3. Chains over the 256-blocks: a thread an output
        for (int i = threadIdx.x; i < (end - first) * PANEL_ROWS; i += blockDim.x) {
            int index = first + i / PANEL_ROWS;
            const uint8_t* panels;
            const Target target = find(targets, index, panels);
            const int output = index * PANEL_ROWS + i % PANEL_ROWS;
            if (output >= target.n) continue;
            const Target::Beside beside = target.beside(output, 0);
            const float* from = to + i / PANEL_ROWS * num_steps * PANEL_ROWS + i % PANEL_ROWS;
            float y = 0.0f;
#pragma unroll 8
            for (int step = 0; step < num_steps; step++) y = fma_rn(from[step * PANEL_ROWS], scales[step], y);
            target.store(output, 0, y, beside);
        }
    }
}

#endif

}  // namespace assay
