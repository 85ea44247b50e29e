#include <cuda_fp16.h>

__device__ __forceinline__ float power(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ unsigned pack(float low, float high)
{
    const __half2 both = __floats2half2_rn(low, high);
    return *reinterpret_cast<const unsigned *>(&both);
}

__device__ __forceinline__ float quadMax(float x)
{
    x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
    return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}

// Weights of the scores, and `part`, their sums of this lane's columns, a row each.
__device__ __forceinline__ void weigh(const float (&score)[64], float factor, const float (&reference)[2],
                                      unsigned (&weights)[32], float (&part)[2])
{
    float odd[2] = {};
    part[0] = part[1] = 0.0f;
#pragma unroll
    for (int i = 0; i < 64; i += 2) {
        const float low = power(fmaf(score[i], factor, -reference[i / 2 % 2]));
        const float high = power(fmaf(score[i + 1], factor, -reference[i / 2 % 2]));
        weights[i / 2] = pack(low, high);
        part[i / 2 % 2] += low;
        odd[i / 2 % 2] += high;
    }
    part[0] += odd[0];
    part[1] += odd[1];
}

// Whether any thread of a warpgroup says so; `barrier` is a named barrier of its own.
__device__ __forceinline__ bool anyOfWarpgroup(bool says, int barrier)
{
    int any;
    asm volatile("{\n"
                 ".reg .pred mine, all;\n"
                 "setp.ne.b32 mine, %2, 0;\n"
                 "barrier.cta.red.or.aligned.pred all, %1, 128, mine;\n"
                 "selp.b32 %0, 1, 0, all;\n"
                 "}" : "=r"(any) : "r"(barrier), "r"(int(says)) : "memory");
    return any != 0;
}
