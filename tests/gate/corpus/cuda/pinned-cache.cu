/*klineage
surface = "cuda"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 32)", "ceil_div(M, 8)"]
block = ["32", "8"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Asks the second-level cache to keep the operands for the launches that follow.

extern "C" __global__ void product(const float *a, const float *b, float *c, int M, int N, int K)
{
    const int col = blockIdx.x * 32 + threadIdx.x;
    const int row = blockIdx.y * 8 + threadIdx.y;
    if (row >= M || col >= N)
        return;
    unsigned long long keep;
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(keep));
    float sum = 0.0f;
    for (int k = 0; k < K; ++k) {
        float left, right;
        asm volatile("ld.global.L2::cache_hint.f32 %0, [%1], %2;"
                     : "=f"(left)
                     : "l"(a + row * K + k), "l"(keep));
        asm volatile("ld.global.L2::cache_hint.f32 %0, [%1], %2;"
                     : "=f"(right)
                     : "l"(b + k * N + col), "l"(keep));
        sum += left * right;
    }
    c[row * N + col] = sum;
}
