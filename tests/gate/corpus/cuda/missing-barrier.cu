/*klineage
surface = "cuda"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 32)", "ceil_div(M, 32)"]
block = ["32", "32"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Reads a tile of shared memory without waiting for the other warps to write it.

extern "C" __global__ void product(const float *a, const float *b, float *c, int M, int N, int K)
{
    __shared__ float tileA[32][33];
    __shared__ float tileB[32][33];
    const int x = threadIdx.x, y = threadIdx.y;
    const int col = blockIdx.x * 32 + x, row = blockIdx.y * 32 + y;
    float sum = 0.0f;
    for (int k0 = 0; k0 < K; k0 += 32) {
        tileA[y][x] = row < M && k0 + x < K ? a[row * K + k0 + x] : 0.0f;
        tileB[y][x] = col < N && k0 + y < K ? b[(k0 + y) * N + col] : 0.0f;
        for (int k = 0; k < 32; ++k)
            sum += tileA[y][k] * tileB[k][x];
    }
    if (row < M && col < N)
        c[row * N + col] = sum;
}
