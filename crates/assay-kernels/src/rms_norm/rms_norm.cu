// RMSNorm of rows: a block of threads a row. `x` and `out` may be the same rows. The rows' integers are made on the way
// where `integers` has room for them; n is then a multiple of 32.
#include "../quantize/quantize.cuh"

/// Shared memory: the row, then a sum for each chunk of 1,024.
extern "C" __global__ void rms_norm(
    const float* x, const float* weight, int n, float eps, float* out, assay::Integers integers) {
    using namespace assay;
    extern __shared__ float row[];
    float* const sums = row + n;
    begin();
    const int num_chunks = (n + SUM_CHUNK - 1) / SUM_CHUNK;
    const int warp = threadIdx.x / 32, num_warps = blockDim.x / 32, lane = threadIdx.x % 32;
    x += (size_t)blockIdx.x * n;
    out += (size_t)blockIdx.x * n;
#pragma unroll 8
    for (int i = threadIdx.x; i < n; i += blockDim.x) row[i] = x[i];
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
    for (int step = warp; step * 256 < n; step += num_warps) {
        float values[8];
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const int at = step * 256 + lane * 8 + i;
            values[i] = at < n ? mul(mul(row[at], r), weight[at]) : 0.0f;
            if (at < n) out[at] = values[i];
        }
        if (integers.words) quantize_step(values, blockIdx.x, step, n, integers);
    }
}
