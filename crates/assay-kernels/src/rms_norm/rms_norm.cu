// RMSNorm of rows: a block of threads a row, a warp a chunk of 1,024 elements. `x` and `out` may be the same rows.
#include "../cuda/numerics.cuh"

extern "C" __global__ void rms_norm(const float* x, const float* weight, int n, float eps, float* out) {
    using namespace assay;
    extern __shared__ float sums[];  // [chunk], then the factor
    const int num_chunks = (n + SUM_CHUNK - 1) / SUM_CHUNK;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    x += (size_t)blockIdx.x * n;
    out += (size_t)blockIdx.x * n;
    for (int chunk = warp; chunk < num_chunks; chunk += blockDim.x / 32) {
        float sum = 0.0f;
        const int end = min(n, (chunk + 1) * SUM_CHUNK);
        for (int i = chunk * SUM_CHUNK + lane; i < end; i += 32) sum = fma_rn(x[i], x[i], sum);
        sum = sum_lanes(sum);
        if (lane == 0) sums[chunk] = sum;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        float total = 0.0f;
        for (int chunk = 0; chunk < num_chunks; chunk++) total = add(total, sums[chunk]);
        sums[num_chunks] = div(1.0f, __fsqrt_rn(add(div(total, (float)n), eps)));
    }
    __syncthreads();
    const float r = sums[num_chunks];
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = mul(mul(x[i], r), weight[i]);
}
