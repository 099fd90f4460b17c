// GeGLU's gate: `gelu(gate) * up`, GELU in its tanh form.
#include "../cuda/numerics.cuh"

extern "C" __global__ void gelu_mul(const float* gate, const float* up, float* out, size_t len) {
    using namespace assay;
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < len; i += (size_t)gridDim.x * blockDim.x) {
        const float x = gate[i];
        const float u = mul(f32(0x3F4C422A), add(x, mul(f32(0x3D372713), mul(mul(x, x), x))));
        out[i] = mul(div(x, add(1.0f, exp32(clamp(mul(-2.0f, u), -87.0f, 87.0f)))), up[i]);
    }
}
