/*klineage
surface = "opencl"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 32)", "ceil_div(M, 8)"]
block = ["8", "8"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// The last tile slides back over its neighbour, so that two work-items write the same value to the same
// element.

__kernel void product(__global const float *a, __global const float *b, __global float *c, int M, int N,
                      int K)
{
    int col = get_global_id(0) * 4;
    int row = get_global_id(1);
    if (row >= M || col >= N)
        return;
    col = min(col, max(N - 4, 0));
    for (int j = col; j < min(col + 4, N); ++j) {
        float sum = 0.0f;
        for (int k = 0; k < K; ++k)
            sum += a[row * K + k] * b[k * N + j];
        c[row * N + j] = sum;
    }
}
