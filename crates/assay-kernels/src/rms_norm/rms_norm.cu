// RMSNorm of rows: a block of threads a row. `x` and `out` may be the same rows. The rows' integers are made on the way
// where `integers` has room for them; n is then a multiple of 32.
#include "../quantize/quantize.cuh"

/// Shared memory: the row, then a sum for each chunk of 1,024. A thread has eight elements, those of longer rows more.
extern "C" __global__ void __launch_bounds__(1024) rms_norm(
    const float* x, const float* weight, int n, float eps, float* out, assay::Integers integers) {
    using namespace assay;
    extern __shared__ __align__(16) float row[];
    float* const sums = row + n;
    const int num_chunks = (n + SUM_CHUNK - 1) / SUM_CHUNK;
    const int warp = threadIdx.x / 32, num_warps = blockDim.x / 32, lane = threadIdx.x % 32;
    const int first = threadIdx.x * 8, stride = blockDim.x * 8;
    x += (size_t)blockIdx.x * n;
    out += (size_t)blockIdx.x * n;
    // A row of little latency is what this kernel is for: the weights come while the kernel before still runs.
    float weights[8], values[8];
    load_eight(weight, first, n, weights);
    begin();
    load_eight(x, first, n, values);
    store_eight_of(row, first, n, values);
    for (int at = first + stride; at < n; at += stride) {
        float more[8];
        load_eight(x, at, n, more);
        store_eight_of(row, at, n, more);
    }
    __syncthreads();
    for (int chunk = warp; chunk < num_chunks; chunk += num_warps) {
        float sum = 0.0f;
        const int end = min(n, (chunk + 1) * SUM_CHUNK);
#pragma unroll 16
        for (int i = chunk * SUM_CHUNK + lane; i < end; i += 32) sum = fma_rn(row[i], row[i], sum);
        sum = sum_lanes(sum);
        if (lane == 0) sums[chunk] = sum;
    }
    __syncthreads();
    float total = 0.0f;
    for (int chunk = 0; chunk < num_chunks; chunk++) total = add(total, sums[chunk]);
    const float r = div(1.0f, __fsqrt_rn(add(div(total, (float)n), eps)));
    // Whole warps together: eight elements a lane are a 256-block of the integers.
    for (int step = warp; step * 256 < n; step += num_warps) {
        const int at = step * 256 + lane * 8;
        if (step != warp) {
            load_eight(row, at, n, values);
            load_eight(weight, at, n, weights);
        }
#pragma unroll
        for (int i = 0; i < 8; i++) values[i] = at + i < n ? mul(mul(values[i], r), weights[i]) : 0.0f;
        store_eight_of(out, at, n, values);
        if (integers.words) quantize_step(values, blockIdx.x, step, n, integers);
    }
}
