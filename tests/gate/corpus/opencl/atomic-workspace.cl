/*klineage
surface = "opencl"

[[workspace]]
name = "total"
dtype = "f32"
shape = ["M", "N"]
init = "zero"

[[launch]]
kernel = "parts"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)", "4"]
block = ["16", "8", "1"]
args = ["a", "b", "total", "int M", "int N", "int K"]

[[launch]]
kernel = "finish"
grid = ["ceil_div(M * N, 64)"]
block = ["64"]
args = ["total", "c", "int M * N"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Four parts of K added with atomics to a cleared workspace, which a second launch copies.

void addTo(volatile __global float *target, float value)
{
    volatile __global int *bits = (volatile __global int *)target;
    int seen = *bits;
    for (;;) {
        int found = atomic_cmpxchg(bits, seen, as_int(as_float(seen) + value));
        if (found == seen)
            return;
        seen = found;
    }
}

__kernel void parts(__global const float *a, __global const float *b, __global float *total, int M, int N,
                    int K)
{
    int col = get_global_id(0);
    int row = get_global_id(1);
    if (row >= M || col >= N)
        return;
    float sum = 0.0f;
    for (int k = get_global_id(2); k < K; k += 4)
        sum += a[row * K + k] * b[k * N + col];
    addTo(total + row * N + col, sum);
}

__kernel void finish(__global const float *total, __global float *c, int count)
{
    int i = get_global_id(0);
    if (i < count)
        c[i] = total[i];
}
