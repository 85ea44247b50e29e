/*klineage
surface = "cuda"

[[launch]]
kernel = "fmha"
grid = ["T", "H"]
block = ["D"]
args = ["q", "k", "v", "cu_seqlens_q", "cu_seqlens_k", "output", "int B", "int H", "float rsqrt(D)"]
*/
#include <cuda_fp16.h>

// One block a query and head, one thread an element of it: the softmax is kept up to date key by key.
extern "C" __global__ void fmha(const __half *q, const __half *k, const __half *v, const int *cu_q, const int *cu_k,
                                __half *output, int B, int H, float scale)
{
    __shared__ float partial[4];
    const int D = blockDim.x;
    const int d = threadIdx.x;
    const int token = blockIdx.x;
    const int head = blockIdx.y;
    int b = 0;
    while (b + 1 < B && token >= cu_q[b + 1])
        ++b;
    const float mine = __half2float(q[((size_t)token * H + head) * D + d]) * scale;
    float largest = -3.0e38f;
    float sum = 0.0f;
    float result = 0.0f;
    for (int t = cu_k[b]; t < cu_k[b + 1]; ++t) {
        const size_t at = ((size_t)t * H + head) * D + d;
        float score = mine * __half2float(k[at]);
        for (int offset = 16; offset > 0; offset /= 2)
            score += __shfl_xor_sync(0xffffffffu, score, offset);
        __syncthreads();
        if (d % 32 == 0)
            partial[d / 32] = score;
        __syncthreads();
        score = 0.0f;
        for (int warp = 0; warp < D / 32; ++warp)
            score += partial[warp];
        const float raised = fmaxf(largest, score);
        const float keep = __expf(largest - raised);
        const float weight = __expf(score - raised);
        result = result * keep + weight * __half2float(v[at]);
        sum = sum * keep + weight;
        largest = raised;
    }
    output[((size_t)token * H + head) * D + d] = __float2half(result / sum);
}
