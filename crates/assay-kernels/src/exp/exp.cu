// The exponentials and the logarithm by themselves, for the self-test.
#include "../cuda/hopper.cuh"
#include "../cuda/numerics.cuh"

extern "C" __global__ void exp_all(float* x, size_t len) {
    assay::begin();
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < len; i += (size_t)gridDim.x * blockDim.x) {
        x[i] = assay::exp32(x[i]);
    }
}

extern "C" __global__ void exp64_all(double* x, size_t len) {
    assay::begin();
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < len; i += (size_t)gridDim.x * blockDim.x) {
        x[i] = assay::exp64(x[i]);
    }
}

extern "C" __global__ void ln64_all(double* x, size_t len) {
    assay::begin();
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < len; i += (size_t)gridDim.x * blockDim.x) {
        x[i] = assay::ln64(x[i]);
    }
}
