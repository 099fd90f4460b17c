// What readers ask of rows of logits, so that the rows can stay where they are: the normaliser (maximum, SUM32 of EXP64 by
// chunks, LN64), whether all logits are finite, the best few, and the logits and ranks of named ids.
#include "../cuda/hopper.cuh"
#include "../cuda/numerics.cuh"
#include "../top_k/top_k.cuh"

namespace assay {

/// What is known of a slice, or of a row.
struct RowScore {
    float max;           // NaN if any is NaN
    uint32_t is_finite;  // no NaN and no infinity
    double ln_z;         // of a row only
};

/// The larger of all lanes, NaN if any is.
__device__ __forceinline__ float max_of_warp(float largest) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) largest = max_or_nan(largest, __shfl_xor_sync(0xFFFFFFFFu, largest, step));
    return largest;
}

/// The largest key of all lanes.
__device__ __forceinline__ unsigned long long max_of_warp(unsigned long long key) {
    const uint32_t high = __reduce_max_sync(0xFFFFFFFFu, (uint32_t)(key >> 32));
    const uint32_t low = __reduce_max_sync(0xFFFFFFFFu, (uint32_t)(key >> 32) == high ? (uint32_t)key : 0u);
    return (unsigned long long)high << 32 | low;
}

constexpr int MERGE_THREADS = 128;

/// The k best of a row, from the `keep` best of each of its slices, by the block of threads: k rounds of the best of all
/// lists' next keys. `lists` lies in shared memory; zero is no key.
__device__ __forceinline__ void merge_best(
    const unsigned long long* lists, int num_slices, int keep, const float* row, int k, uint2* out) {
    __shared__ unsigned long long winners[2][MERGE_THREADS / 32];
    __shared__ uint32_t indices[TOP_K_FEW];
    // A thread has every 128th list; this many keys of the one that its best key is in are taken.
    extern __shared__ unsigned long long merge_shared[];
    unsigned short* const taken = (unsigned short*)(merge_shared + (size_t)num_slices * keep);
    unsigned long long mine = 0;
    int mine_slice = 0;
    const auto look = [&]() {
        mine = 0;
        for (int slice = threadIdx.x; slice < num_slices; slice += MERGE_THREADS) {
            const int next = taken[slice];
            const unsigned long long key = next < keep ? lists[(size_t)slice * keep + next] : 0;
            if (key > mine) mine = key, mine_slice = slice;
        }
    };
    for (int slice = threadIdx.x; slice < num_slices; slice += MERGE_THREADS) taken[slice] = 0;
    look();
    for (int round = 0; round < k; round++) {
        const unsigned long long best_of_warp = max_of_warp(mine);
        if (threadIdx.x % 32 == 0) winners[round % 2][threadIdx.x / 32] = best_of_warp;
        __syncthreads();
        unsigned long long best = winners[round % 2][0];
#pragma unroll
        for (int warp = 1; warp < MERGE_THREADS / 32; warp++) best = max(best, winners[round % 2][warp]);
        if (mine == best) {  // No two keys are alike, but for zero, of which a row of k values has no need.
            indices[round] = 0xFFFFFFFFu - (uint32_t)best;
            taken[mine_slice]++;
            look();
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < k; i += MERGE_THREADS) out[i] = make_uint2(indices[i], __float_as_uint(row[indices[i]]));
}

}  // namespace assay

/// Maximum, finiteness and the `keep` best keys of each slice of 1,024 logits, `[row][slice]`; grid (slices, rows).
extern "C" __global__ void __launch_bounds__(512) row_scores_slices(
    const float* logits, int vocab_size, int keep, float2* slices, unsigned long long* best) {
    assay::begin();
    using namespace assay;
    __shared__ unsigned long long keys[TOP_K_SLICE];
    __shared__ float maxima[16];
    const float* row = logits + (size_t)blockIdx.y * vocab_size;
    float largest = f32(0xFF800000);
    bool is_finite = true;
    for (int i = threadIdx.x; i < TOP_K_SLICE; i += blockDim.x) {
        const int index = blockIdx.x * TOP_K_SLICE + i;
        keys[i] = 0;
        if (index >= vocab_size) continue;
        const float logit = row[index];
        largest = max_or_nan(largest, logit);
        is_finite &= (__float_as_uint(logit) & 0x7F800000u) != 0x7F800000u;
        keys[i] = key_of(logit, index);
    }
    largest = max_of_warp(largest);
    if (threadIdx.x % 32 == 0) maxima[threadIdx.x / 32] = largest;
    is_finite = __syncthreads_and(is_finite);
    const size_t at = (size_t)blockIdx.y * gridDim.x + blockIdx.x;
    if (threadIdx.x == 0) {
        for (int warp = 1; warp < (int)blockDim.x / 32; warp++) largest = max_or_nan(largest, maxima[warp]);
        slices[at] = make_float2(largest, is_finite ? 1.0f : 0.0f);
    }
    if (keep == 0) return;
    sort_descending(keys, TOP_K_SLICE);
    for (int i = threadIdx.x; i < keep; i += blockDim.x) best[at * keep + i] = keys[i];
}

