// SwiGLU's gate: `silu(gate) * up`.
#include "../cuda/gate.cuh"

namespace assay {

__device__ __forceinline__ float silu(float x) {
    return div(x, add(1.0f, exp32(clamp(-x, -87.0f, 87.0f))));
}

}  // namespace assay

extern "C" __global__ void silu_mul(const float* gate, const float* up, float* out, int n, assay::Integers integers) {
    assay::begin();
    assay::gate_mul(gate, up, out, n, integers, assay::silu);
}
