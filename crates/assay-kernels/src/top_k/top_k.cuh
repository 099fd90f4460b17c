// Keys that order values as the best of a row are ordered: larger value first, then smaller index.
#pragma once

#include "../cuda/numerics.cuh"

namespace assay {

constexpr int TOP_K_SLICE = 1024;
/// So few of a row are merged without a sort.
constexpr int TOP_K_FEW = 32;

/// A value and its index as one number, larger for what comes first. −0 counts as +0.
__device__ __forceinline__ unsigned long long key_of(float value, uint32_t index) {
    const uint32_t bits = __float_as_uint(value == 0.0f ? 0.0f : value);
    const uint32_t ordered = bits >> 31 ? ~bits : bits | 0x80000000u;
    return (unsigned long long)ordered << 32 | (0xFFFFFFFFu - index);
}

/// Sorts `len` keys (a power of two) in shared memory, largest first.
__device__ __forceinline__ void sort_descending(unsigned long long* keys, int len) {
    for (int size = 2; size <= len; size *= 2) {
        for (int stride = size / 2; stride > 0; stride /= 2) {
            __syncthreads();
            for (int i = threadIdx.x; i < len / 2; i += blockDim.x) {
                const int a = 2 * i - (i & (stride - 1)), b = a + stride;
                const bool descends = (a & size) == 0;
                const unsigned long long x = keys[a], y = keys[b];
                if ((x < y) == descends) keys[a] = y, keys[b] = x;
            }
        }
    }
    __syncthreads();
}

}  // namespace assay
