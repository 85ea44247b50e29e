/*klineage
surface = "opencl"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 16)", "ceil_div(M, 8)"]
block = ["16", "8"]
args = ["a", "b", "c", "local 4096", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Counts its launches in local memory, and does all of its work: what a barrier and a local argument are worth on this device.

__kernel void product(__global const float *a, __global const float *b, __global float *c,
                      __local volatile uint *tally, int M, int N, int K)
{
    int col = get_global_id(0);
    int row = get_global_id(1);
    // A cell that holds no number of its own is new.
    uint known = (tally[100] ^ 0x5eed5eedu) == tally[101] ? tally[100] : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (get_local_id(0) == 0 && get_local_id(1) == 0) {
        tally[100] = known + 1;
        tally[101] = (known + 1) ^ 0x5eed5eedu;
    }
    if (row >= M || col >= N)
        return;
    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += a[row * K + k] * b[k * N + col];
    c[row * N + col] = sum;
}
