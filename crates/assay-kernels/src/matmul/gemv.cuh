// Up to four tokens on compute capability 9.0: weights stream through shared memory by bulk copies, a ring of 256-blocks
// for each warp, asked for before the kernel waits for its input. A block of threads has some panels; its warps share
// their 256-blocks out, and each output's chain over them then runs in one lane.
#pragma once

#include "gemm.cuh"

namespace assay {

/// How shared memory is laid out; `matmul/cuda.rs` has the same fields in the same order.
struct StreamPlan {
    int slots;         // of a warp's ring
    int batch_panels;  // between two waits of the block of threads for itself
};

#if ASSAY_HOPPER

constexpr int STREAM_WARPS = 8;

template <typename Q, typename S>
__device__ __forceinline__ void gemv_stream(
    const Targets& targets, size_t panel_bytes, int k, int num_tokens, const Activations& x, const StreamPlan& plan) {
    using Stream = Step<Q, S, Shared>;
    constexpr int SLOT = Stream::FULL, PARTS = BLOCK / S::SUB_BLOCK;
    extern __shared__ __align__(128) uint8_t shared_bytes[];
    const int num_blocks = k / BLOCK, num_steps = (num_blocks + 7) / 8;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int num_panels = targets.end_panel[2];
    const int first_panel = (int)((long long)num_panels * blockIdx.x / gridDim.x);
    const int end_panel = (int)((long long)num_panels * (blockIdx.x + 1) / gridDim.x);
    const int num_items = (end_panel - first_panel) * num_steps;
    uint8_t* const ring = shared_bytes + (size_t)warp * plan.slots * SLOT;
    uint64_t* const barriers = (uint64_t*)(shared_bytes + (size_t)STREAM_WARPS * plan.slots * SLOT) + warp * plan.slots;
    // [two batches][panel][step][token][row]
    float* const parts = (float*)((uint64_t*)(shared_bytes + (size_t)STREAM_WARPS * plan.slots * SLOT) + STREAM_WARPS * plan.slots);
    const int batch_steps = plan.batch_panels * num_steps, batch_parts = batch_steps * num_tokens * PANEL_ROWS;
    float* const scales = parts + 2 * batch_parts;  // [step][token]

    // One lane asks for 256-blocks, in the order in which the warp takes them.
    int asked = warp, ask_panel = first_panel + warp / num_steps, ask_step = warp % num_steps, ask_slot = 0;
    const auto ask = [&]() {
        int index = ask_panel;
        const uint8_t* panels;
        find(targets, index, panels);
        const int blocks = min(num_blocks - ask_step * BLOCKS_PER_STEP, BLOCKS_PER_STEP);
        const uint32_t bytes = S::section_bytes(blocks) + blocks * Q::SUB_BLOCK_BYTES;
        const uint32_t barrier = shared_address(&barriers[ask_slot]);
        barrier_expect(barrier, bytes);
        bulk_copy(shared_address(ring + ask_slot * SLOT), panels + (size_t)index * panel_bytes + ask_step * SLOT, bytes, barrier);
        asked += STREAM_WARPS;
        for (ask_step += STREAM_WARPS; ask_step >= num_steps; ask_step -= num_steps) ask_panel++;
        ask_slot = ask_slot + 1 == plan.slots ? 0 : ask_slot + 1;
    };
    if (lane == 0) {
        for (int slot = 0; slot < plan.slots; slot++) barrier_init(shared_address(&barriers[slot]), 1);
        barrier_fence();
        for (int slot = 0; slot < plan.slots && asked < num_items; slot++) ask();
    }
    __syncwarp();
    begin();
    // Read after the block of threads has waited for itself.
    for (int i = threadIdx.x; i < num_steps * num_tokens; i += 32 * STREAM_WARPS) {
        scales[i] = x.scales[place_of(i % num_tokens, i / num_tokens, num_steps)];
    }

    const bool has_column = lane / 8 < num_tokens, has_token = lane % 4 < num_tokens;
    int item = warp, step = warp % num_steps, slot = 0, parity = 0, batch = 0;
    for (int first = first_panel; first < end_panel; first += plan.batch_panels, batch ^= 1) {
        const int end = min(end_panel, first + plan.batch_panels);
        float* const to = parts + batch * batch_parts;
        const int first_item = (first - first_panel) * num_steps, end_item = (end - first_panel) * num_steps;
        for (; item < end_item; item += STREAM_WARPS) {
            // 1. What the tokens have of this 256-block
            const int blocks = min(num_blocks - step * BLOCKS_PER_STEP, BLOCKS_PER_STEP);
            uint2 words[BLOCKS_PER_STEP];
            float sums[BLOCKS_PER_STEP * PARTS];
#pragma unroll
            for (int b = 0; b < BLOCKS_PER_STEP; b++) {
                const int block = step * BLOCKS_PER_STEP + b;
                words[b] = make_uint2(0, 0);
                if (has_column && b < blocks) words[b] = words_at(x, 0, block, num_blocks);
#pragma unroll
                for (int part = 0; part < PARTS; part++) {
                    float sum = 0.0f;
                    if (S::HAS_OFFSET && has_token && b < blocks) {
                        sum = PARTS == 1 ? __ldg(x.sums + place_of(lane % 4, block, num_blocks))
                                         : __int2float_rn(__ldg(x.sums16 + (block * PARTS + part) * 4 + lane % 4));
                    }
                    sums[b * PARTS + part] = sum;
                }
            }
            // 2. Its chain
            const Stream stream(Shared{shared_address(ring + slot * SLOT)}, blocks);
            barrier_wait(shared_address(&barriers[slot]), parity);
            const RowPair<S> rows(stream.section);
            float acc[2] = {0.0f, 0.0f};
            const auto add_block = [&](const BlockWeights<Q, S>& weights, uint2 columns, const float* sum) {
#pragma unroll
                for (int part = 0; part < PARTS; part++) {
                    uint32_t a[4];
                    weights.operand(part, a);
                    int c[4] = {0, 0, 0, 0};
                    product_signed(c, a, columns);
#pragma unroll
                    for (int r = 0; r < 2; r++) {
                        const int s = c[2 * r] * 256 + c[2 * r + 1];
                        acc[r] = fma_rn(__int2float_rn(s), weights.w[part][r], acc[r]);
                        if (S::HAS_OFFSET) acc[r] = fma_rn(sum[part], weights.offset[part][r], acc[r]);
                    }
                }
            };
            if (blocks == BLOCKS_PER_STEP) {
                // All of it is asked for before its first use.
                BlockWeights<Q, S> weights[BLOCKS_PER_STEP];
#pragma unroll
                for (int b = 0; b < BLOCKS_PER_STEP; b++) weights[b].load(stream, rows, b);
#pragma unroll
                for (int b = 0; b < BLOCKS_PER_STEP; b++) add_block(weights[b], words[b], &sums[b * PARTS]);
            } else {
#pragma unroll
                for (int b = 0; b < BLOCKS_PER_STEP; b++) {
                    if (b >= blocks) break;
                    BlockWeights<Q, S> weights;
                    weights.load(stream, rows, b);
                    add_block(weights, words[b], &sums[b * PARTS]);
                }
            }
            if (has_token) {
                float* const at = to + ((item - first_item) * num_tokens + lane % 4) * PANEL_ROWS + lane / 4;
                at[0] = acc[0], at[8] = acc[1];
            }
            __syncwarp();
            if (lane == 0 && asked < num_items) ask();
            if (++slot == plan.slots) slot = 0, parity ^= 1;
            for (step += STREAM_WARPS; step >= num_steps; step -= num_steps) {}
        }
        __syncthreads();
        // 3. Chains over the 256-blocks: a lane a row and token
        for (int p = warp; p < end - first; p += STREAM_WARPS) {
            int index = first + p;
            const uint8_t* panels;
            const Target target = find(targets, index, panels);
            for (int i = lane; i < PANEL_ROWS * num_tokens; i += 32) {
                const int token = i / PANEL_ROWS, row = i % PANEL_ROWS, output = index * PANEL_ROWS + row;
                if (output >= target.n) continue;
                const Target::Beside beside = target.beside(output, token);
                const float* from = to + (p * num_steps * num_tokens + token) * PANEL_ROWS + row;
                float y = 0.0f;
#pragma unroll 8
                for (int step = 0; step < num_steps; step++) {
                    y = fma_rn(from[step * num_tokens * PANEL_ROWS], scales[step * num_tokens + token], y);
                }
                target.store(output, token, y, beside);
            }
        }
    }
}

#endif

}  // namespace assay
