// Soft-cap where the values stand.
#include "../cuda/numerics.cuh"

extern "C" __global__ void softcap(float* x, float cap, size_t len) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < len; i += (size_t)gridDim.x * blockDim.x) {
        x[i] = assay::softcap_one(x[i], cap);
    }
}
