/*klineage
surface = "opencl"

[[launch]]
kernel = "partly"
grid = ["ceil_div(N, 16)", "ceil_div(M, 4)"]
block = ["16", "4"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 0"]

[[launch]]
kernel = "partly"
grid = ["ceil_div(N, 16)", "ceil_div(M, 4)"]
block = ["16", "4"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 1"]

[[launch]]
kernel = "partly"
grid = ["ceil_div(N, 16)", "ceil_div(M, 4)"]
block = ["16", "4"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 2"]

[[launch]]
kernel = "partly"
grid = ["ceil_div(N, 16)", "ceil_div(M, 4)"]
block = ["16", "4"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 3"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Adds the parts of its sums one after another in the output, a launch each, and reads what the launch before wrote.

__kernel void partly(__global const float *a, __global const float *b, __global float *c, int M, int N, int K, int first)
{
    const int col = get_global_id(0), row = get_global_id(1);
    if (row >= M || col >= N)
        return;
    float sum = first == 0 ? 0.0f : c[row * N + col];
    const int step = (K + 3) / 4;
    for (int k = first * step; k < min(K, (first + 1) * step); ++k)
        sum += a[row * K + k] * b[k * N + col];
    c[row * N + col] = sum;
}
