/*klineage
surface = "cuda"

[[launch]]
kernel = "product"
grid = [1]
block = [32]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// One warp for all elements, with compensated sums.

// Compensated, one element after the other.
__device__ float element(const float *a, const float *b, int N, int K)
{
    float sum = 0.0f, rest = 0.0f;
#pragma unroll 1
    for (int k = 0; k < K; ++k) {
        const float y = __fsub_rn(__fmul_rn(a[k], b[size_t(k) * N]), rest);
        const float t = __fadd_rn(sum, y);
        rest = __fsub_rn(__fsub_rn(t, sum), y);
        sum = t;
    }
    return sum;
}
extern "C" __global__ void product(const float *a, const float *b, float *c, int M, int N, int K)
{
    for (int i = threadIdx.x; i < M * N; i += 32)
        c[i] = element(a + size_t(i / N) * K, b + i % N, N, K);
}
