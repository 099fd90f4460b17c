// Rows of a table as f32: `f32(q)*w_j`, with an offset `fma_rn(f32(q), w_j, n_j)`; floats are copied.
#include "../cuda/numerics.cuh"
#include "../matmul/layout.cuh"

namespace assay {

/// A block of threads a token.
template <typename Q, typename S>
__device__ __forceinline__ void embed_blocks(
    const uint8_t* panels, size_t panel_bytes, int k, const uint32_t* token_ids, float* out) {
    begin();
    const uint32_t id = token_ids[blockIdx.x];
    const uint8_t* panel = panels + (size_t)(id / PANEL_ROWS) * panel_bytes;
    const int row = id % PANEL_ROWS;
    for (int i = threadIdx.x; i < k; i += blockDim.x) {
        const Step<Q, S> step(panel, k / BLOCK, i / 256);
        const int within = i % 256;
        const uint8_t* sub_block = step.quants + (size_t)(within / BLOCK) * Q::SUB_BLOCK_BYTES;
        const float q = (float)((int)quant<Q>(sub_block, row, within % BLOCK) - Q::ZERO_POINT);
        const int j = within / S::SUB_BLOCK;
        const typename S::Row of = S::row_of(step.section, row);
        const float w = S::weight(step.section, j, row, of);
        out[(size_t)blockIdx.x * k + i] = S::HAS_OFFSET ? fma_rn(q, w, S::offset(step.section, j, row, of)) : mul(q, w);
    }
}

/// Element (row, k) of a float matrix in groups of 16 rows.
template <typename E>
__device__ __forceinline__ void embed_floats(const typename E::Stored* groups, int k, const uint32_t* token_ids, float* out) {
    begin();
    const uint32_t id = token_ids[blockIdx.x];
    const typename E::Stored* group = groups + (size_t)(id / PANEL_ROWS) * k * PANEL_ROWS + id % PANEL_ROWS;
    for (int i = threadIdx.x; i < k; i += blockDim.x) {
        out[(size_t)blockIdx.x * k + i] = E::value(group[(size_t)i * PANEL_ROWS]);
    }
}

}  // namespace assay

#define ASSAY_EMBED(NAME, Q, S)                                                                            \
    extern "C" __global__ void embed_##NAME(                                                               \
        const uint8_t* panels, size_t panel_bytes, int k, const uint32_t* token_ids, float* out) {         \
        assay::embed_blocks<Q, S>(panels, panel_bytes, k, token_ids, out);                                 \
    }
ASSAY_FORMATS(ASSAY_EMBED)

#define ASSAY_EMBED_FLOATS(NAME, E)                                                                        \
    extern "C" __global__ void embed_##NAME(const E::Stored* groups, int k, const uint32_t* token_ids, float* out) { \
        assay::embed_floats<E>(groups, k, token_ids, out);                                                 \
    }
ASSAY_FLOATS(ASSAY_EMBED_FLOATS)
