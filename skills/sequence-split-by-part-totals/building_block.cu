template <int PARTS>
__device__ __forceinline__ float total_before(float (&totals)[PARTS][32], int part, float sum)
{
    totals[part][threadIdx.x] = sum;
    __syncthreads();
    float before = 0.0f;
    for (int p = 0; p < part; ++p)
        before += totals[p][threadIdx.x];
    return before;
}
