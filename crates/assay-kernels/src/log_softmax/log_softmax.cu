// The normaliser of rows of logits: maximum, then SUM32 of EXP64 by chunks, then LN64.
#include "../cuda/hopper.cuh"
#include "../cuda/numerics.cuh"

namespace assay {

constexpr int MAX_LOGITS = 8192;  // behind one partial maximum

}  // namespace assay

/// Partial maxima, NaN if any is NaN: `[row][slice]` of 8,192 logits; grid (slices, rows), 256 threads.
extern "C" __global__ void log_softmax_max(const float* logits, int vocab_size, float* maxima) {
    assay::begin();
    using namespace assay;
    __shared__ float parts[8];
    const float* row = logits + (size_t)blockIdx.y * vocab_size;
    float largest = f32(0xFF800000);
    const int end = min(vocab_size, ((int)blockIdx.x + 1) * MAX_LOGITS);
    for (int i = blockIdx.x * MAX_LOGITS + threadIdx.x; i < end; i += blockDim.x) largest = max_or_nan(largest, row[i]);
    for (int step = 16; step > 0; step /= 2) largest = max_or_nan(largest, __shfl_xor_sync(0xFFFFFFFFu, largest, step));
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = largest;
    __syncthreads();
    if (threadIdx.x == 0) {
        for (int i = 1; i < 8; i++) largest = max_or_nan(largest, parts[i]);
        maxima[blockIdx.y * gridDim.x + blockIdx.x] = largest;
    }
}

/// Chunk sums, `[row][chunk]`; a warp a chunk, grid (chunks / 8, rows), 256 threads. The row's maximum goes to `max`.
extern "C" __global__ void log_softmax_sums(
    const float* logits, int vocab_size, const float* maxima, int num_slices, float* max, double* sums) {
    assay::begin();
    using namespace assay;
    float largest = f32(0xFF800000);
    for (int i = 0; i < num_slices; i++) largest = max_or_nan(largest, maxima[blockIdx.y * num_slices + i]);
    // Adding +0 makes a zero positive, whichever of ±0 came first.
    largest = add(largest, 0.0f);
    if (blockIdx.x == 0 && threadIdx.x == 0) max[blockIdx.y] = largest;
    const int num_chunks = (vocab_size + SUM_CHUNK - 1) / SUM_CHUNK;
    const int chunk = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    if (chunk >= num_chunks) return;
    const float* row = logits + (size_t)blockIdx.y * vocab_size;
    double sum = 0.0;
    const int end = min(vocab_size, (chunk + 1) * SUM_CHUNK);
    for (int i = chunk * SUM_CHUNK + lane; i < end; i += 32) sum = add(sum, exp64(sub((double)row[i], (double)largest)));
    sum = sum_lanes(sum);
    if (lane == 0) sums[(size_t)blockIdx.y * num_chunks + chunk] = sum;
}

/// `LN64(Z)` of each row; a thread a row. Meaningless where the maximum is not finite.
extern "C" __global__ void log_softmax_finish(const double* sums, int num_chunks, int num_rows, double* ln_z) {
    assay::begin();
    using namespace assay;
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= num_rows) return;
    double z = 0.0;
    for (int chunk = 0; chunk < num_chunks; chunk++) z = add(z, sums[(size_t)row * num_chunks + chunk]);
    ln_z[row] = ln64(z);
}
