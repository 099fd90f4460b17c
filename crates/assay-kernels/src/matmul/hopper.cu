// The products that only compute capability 9.0 has; elsewhere they are empty and nobody launches them.
#include "gemv_single.cuh"

#if ASSAY_HOPPER
#define ASSAY_IF_HOPPER(...) __VA_ARGS__
#else
#define ASSAY_IF_HOPPER(...)
#endif

#define ASSAY_GEMM_WIDE(NAME, Q, S)                                                                                 \
    extern "C" __global__ void __launch_bounds__(32 * assay::GEMM_WARPS, 1) gemm_wide_##NAME(                                          \
        assay::Targets targets, size_t panel_bytes, int k, int num_tokens, assay::Activations x) {                  \
        ASSAY_IF_HOPPER((assay::gemm_wide<Q, S>(targets, panel_bytes, k, num_tokens, x));)                          \
    }
#define ASSAY_GEMV_STREAM(NAME, Q, S)                                                                               \
    extern "C" __global__ void __launch_bounds__(256, assay::Step<Q, S>::FULL <= 2560 ? 3 : 2) gemv_stream_##NAME(  \
        assay::Targets targets, size_t panel_bytes, int k, int num_tokens, assay::Activations x,                    \
        assay::StreamPlan plan) {                                                                                   \
        ASSAY_IF_HOPPER((assay::gemv_stream<Q, S>(targets, panel_bytes, k, num_tokens, x, plan));)                  \
    }
#define ASSAY_GEMV_SINGLE(NAME, Q, S)                                                                               \
    extern "C" __global__ void __launch_bounds__(320, 2) gemv_single_##NAME(                                        \
        assay::Targets targets, size_t panel_bytes, int k, int num_tokens, assay::Activations x,                    \
        assay::StreamPlan plan) {                                                                                   \
        ASSAY_IF_HOPPER((assay::gemv_single<Q, S>(targets, panel_bytes, k, x, plan));)                              \
    }
ASSAY_FORMATS(ASSAY_GEMM_WIDE)
ASSAY_FORMATS(ASSAY_GEMV_SINGLE)
ASSAY_FORMATS(ASSAY_GEMV_STREAM)
