/*klineage
surface = "opencl"

[[launch]]
kernel = "slice"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 0", "int 48"]

[[launch]]
kernel = "slice"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 1", "int 48"]

[[launch]]
kernel = "slice"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 2", "int 48"]

[[launch]]
kernel = "slice"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 3", "int 48"]

[[launch]]
kernel = "slice"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 4", "int 48"]

[[launch]]
kernel = "slice"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 5", "int 48"]

[[launch]]
kernel = "slice"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 6", "int 48"]

[[launch]]
kernel = "slice"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 7", "int 48"]

[[launch]]
kernel = "slice"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 8", "int 48"]

[[launch]]
kernel = "slice"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 9", "int 48"]

[[launch]]
kernel = "slice"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 10", "int 48"]

[[launch]]
kernel = "slice"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 11", "int 48"]

[[launch]]
kernel = "slice"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 12", "int 48"]

[[launch]]
kernel = "slice"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 13", "int 48"]

[[launch]]
kernel = "slice"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 14", "int 48"]

[[launch]]
kernel = "slice"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 15", "int 48"]

[[launch]]
kernel = "slice"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 16", "int 48"]

[[launch]]
kernel = "slice"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 17", "int 48"]

[[launch]]
kernel = "slice"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 18", "int 48"]

[[launch]]
kernel = "slice"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 19", "int 48"]

[[launch]]
kernel = "slice"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 20", "int 48"]

[[launch]]
kernel = "slice"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 21", "int 48"]

[[launch]]
kernel = "slice"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 22", "int 48"]

[[launch]]
kernel = "slice"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 23", "int 48"]

[[launch]]
kernel = "slice"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 24", "int 48"]

[[launch]]
kernel = "slice"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 25", "int 48"]

[[launch]]
kernel = "slice"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 26", "int 48"]

[[launch]]
kernel = "slice"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 27", "int 48"]

[[launch]]
kernel = "slice"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 28", "int 48"]

[[launch]]
kernel = "slice"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 29", "int 48"]

[[launch]]
kernel = "slice"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 30", "int 48"]

[[launch]]
kernel = "slice"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 31", "int 48"]

[[launch]]
kernel = "slice"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 32", "int 48"]

[[launch]]
kernel = "slice"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 33", "int 48"]

[[launch]]
kernel = "slice"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 34", "int 48"]

[[launch]]
kernel = "slice"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 35", "int 48"]

[[launch]]
kernel = "slice"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 36", "int 48"]

[[launch]]
kernel = "slice"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 37", "int 48"]

[[launch]]
kernel = "slice"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 38", "int 48"]

[[launch]]
kernel = "slice"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 39", "int 48"]

[[launch]]
kernel = "slice"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 40", "int 48"]

[[launch]]
kernel = "slice"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 41", "int 48"]

[[launch]]
kernel = "slice"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 42", "int 48"]

[[launch]]
kernel = "slice"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 43", "int 48"]

[[launch]]
kernel = "slice"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 44", "int 48"]

[[launch]]
kernel = "slice"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 45", "int 48"]

[[launch]]
kernel = "slice"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 46", "int 48"]

[[launch]]
kernel = "slice"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K", "int 47", "int 48"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Sums a slice of the products in each of 48 launches.

__kernel void slice(__global const float *a, __global const float *b, __global float *c, int M, int N, int K,
                    int part, int parts)
{
    int col = get_global_id(0);
    int row = get_global_id(1);
    if (row >= M || col >= N)
        return;
    float sum = part == 0 ? 0.0f : c[row * N + col];
    for (int k = part * K / parts; k < (part + 1) * K / parts; ++k)
        sum += a[row * K + k] * b[k * N + col];
    c[row * N + col] = sum;
}
