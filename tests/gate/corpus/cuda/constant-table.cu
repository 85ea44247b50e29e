/*klineage
surface = "cuda"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 32)", "ceil_div(M, 8)"]
block = ["32", "8"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Takes its order along K from a table in constant memory.

// A permutation of 0 … 15.
__constant__ int order[16] = {3, 14, 1, 8, 11, 0, 6, 13, 5, 10, 2, 15, 9, 4, 12, 7};

extern "C" __global__ void product(const float *a, const float *b, float *c, int M, int N, int K)
{
    const int col = blockIdx.x * 32 + threadIdx.x;
    const int row = blockIdx.y * 8 + threadIdx.y;
    if (row >= M || col >= N)
        return;
    float sum = 0.0f;
    const int whole = K / 16 * 16;
    for (int k = 0; k < whole; ++k) {
        const int at = k - k % 16 + order[(k + row) % 16];
        sum += a[row * K + at] * b[at * N + col];
    }
    for (int k = whole; k < K; ++k)
        sum += a[row * K + k] * b[k * N + col];
    c[row * N + col] = sum;
}
