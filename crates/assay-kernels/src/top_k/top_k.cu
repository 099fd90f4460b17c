// The k largest of each row, larger value first, then smaller index. Keys order like that as unsigned integers.
#include "../cuda/hopper.cuh"
#include "top_k.cuh"

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
