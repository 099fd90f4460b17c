// SwiGLU's gate: `silu(gate) * up`.
#include "../cuda/numerics.cuh"

extern "C" __global__ void silu_mul(const float* gate, const float* up, float* out, size_t len) {
    using namespace assay;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < len; i += (size_t)gridDim.x * blockDim.x) {
        const float x = gate[i];
        out[i] = mul(div(x, add(1.0f, exp32(clamp(-x, -87.0f, 87.0f)))), up[i]);
    }
}
