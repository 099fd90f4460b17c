// The k largest of each row, larger value first, then smaller index. Keys order like that as unsigned integers.
#include "../cuda/hopper.cuh"
#include "../cuda/numerics.cuh"

namespace assay {

constexpr int TOP_K_SLICE = 1024;

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

/// The `keep` best keys of each slice of 1,024 values, `[row][slice][keep]`; grid (slices, rows). Zero is no key.
extern "C" __global__ void top_k_slices(const float* values, int len, int keep, unsigned long long* best) {
    assay::begin();
    using namespace assay;
    __shared__ unsigned long long keys[TOP_K_SLICE];
    const float* row = values + (size_t)blockIdx.y * len;
    for (int i = threadIdx.x; i < TOP_K_SLICE; i += blockDim.x) {
        const int index = blockIdx.x * TOP_K_SLICE + i;
        keys[i] = index < len ? key_of(row[index], index) : 0;
    }
    sort_descending(keys, TOP_K_SLICE);
    unsigned long long* to = best + ((size_t)blockIdx.y * gridDim.x + blockIdx.x) * keep;
    for (int i = threadIdx.x; i < keep; i += blockDim.x) to[i] = keys[i];
}

/// The k best of each row's `num_keys`, as (index, value); `padded` is a power of two of at least `num_keys`.
extern "C" __global__ void top_k_merge(
    const unsigned long long* best, int num_keys, int padded, const float* values, int len, int k, uint2* out) {
    assay::begin();
    using namespace assay;
    extern __shared__ unsigned long long merged[];
    for (int i = threadIdx.x; i < padded; i += blockDim.x) {
        merged[i] = i < num_keys ? best[(size_t)blockIdx.x * num_keys + i] : 0;
    }
    sort_descending(merged, padded);
    for (int i = threadIdx.x; i < k; i += blockDim.x) {
        const uint32_t index = 0xFFFFFFFFu - (uint32_t)merged[i];
        const float value = values[(size_t)blockIdx.x * len + index];
        out[(size_t)blockIdx.x * k + i] = make_uint2(index, __float_as_uint(value));
    }
}
