// RMSNorm of rows: a block of threads a row, a warp a chunk of 1,024 elements. `x` and `out` may be the same rows. The
// rows' integers are made on the way where `integers` has room for them; n is then a multiple of 32.
#include "../quantize/quantize.cuh"

extern "C" __global__ void rms_norm(
    const float* x, const float* weight, int n, float eps, float* out, assay::Integers integers) {
    using namespace assay;
    extern __shared__ float sums[];  // [chunk], then the factor
    const int num_chunks = (n + SUM_CHUNK - 1) / SUM_CHUNK;
    const int warp = threadIdx.x / 32, num_warps = blockDim.x / 32, lane = threadIdx.x % 32;
    x += (size_t)blockIdx.x * n;
    out += (size_t)blockIdx.x * n;
    for (int chunk = warp; chunk < num_chunks; chunk += num_warps) {
        float sum = 0.0f;
        const int end = min(n, (chunk + 1) * SUM_CHUNK);
        for (int start = chunk * SUM_CHUNK + lane; start < end; start += 16 * 32) {
            float values[16];
#pragma unroll
            for (int i = 0; i < 16; i++) values[i] = start + 32 * i < end ? x[start + 32 * i] : 0.0f;
#pragma unroll
            for (int i = 0; i < 16; i++) {
                if (start + 32 * i < end) sum = fma_rn(values[i], values[i], sum);
            }
        }
        sum = sum_lanes(sum);
        if (lane == 0) sums[chunk] = sum;
    }
    __syncthreads();
    float total = 0.0f;
    for (int chunk = 0; chunk < num_chunks; chunk++) total = add(total, sums[chunk]);
    const float r = div(1.0f, __fsqrt_rn(add(div(total, (float)n), eps)));
    // Where x and out are the same rows, a thread writes only what it alone reads from here on.
    for (int step = warp; step * 256 < n; step += num_warps) {
        float values[8];
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const int at = step * 256 + lane * 8 + i;
            values[i] = at < n ? mul(mul(x[at], r), weight[at]) : 0.0f;
            if (at < n) out[at] = values[i];
        }
        if (integers.words) quantize_step(values, blockIdx.x, step, n, integers);
    }
}
