// Rotation of heads where they stand, and with keys their storage: a block of threads a token.
#include "../attention/pairs.cuh"

namespace assay {

/// cos, sin: `[position][num_pairs]`. Interleaved pairs are (2i, 2i+1), others (i, i + num_pairs).
struct Rotation {
    const float* cos;
    const float* sin;
    int num_pairs, is_interleaved;
};

/// Pair `pair` of a head, rotated.
__device__ __forceinline__ void rotate(const Rotation& rotation, uint32_t position, int pair, float* head) {
    const size_t at = (size_t)position * rotation.num_pairs + pair;
    float* first = head + (rotation.is_interleaved ? 2 * pair : pair);
    float* second = rotation.is_interleaved ? first + 1 : first + rotation.num_pairs;
    const float c = rotation.cos[at], s = rotation.sin[at];
    const float x0 = *first, x1 = *second;
    *first = fma_rn(x0, c, -mul(x1, s));
    *second = fma_rn(x1, c, mul(x0, s));
}

}  // namespace assay

/// Grid (heads, tokens).
extern "C" __global__ void rope(
    assay::Rotation rotation, const uint32_t* positions, int num_heads, int head_dim, float* x) {
    assay::begin();
    float* head = x + ((size_t)blockIdx.y * num_heads + blockIdx.x) * head_dim;
    for (int pair = threadIdx.x; pair < rotation.num_pairs; pair += blockDim.x) {
        assay::rotate(rotation, positions[blockIdx.y], pair, head);
    }
}

/// Rotates q and k, then stores K and V of every row as `kv_write` does; grid (heads and key/value heads, tokens).
extern "C" __global__ void rope_kv_write(
    assay::Rotation rotation, const uint32_t* positions, const uint32_t* slots, int num_heads, int num_kv_heads,
    int head_dim, float* q, float* k, const float* v, uint16_t* to_k, uint16_t* to_v) {
    assay::begin();
    const size_t row = blockIdx.y;
    const int kv_head = (int)blockIdx.x - num_heads;
    const size_t of_kv = (row * num_kv_heads + kv_head) * head_dim;
    float* head = kv_head < 0 ? q + (row * num_heads + blockIdx.x) * head_dim : k + of_kv;
    for (int pair = threadIdx.x; pair < rotation.num_pairs; pair += blockDim.x) {
        assay::rotate(rotation, positions[row], pair, head);
    }
    if (kv_head < 0) return;
    __syncthreads();
    assay::store_head(slots[row], kv_head, num_kv_heads, head_dim, head, v + of_kv, to_k, to_v);
}
