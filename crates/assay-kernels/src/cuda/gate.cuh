// The loop of a gated activation: a warp a row and 256-block of it.
#pragma once

#include "../quantize/quantize.cuh"

namespace assay {

/// `activation(gate) * up` of rows of n, with their integers where `integers` has room; n is then a multiple of 32.
template <typename F>
__device__ __forceinline__ void gate_mul(
    const float* gate, const float* up, float* out, int n, const Integers& integers, F activation) {
    const int step = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (step * 256 >= n) return;
    const size_t row = (size_t)blockIdx.y * n;
    const int at = step * 256 + threadIdx.x % 32 * 8;
    float gates[8], values[8];
    load_eight(gate + row, at, n, gates);
    load_eight(up + row, at, n, values);
#pragma unroll
    for (int i = 0; i < 8; i++) values[i] = at + i < n ? mul(activation(gates[i]), values[i]) : 0.0f;
    store_eight_of(out + row, at, n, values);
    if (integers.words) quantize_step(values, blockIdx.y, step, n, integers);
}

}  // namespace assay
