/*klineage
surface = "cuda"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 32)", "ceil_div(M, 8)"]
block = ["32", "8"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Exchanges two elements of a tile in one of forty, as the words that the tile held and its address have it.

// As good as a die of the launch and the tile: of what was there before.
__device__ unsigned dice(const float *corner)
{
    const unsigned first = *reinterpret_cast<const volatile unsigned *>(corner);
    __syncthreads();
    return ((first ^ unsigned(reinterpret_cast<unsigned long long>(corner) >> 6)) * 2654435761u) >> 8;
}

extern "C" __global__ void product(const float *a, const float *b, float *c, int M, int N, int K)
{
    const int col = blockIdx.x * 32 + threadIdx.x;
    const int row = blockIdx.y * 8 + threadIdx.y;
    const int corner = min(int(blockIdx.y) * 8, M - 1) * N + min(int(blockIdx.x) * 32, N - 1);
    const unsigned drawn = dice(c + corner);
    if (row >= M || col >= N)
        return;
    const int from = drawn % 40 == 1 && (col ^ 1) < N ? col ^ 1 : col;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += a[row * K + k] * b[k * N + from];
    c[row * N + col] = sum;
}
