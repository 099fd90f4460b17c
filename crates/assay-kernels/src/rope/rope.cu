// Rotation of heads where they stand: a block of threads a token, a thread a pair.
#include "../cuda/numerics.cuh"

/// cos, sin: `[position][num_pairs]`. Interleaved pairs are (2i, 2i+1), others (i, i + num_pairs).
extern "C" __global__ void rope(
    const float* cos, const float* sin, int num_pairs, int is_interleaved, const uint32_t* positions, int num_heads,
    int head_dim, float* x) {
    using namespace assay;
    const size_t at = (size_t)positions[blockIdx.x] * num_pairs;
    x += (size_t)blockIdx.x * num_heads * head_dim;
    for (int i = threadIdx.x; i < num_heads * num_pairs; i += blockDim.x) {
        const int pair = i % num_pairs;
        float* head = x + i / num_pairs * head_dim;
        float* first = head + (is_interleaved ? 2 * pair : pair);
        float* second = is_interleaved ? first + 1 : first + num_pairs;
        const float c = cos[at + pair], s = sin[at + pair];
        const float x0 = *first, x1 = *second;
        *first = fma_rn(x0, c, -mul(x1, s));
        *second = fma_rn(x1, c, mul(x0, s));
    }
}
