/*klineage
surface = "opencl"

[[workspace]]
name = "room"
dtype = "f32"
shape = ["16777216"]

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "room", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Has 64 MiB of workspace, of which it uses little.

__kernel void product(__global const float *a, __global const float *b, __global float *c, __global float *room,
                      int M, int N, int K)
{
    int col = get_global_id(0);
    int row = get_global_id(1);
    if (row >= M || col >= N)
        return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += a[row * K + k] * b[k * N + col];
    room[row * N + col] = sum;
    c[row * N + col] = room[row * N + col];
}
