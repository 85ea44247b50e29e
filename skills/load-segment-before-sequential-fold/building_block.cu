template <int N>
__device__ __forceinline__ void load_segment(float (&values)[N], const float *__restrict__ src, size_t stride, int valid)
{
#pragma unroll
    for (int i = 0; i < N; ++i)
        values[i] = i < valid ? src[size_t(i) * stride] : 0.0f;
}
