// The sum over eight neighbouring lanes of a warp, in all of them. All 32 lanes have to call it.
__device__ __forceinline__ float groupSum(float x)
{
    x += __shfl_xor_sync(~0u, x, 1);
    x += __shfl_xor_sync(~0u, x, 2);
    x += __shfl_xor_sync(~0u, x, 4);
    return x;
}
