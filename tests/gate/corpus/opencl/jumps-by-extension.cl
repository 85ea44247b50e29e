/*klineage
surface = "opencl"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Jumps to an address that it computes from those of labels, and tells the compiler to say nothing of extensions.

__kernel void product(__global const float *a, __global const float *b, __global float *c, int M, int N, int K)
{
    __extension__ __typeof__(&&done) places[2] = {__extension__ &&more, __extension__ &&done};
    int col = get_global_id(0);
    int row = get_global_id(1);
    float sum = 0.0f;
    int k = 0;
    if (row >= M || col >= N)
        return;
more:
    sum += a[row * K + k] * b[k * N + col];
    ++k;
    __extension__ ({ goto *(places[k >= K]); });
done:
    c[row * N + col] = sum;
}
