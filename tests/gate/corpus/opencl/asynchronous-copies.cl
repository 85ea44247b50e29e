/*klineage
surface = "opencl"

[[launch]]
kernel = "product"
grid = ["ceil_div(N, 16)", "ceil_div(M, 4)"]
block = ["16", "1"]
args = ["a", "b", "c", "local 16 * K", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Has the group copy rows of a into local memory with an event that it waits for.

__kernel void product(__global const float *a, __global const float *b, __global float *c, __local float *rows,
                      int M, int N, int K)
{
    const int first = get_group_id(1) * 4;
    const int count = min(4, M - first);
    event_t copied = async_work_group_copy(rows, a + first * K, (size_t)(count * K), 0);
    wait_group_events(1, &copied);
    const int col = get_global_id(0);
    if (col >= N)
        return;
    for (int row = 0; row < count; ++row) {
        float sum = 0.0f;
        for (int k = 0; k < K; ++k)
            sum += rows[row * K + k] * b[k * N + col];
        c[(first + row) * N + col] = sum;
    }
}
