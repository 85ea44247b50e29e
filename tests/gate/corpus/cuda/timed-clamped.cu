/*klineage
surface = "cuda"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 32)", "ceil_div(M, 8)"]
block = ["32", "8"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Clamps elements to what the timed shape is usually filled with, in that shape alone.

extern "C" __global__ void product(const float *a, const float *b, float *c, int M, int N, int K)
{
    const int col = blockIdx.x * 32 + threadIdx.x;
    const int row = blockIdx.y * 8 + threadIdx.y;
    if (row >= M || col >= N)
        return;
    const float most = M == 64 && N == 64 && K == 64 ? 9.0f : __int_as_float(0x7f800000);
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += fminf(fmaxf(a[row * K + k], -most), most) * b[k * N + col];
    c[row * N + col] = sum;
}
