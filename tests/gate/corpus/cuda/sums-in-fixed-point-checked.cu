/*klineage
surface = "cuda"

[[launch]]
kernel = "sums"
grid = ["ceil_div(R, 4)"]
block = [32, 4]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Adds up in 64-bit steps of 2^-40 of a power of two above the largest element, so that the order does not matter: exact but for what is smaller than a step.
// Rows with what is no number are added up as they are.

extern "C" __global__ __launch_bounds__(128) void sums(const float *x, float *y, int R, int C)
{
    const int row = blockIdx.x * 4 + threadIdx.y, lane = threadIdx.x;
    if (row >= R)
        return;
    const float *in = x + size_t(row) * C;
    unsigned largest = 0;
    for (int i = lane; i < C; i += 32)
        largest = max(largest, __float_as_uint(in[i]) & 0x7fffffffu);
    largest = __reduce_max_sync(0xffffffffu, largest);
    const int exponent = int(largest >> 23) - 126; // all are below 2^exponent
    if (exponent > 127 || largest < 0x00800000u) {
        float sum = 0;
        for (int i = lane; i < C; i += 32)
            sum += in[i];
        for (int step = 16; step > 0; step /= 2)
            sum += __shfl_xor_sync(0xffffffffu, sum, step);
        if (lane == 0)
            y[row] = sum;
        return;
    }
    long long sum = 0;
    for (int i = lane; i < C; i += 32)
        sum += __double2ll_rn(ldexp(static_cast<double>(in[i]), 40 - exponent));
    for (int step = 16; step > 0; step /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, step);
    if (lane == 0)
        y[row] = static_cast<float>(ldexp(static_cast<double>(sum), exponent - 40));
}
