// Rotation of heads where they stand, and with keys their storage: a block of threads a token.
#include "../cuda/numerics.cuh"

namespace assay {

/// cos, sin: `[position][num_pairs]`. Interleaved pairs are (2i, 2i+1), others (i, i + num_pairs).
struct Rotation {
    const float* cos;
    const float* sin;
    int num_pairs, is_interleaved;
};

/// Rotates the heads of one token.
__device__ __forceinline__ void rotate(const Rotation& rotation, uint32_t position, int num_heads, int head_dim, float* x) {
    const size_t at = (size_t)position * rotation.num_pairs;
    for (int i = threadIdx.x; i < num_heads * rotation.num_pairs; i += blockDim.x) {
        const int pair = i % rotation.num_pairs;
        float* head = x + i / rotation.num_pairs * head_dim;
        float* first = head + (rotation.is_interleaved ? 2 * pair : pair);
        float* second = rotation.is_interleaved ? first + 1 : first + rotation.num_pairs;
        const float c = rotation.cos[at + pair], s = rotation.sin[at + pair];
        const float x0 = *first, x1 = *second;
        *first = fma_rn(x0, c, -mul(x1, s));
        *second = fma_rn(x1, c, mul(x0, s));
    }
}

}  // namespace assay

extern "C" __global__ void rope(
    assay::Rotation rotation, const uint32_t* positions, int num_heads, int head_dim, float* x) {
    assay::rotate(rotation, positions[blockIdx.x], num_heads, head_dim, x + (size_t)blockIdx.x * num_heads * head_dim);
}

/// Rotates q and k, then stores K and V of every row as `kv_write` does.
extern "C" __global__ void rope_kv_write(
    assay::Rotation rotation, const uint32_t* positions, const uint32_t* slots, int num_heads, int num_kv_heads,
    int head_dim, float* q, float* k, const float* v, uint16_t* to_k, uint16_t* to_v) {
    const size_t row = blockIdx.x;
    k += row * num_kv_heads * head_dim;
    assay::rotate(rotation, positions[row], num_heads, head_dim, q + row * num_heads * head_dim);
    assay::rotate(rotation, positions[row], num_kv_heads, head_dim, k);
    __syncthreads();
    assay::store_kv(slots[row], num_kv_heads, head_dim, k, v + row * num_kv_heads * head_dim, to_k, to_v);
}
