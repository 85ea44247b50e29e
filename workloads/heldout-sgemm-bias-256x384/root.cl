/*klineage
surface = "opencl"

[[launch]]
kernel = "multiply_add"
grid = ["N", "M"]
block = ["1", "1"]
args = ["a", "b", "bias", "c", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// c = a · b + bias, all row-major; bias is added to every row.
//
// One work-item computes one element of c. A work-group is one work-item.
__kernel void multiply_add(__global const float *restrict a, __global const float *restrict b,
                           __global const float *restrict bias, __global float *restrict c, int M, int N,
                           int K)
{
    int col = get_global_id(0);
    int row = get_global_id(1);
    if (row >= M || col >= N)
        return;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += a[row * K + k] * b[k * N + col];
    c[row * N + col] = sum + bias[col];
}
