// line 1
#include <cuda_bf16.h>

extern "C" __global__ void scale(const __nv_bfloat16 *in, float *out, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x; // line 6
    if (i >= n)
        return;
    float value = __bfloat162float(in[i]);
    for (int k = 0; k < n; ++k)
        value = value * 1.0001f + out[k]; // line 11
    out[i] = value;
}
