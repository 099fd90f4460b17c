// Residual addition, and scaling by a constant.
#include "../cuda/hopper.cuh"
#include "../cuda/numerics.cuh"

extern "C" __global__ void residual_add(float* out, const float* x, size_t len) {
    assay::begin();
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < len; i += (size_t)gridDim.x * blockDim.x) {
        out[i] = assay::add(out[i], x[i]);
    }
}

extern "C" __global__ void residual_scale(float* x, float factor, size_t len) {
    assay::begin();
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < len; i += (size_t)gridDim.x * blockDim.x) {
        x[i] = assay::mul(x[i], factor);
    }
}

/// `x[t] += bias` for rows of n.
extern "C" __global__ void residual_bias(float* x, const float* bias, int n, size_t len) {
    assay::begin();
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < len; i += (size_t)gridDim.x * blockDim.x) {
        x[i] = assay::add(x[i], bias[i % n]);
    }
}

/// Row `rows[r]` of `x` to row r of `out`, rows of n.
extern "C" __global__ void residual_gather(const float* x, const uint32_t* rows, int n, float* out) {
    assay::begin();
    const float* from = x + (size_t)rows[blockIdx.x] * n;
    for (int i = threadIdx.x; i < n; i += blockDim.x) out[(size_t)blockIdx.x * n + i] = from[i];
}
