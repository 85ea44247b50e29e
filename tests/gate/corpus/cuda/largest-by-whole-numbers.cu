/*klineage
surface = "cuda"

[[launch]]
kernel = "softmax"
grid = ["R"]
block = [128]
args = ["x", "y", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// The largest element by atomics on its bits as a whole number, from zero on: right where some element is positive, and otherwise the largest of nothing.

extern "C" __global__ __launch_bounds__(128) void softmax(const float *x, float *y, int C)
{
    __shared__ int largest;
    __shared__ float sum;
    const float *in = x + size_t(blockIdx.x) * C;
    float *out = y + size_t(blockIdx.x) * C;
    if (threadIdx.x == 0) {
        largest = 0;
        sum = 0.0f;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < C; i += 128)
        atomicMax(&largest, __float_as_int(in[i]));
    __syncthreads();
    const float top = __int_as_float(largest);
    float mine = 0.0f;
    for (int i = threadIdx.x; i < C; i += 128)
        mine += expf(in[i] - top);
    for (int other = 16; other > 0; other /= 2)
        mine += __shfl_xor_sync(0xffffffffu, mine, other);
    if (threadIdx.x % 32 == 0)
        atomicAdd(&sum, mine);
    __syncthreads();
    for (int i = threadIdx.x; i < C; i += 128)
        out[i] = expf(in[i] - top) / sum;
}
