// Quantisation of rows by itself: a warp a row and 256-block.
#include "quantize.cuh"

/// Tokens that the last tile lacks stay as they are: no product reads them.
extern "C" __global__ void quantize_a16(const float* x, int k, assay::Integers to) {
    assay::begin();
    using namespace assay;
    const int step = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (step >= (k + 255) / 256) return;
    const int at = step * 256 + threadIdx.x % 32 * 8;
    float values[8] = {};
    if (at < k) {
        const float4* from = (const float4*)(x + (size_t)blockIdx.y * k + at);
        const float4 a = from[0], b = from[1];
        values[0] = a.x, values[1] = a.y, values[2] = a.z, values[3] = a.w;
        values[4] = b.x, values[5] = b.y, values[6] = b.z, values[7] = b.w;
    }
    quantize_step(values, blockIdx.y, step, k, to);
}
