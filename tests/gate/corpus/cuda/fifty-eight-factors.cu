/*klineage
surface = "cuda"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 32)", "ceil_div(M, 8)"]
block = [32, 8]
args = ["a", "b", "c", "int M", "int N", "int K", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1", "float 1"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Fifty-eight factors of one among the parameters, all of which are multiplied: as generated code has them.

extern "C" __global__ void product(const float *a, const float *b, float *c, int M, int N, int K, float f0, float f1, float f2, float f3, float f4, float f5, float f6, float f7, float f8, float f9, float f10, float f11, float f12, float f13, float f14, float f15, float f16, float f17, float f18, float f19, float f20, float f21, float f22, float f23, float f24, float f25, float f26, float f27, float f28, float f29, float f30, float f31, float f32, float f33, float f34, float f35, float f36, float f37, float f38, float f39, float f40, float f41, float f42, float f43, float f44, float f45, float f46, float f47, float f48, float f49, float f50, float f51, float f52, float f53, float f54, float f55, float f56, float f57)
{
    const int col = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 8 + threadIdx.y;
    if (row >= M || col >= N)
        return;
    const float all = 1.0f * f0 * f1 * f2 * f3 * f4 * f5 * f6 * f7 * f8 * f9 * f10 * f11 * f12 * f13 * f14 * f15 * f16 * f17 * f18 * f19 * f20 * f21 * f22 * f23 * f24 * f25 * f26 * f27 * f28 * f29 * f30 * f31 * f32 * f33 * f34 * f35 * f36 * f37 * f38 * f39 * f40 * f41 * f42 * f43 * f44 * f45 * f46 * f47 * f48 * f49 * f50 * f51 * f52 * f53 * f54 * f55 * f56 * f57;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += a[row * K + k] * b[k * N + col];
    c[row * N + col] = sum * all;
}
