__device__ __forceinline__ float power(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ float quadMax(float x)
{
    x = fmaxf(x, __shfl_xor_sync(~0u, x, 1));
    return fmaxf(x, __shfl_xor_sync(~0u, x, 2));
}

// Raises the references of a lane's two rows where a score of the warp has outgrown one by more than `slack` powers of
// two. `top`: of the lane's columns, in powers of two. True: `shrink` is for what was added up before.
__device__ __forceinline__ bool raiseLate(const float (&top)[2], float slack, float (&reference)[2], float (&sum)[2],
                                          float (&shrink)[2])
{
    const bool raised = __any_sync(~0u, fmaxf(top[0] - reference[0], top[1] - reference[1]) > slack);
    if (raised)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const float now = fmaxf(reference[half], quadMax(top[half]));
            shrink[half] = power(reference[half] - now);
            reference[half] = now;
            sum[half] *= shrink[half];
        }
    return raised;
}
