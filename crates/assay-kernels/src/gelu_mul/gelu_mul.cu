// GeGLU's gate: `gelu(gate) * up`, GELU in its tanh form.
#include "../cuda/gate.cuh"

namespace assay {

__device__ __forceinline__ float gelu(float x) {
    const float u = mul(f32(0x3F4C422A), add(x, mul(f32(0x3D372713), mul(mul(x, x), x))));
    return div(x, add(1.0f, exp32(clamp(mul(-2.0f, u), -87.0f, 87.0f))));
}

}  // namespace assay

extern "C" __global__ void gelu_mul(const float* gate, const float* up, float* out, int n, assay::Integers integers) {
    assay::begin();
    assay::gate_mul(gate, up, out, n, integers, assay::gelu);
}