/// Chunk sums, `[row][chunk]`, a warp a chunk; the first block of a row merges its best instead, k pairs of (index, value)
/// behind the score in `out`, which has `row_words` words a row. Grid (1 + chunks / 4, rows), 128 threads.
extern "C" __global__ void __launch_bounds__(128) row_scores_sums(
    const float* logits, int vocab_size, const float2* slices, const unsigned long long* best, int keep, int k,
    double* sums, uint32_t* out, int row_words) {
    assay::begin();
    using namespace assay;
    extern __shared__ unsigned long long merge_shared[];
    // A slice is a chunk.
    const int num_chunks = (vocab_size + SUM_CHUNK - 1) / SUM_CHUNK, lane = threadIdx.x % 32;
    const float* row = logits + (size_t)blockIdx.y * vocab_size;
    float largest = f32(0xFF800000);
    bool is_finite = true;
    for (int i = lane; i < num_chunks; i += 32) {
        const float2 slice = slices[(size_t)blockIdx.y * num_chunks + i];
        largest = max_or_nan(largest, slice.x);
        is_finite &= slice.y == 1.0f;
    }
    // Adding +0 makes a zero positive, whichever of ±0 came first.
    largest = add(max_of_warp(largest), 0.0f);
    if (blockIdx.x == 0) {
        is_finite = __all_sync(0xFFFFFFFFu, is_finite);
        RowScore* const score = (RowScore*)(out + (size_t)blockIdx.y * row_words);
        if (threadIdx.x == 0) score->max = largest, score->is_finite = is_finite;
        // Values that are no numbers have no order.
        if (k == 0 || is_nan(largest)) return;
        const unsigned long long* from = best + (size_t)blockIdx.y * num_chunks * keep;
        for (int i = threadIdx.x; i < num_chunks * keep; i += blockDim.x) merge_shared[i] = from[i];
        __syncthreads();
        merge_best(merge_shared, num_chunks, keep, row, k, (uint2*)(score + 1));
        return;
    }
    const int chunk = (blockIdx.x - 1) * 4 + threadIdx.x / 32;
    if (chunk >= num_chunks) return;
    double sum = 0.0;
    const int start = chunk * SUM_CHUNK + lane, end = min(vocab_size, (chunk + 1) * SUM_CHUNK);
#pragma unroll 8
    for (int i = start; i < end; i += 32) sum = add(sum, exp64(sub((double)row[i], (double)largest)));
    sum = sum_lanes(sum);
    if (lane == 0) sums[(size_t)blockIdx.y * num_chunks + chunk] = sum;
}

/// `LN64(Z)` of each row; a warp a row. Meaningless where the maximum is not finite.
extern "C" __global__ void row_scores_finish(const double* sums, int num_chunks, uint32_t* out, int row_words) {
    assay::begin();
    using namespace assay;
    __shared__ double some[SUM_CHUNK];
    double z = 0.0;
    for (int first = 0; first < num_chunks; first += SUM_CHUNK) {
        const int count = min(SUM_CHUNK, num_chunks - first);
        __syncwarp();
        for (int i = threadIdx.x; i < count; i += 32) some[i] = sums[(size_t)blockIdx.x * num_chunks + first + i];
        __syncwarp();
#pragma unroll 8
        for (int i = 0; i < count; i++) z = add(z, some[i]);
    }
    if (threadIdx.x == 0) ((RowScore*)(out + (size_t)blockIdx.x * row_words))->ln_z = ln64(z);
}

/// The logits of `ids` in one row and how many ids of it come before each: larger ones, and of equal ones those of
/// smaller id. A block of threads an id.
extern "C" __global__ void __launch_bounds__(1024) row_scores_ids(
    const float* row, int vocab_size, const uint32_t* ids, uint2* out) {
    assay::begin();
    using namespace assay;
    __shared__ uint32_t counts[32];
    const int id = (int)ids[blockIdx.x];
    const float logit = row[id];
    uint32_t count = 0;
#pragma unroll 4
    for (int i = threadIdx.x; i < vocab_size; i += 1024) {
        const float other = row[i];
        count += other > logit || (other == logit && i < id);
    }
    count = __reduce_add_sync(0xFFFFFFFFu, count);
    if (threadIdx.x % 32 == 0) counts[threadIdx.x / 32] = count;
    __syncthreads();
    if (threadIdx.x >= 32) return;
    count = __reduce_add_sync(0xFFFFFFFFu, counts[threadIdx.x]);
    if (threadIdx.x == 0) out[blockIdx.x] = make_uint2(__float_as_uint(logit), count);
}
