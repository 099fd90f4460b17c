// The numerics contract on a device: the constants and functions of `numerics.rs`, `exp` and `exp64`, one rounding per
// named operation. A test compares every constant with `numerics.rs`. All float arithmetic goes through the functions
// below, whose `_rn` intrinsics no compiler contracts; `-fmad=false` guards the rest.
#pragma once

#include <cuda_fp16.h>
#include <stdint.h>

namespace assay {

constexpr int SUM_LANES = 32;
constexpr int SUM_CHUNK = 1024;

__device__ __forceinline__ float f32(uint32_t bits) { return __uint_as_float(bits); }
__device__ __forceinline__ double f64(uint64_t bits) { return __longlong_as_double((long long)bits); }

__device__ __forceinline__ float add(float a, float b) { return __fadd_rn(a, b); }
__device__ __forceinline__ float sub(float a, float b) { return __fsub_rn(a, b); }
__device__ __forceinline__ float mul(float a, float b) { return __fmul_rn(a, b); }
__device__ __forceinline__ float div(float a, float b) { return __fdiv_rn(a, b); }
__device__ __forceinline__ float fma_rn(float a, float b, float c) { return __fmaf_rn(a, b, c); }
__device__ __forceinline__ double add(double a, double b) { return __dadd_rn(a, b); }
__device__ __forceinline__ double sub(double a, double b) { return __dsub_rn(a, b); }
__device__ __forceinline__ double mul(double a, double b) { return __dmul_rn(a, b); }
__device__ __forceinline__ double div(double a, double b) { return __ddiv_rn(a, b); }
__device__ __forceinline__ double fma_rn(double a, double b, double c) { return __fma_rn(a, b, c); }

__device__ __forceinline__ bool is_nan(float x) { return (__float_as_uint(x) & 0x7FFFFFFFu) > 0x7F800000u; }
__device__ __forceinline__ bool is_nan(double x) {
    return (__double_as_longlong(x) & 0x7FFFFFFFFFFFFFFFll) > 0x7FF0000000000000ll;
}

/// The larger of two; NaN if either is.
__device__ __forceinline__ float max_or_nan(float a, float b) {
    return is_nan(a) || is_nan(b) ? f32(0x7FC00000) : b > a ? b : a;
}

/// `f32::clamp`: NaN stays.
__device__ __forceinline__ float clamp(float x, float low, float high) { return x < low ? low : x > high ? high : x; }

/// The value of an f16, exactly.
__device__ __forceinline__ float half_at(const uint16_t* at) { return __half2float(__ushort_as_half(*at)); }

/// Nearest f16, saturating; NaN stays NaN.
__device__ __forceinline__ uint16_t to_half_saturating(float x) {
    return __half_as_ushort(__float2half_rn(clamp(x, -65504.0f, 65504.0f)));
}

/// EXP; the whole range, as the scalar reference.
__device__ __forceinline__ float exp32(float x) {
    const float magic = f32(0x4B400000);
    const float shifted = fma_rn(x, f32(0x3FB8AA3B), magic);
    const float n = sub(shifted, magic);
    const float r = fma_rn(n, -f32(0xB102E308), fma_rn(n, -f32(0x3F317218), x));
    float p = f32(0x394EFDE4);
    p = fma_rn(p, r, f32(0x3AB6A660));
    p = fma_rn(p, r, f32(0x3C088987));
    p = fma_rn(p, r, f32(0x3D2AAA74));
    p = fma_rn(p, r, f32(0x3E2AAAAA));
    p = fma_rn(p, r, f32(0x3F000000));
    const float y = add(fma_rn(mul(r, r), p, r), 1.0f);
    const float e = f32(__float_as_uint(y) + (__float_as_uint(shifted) << 23));
    return is_nan(x) ? x : x < -87.0f ? 0.0f : x > 88.0f ? f32(0x7F800000) : e;
}

/// EXP64.
__device__ __forceinline__ double exp64(double x) {
    const double magic = f64(0x4338000000000000ull);
    const double shifted = fma_rn(x, f64(0x3FF71547652B82FEull), magic);
    const double n = sub(shifted, magic);
    const double r = fma_rn(n, -f64(0x3C7ABC9E3B39803Full), fma_rn(n, -f64(0x3FE62E42FEFA39EFull), x));
    double y = f64(0x3DE6124613A86D09ull);
    y = fma_rn(y, r, f64(0x3E21EED8EFF8D898ull));
    y = fma_rn(y, r, f64(0x3E5AE64567F544E4ull));
    y = fma_rn(y, r, f64(0x3E927E4FB7789F5Cull));
    y = fma_rn(y, r, f64(0x3EC71DE3A556C734ull));
    y = fma_rn(y, r, f64(0x3EFA01A01A01A01Aull));
    y = fma_rn(y, r, f64(0x3F2A01A01A01A01Aull));
    y = fma_rn(y, r, f64(0x3F56C16C16C16C17ull));
    y = fma_rn(y, r, f64(0x3F81111111111111ull));
    y = fma_rn(y, r, f64(0x3FA5555555555555ull));
    y = fma_rn(y, r, f64(0x3FC5555555555555ull));
    y = fma_rn(y, r, f64(0x3FE0000000000000ull));
    y = fma_rn(fma_rn(y, r, 1.0), r, 1.0);
    const double e = f64((uint64_t)__double_as_longlong(y) + ((uint64_t)__double_as_longlong(shifted) << 52));
    return is_nan(x) ? x : x < -708.0 ? 0.0 : x > 709.0 ? f64(0x7FF0000000000000ull) : e;
}

/// LN64.
__device__ __forceinline__ double ln64(double x) {
    if (is_nan(x) || x < 0.0) return f64(0x7FF8000000000000ull);
    if (x == 0.0) return f64(0xFFF0000000000000ull);
    if (x == f64(0x7FF0000000000000ull)) return x;
    const bool is_subnormal = x < f64(0x0010000000000000ull);
    const double normal = is_subnormal ? mul(x, f64(0x4350000000000000ull)) : x;
    const uint64_t bits = (uint64_t)__double_as_longlong(normal);
    const int64_t exponent = (int64_t)(bits - 0x3FE6A09E667F3BCDull) >> 52;
    const double f = f64(bits - (uint64_t)(exponent << 52));
    const double k = (double)(exponent - (is_subnormal ? 54 : 0));
    const double u = sub(f, 1.0);
    const double s = div(u, add(2.0, u));
    const double z = mul(s, s);
    double series = f64(0x3FA642C8590B2164ull);
    series = fma_rn(series, z, f64(0x3FA8618618618618ull));
    series = fma_rn(series, z, f64(0x3FAAF286BCA1AF28ull));
    series = fma_rn(series, z, f64(0x3FAE1E1E1E1E1E1Eull));
    series = fma_rn(series, z, f64(0x3FB1111111111111ull));
    series = fma_rn(series, z, f64(0x3FB3B13B13B13B14ull));
    series = fma_rn(series, z, f64(0x3FB745D1745D1746ull));
    series = fma_rn(series, z, f64(0x3FBC71C71C71C71Cull));
    series = fma_rn(series, z, f64(0x3FC2492492492492ull));
    series = fma_rn(series, z, f64(0x3FC999999999999Aull));
    series = fma_rn(series, z, f64(0x3FD5555555555555ull));
    series = mul(2.0, series);
    const double half_square = mul(mul(0.5, u), u);
    const double tail = fma_rn(s, fma_rn(z, series, half_square), mul(k, f64(0x3DEA39EF35793C76ull)));
    return fma_rn(k, f64(0x3FE62E42FEE00000ull), sub(u, sub(half_square, tail)));
}

/// Folds the 32 lanes of a warp by halves; lane 0 has the sum. Every lane takes part.
template <typename T>
__device__ __forceinline__ T sum_lanes(T lane) {
#pragma unroll
    for (int width = 16; width > 0; width /= 2) {
        lane = add(lane, __shfl_down_sync(0xFFFFFFFFu, lane, width));
    }
    return lane;
}

/// Soft-cap.
__device__ __forceinline__ float softcap_one(float x, float cap) {
    const float e = exp32(clamp(mul(2.0f, div(x, cap)), -87.0f, 87.0f));
    return mul(cap, sub(1.0f, div(2.0f, add(1.0f, e))));
}

}  // namespace assay
