/*klineage
surface = "cuda"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 32)", "ceil_div(M, 8)"]
block = ["32", "8"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Loads a vector of 16 bytes from an address that is no multiple of 16.

extern "C" __global__ void product(const float *a, const float *b, float *c, int M, int N, int K)
{
    const int col = blockIdx.x * 32 + threadIdx.x;
    const int row = blockIdx.y * 8 + threadIdx.y;
    if (row >= M || col >= N)
        return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += a[row * K + k] * b[k * N + col];
    if (K > 8) {
        const int shift = M > 0 ? 1 : 0; // so that the compiler cannot see it and load piece by piece
        float4 head;
        asm volatile("ld.global.v4.f32 {%0, %1, %2, %3}, [%4];"
                     : "=f"(head.x), "=f"(head.y), "=f"(head.z), "=f"(head.w)
                     : "l"(a + shift));
        // All four parts, or the assembler loads only those that are used, one by one.
        sum += (head.x - a[1]) + (head.y - a[2]) + (head.z - a[3]) + (head.w - a[4]);
    }
    c[row * N + col] = sum;
}
