// Product with an unquantised matrix: a thread an output, one fma chain inside each 256-block, block sums added.
#include "../matmul/layout.cuh"

namespace assay {

/// groups: `[n/16][k][16]`; neighbouring threads are neighbouring rows.
template <typename E>
__device__ __forceinline__ void float_matmul(
    const typename E::Stored* groups, int n, int k, const float* x, const float* bias, float* out) {
    begin();
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= n) return;
    const size_t token = blockIdx.y;
    const typename E::Stored* w = groups + (size_t)(row / PANEL_ROWS) * k * PANEL_ROWS + row % PANEL_ROWS;
    x += token * k;
    float y = 0.0f;
    for (int start = 0; start < k; start += 256) {
        float acc = 0.0f;
        for (int i = start; i < min(k, start + 256); i++) acc = fma_rn(E::value(w[(size_t)i * PANEL_ROWS]), x[i], acc);
        y = add(y, acc);
    }
    out[token * n + row] = bias ? add(y, bias[row]) : y;
}

}  // namespace assay

#define ASSAY_FLOAT_MATMUL(NAME, E)                                                                      \
    extern "C" __global__ void float_matmul_##NAME(                                                      \
        const E::Stored* groups, int n, int k, const float* x, const float* bias, float* out) {          \
        assay::float_matmul<E>(groups, n, k, x, bias, out);                                              \
    }
ASSAY_FLOATS(ASSAY_FLOAT_MATMUL)
