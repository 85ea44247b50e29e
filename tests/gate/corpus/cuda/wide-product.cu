/*klineage
surface = "cuda"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 32)", "ceil_div(M, 32)"]
block = [256]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// A product of doubles in double precision; a parent.

typedef double Number;
constexpr int SIDE = 32;
// A thread has rows threadIdx.x / 16 and 16 below, and columns threadIdx.x % 16 and 16 to the right.
extern "C" __global__ __launch_bounds__(256) void product(const double *x, const double *w, double *y, int M, int N, int K)
{
    __shared__ Number xs[SIDE][SIDE + 1], ws[SIDE][SIDE + 1];
    const int row0 = blockIdx.y * SIDE, col0 = blockIdx.x * SIDE, down = threadIdx.x / 16, right = threadIdx.x % 16;
    Number sum[2][2] = {};
    Number nextX[4], nextW[4];
    const auto fetch = [&](int first) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int r = threadIdx.x / 32 + 8 * i, k = first + threadIdx.x % 32;
            nextX[i] = row0 + r < M && k < K ? Number(x[size_t(row0 + r) * K + k]) : Number(0);
            nextW[i] = col0 + r < N && k < K ? Number(w[size_t(col0 + r) * K + k]) : Number(0);
        }
    };
    fetch(0);
    for (int first = 0; first < K; first += SIDE) {
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            xs[threadIdx.x / 32 + 8 * i][threadIdx.x % 32] = nextX[i];
            ws[threadIdx.x / 32 + 8 * i][threadIdx.x % 32] = nextW[i];
        }
        __syncthreads();
        fetch(first + SIDE);
#pragma unroll 8
        for (int k = 0; k < SIDE; ++k)
#pragma unroll
            for (int i = 0; i < 4; ++i)
                sum[i / 2][i % 2] += xs[down + 16 * (i / 2)][k] * ws[right + 16 * (i % 2)][k];
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int row = row0 + down + 16 * (i / 2), col = col0 + right + 16 * (i % 2);
        if (row < M && col < N)
            y[size_t(row) * N + col] = sum[i / 2][i % 2];
    }
}
