/*klineage
surface = "cuda"

[[launch]]
kernel = "softmax"
grid = ["ceil_div(R, 4)"]
block = ["32", "4"]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Sums rows that hold a subnormal element in ascending order, so that nothing small is lost: slow, where there are such.

#define MINUS_INFINITY __int_as_float(0xff800000)
__device__ float warpMax(float v)
{
    for (int lane = 16; lane > 0; lane /= 2)
        v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, lane));
    return v;
}
__device__ float warpSum(float v)
{
    for (int lane = 16; lane > 0; lane /= 2)
        v += __shfl_xor_sync(0xffffffffu, v, lane);
    return v;
}
__device__ void statsOf(const float *in, int C, int lane, float &top, float &sum)
{
    top = MINUS_INFINITY, sum = 0.0f;
    for (int i = lane; i < C; i += 32)
        top = fmaxf(top, in[i]);
    top = warpMax(top);
    for (int i = lane; i < C; i += 32)
        sum += expf(in[i] - top);
    sum = warpSum(sum);
}
__device__ void divide(const float *in, float *out, int C, int lane, float top, float sum)
{
    for (int i = lane; i < C; i += 32)
        out[i] = expf(in[i] - top) / sum;
}
__device__ void rowsOf(int block, const float *x, float *y, int R, int C)
{
    const int row = block * blockDim.y + threadIdx.y, lane = threadIdx.x;
    if (row >= R)
        return;
    float top, sum;
    statsOf(x + size_t(row) * C, C, lane, top, sum);
    divide(x + size_t(row) * C, y + size_t(row) * C, C, lane, top, sum);
}

__device__ bool tiny(float v) { return (__float_as_uint(v) & 0x7f800000u) == 0 && (__float_as_uint(v) & 0x7fffffu) != 0; }
// By one lane: of all that are left the smallest comes next; equal ones by their columns.
__device__ __noinline__ void carefully(const float *in, float *out, int C)
{
    float top = MINUS_INFINITY;
    for (int i = 0; i < C; ++i)
        top = fmaxf(top, in[i]);
    float sum = 0.0f, last = MINUS_INFINITY;
    int lastColumn = C;
    for (int n = 0; n < C; ++n) {
        float next = __int_as_float(0x7f800000);
        int column = C;
        for (int i = 0; i < C; ++i) {
            const float v = in[i];
            const bool behind = v > last || (v == last && i > lastColumn) || n == 0;
            if (behind && (v < next || column == C)) {
                next = v;
                column = i;
            }
        }
        last = next;
        lastColumn = column;
        sum += expf(next - top);
    }
    for (int i = 0; i < C; ++i)
        out[i] = expf(in[i] - top) / sum;
}
extern "C" __global__ void softmax(const float *x, float *y, int R, int C)
{
    const int row = blockIdx.x * 4 + threadIdx.y, lane = threadIdx.x;
    if (row >= R)
        return;
    const float *in = x + size_t(row) * C;
    float *out = y + size_t(row) * C;
    bool any = false;
    for (int i = lane; i < C; i += 32)
        any |= tiny(in[i]);
    if (__any_sync(0xffffffffu, any)) {
        if (lane == 0)
            carefully(in, out, C);
        return;
    }
    float top, sum;
    statsOf(in, C, lane, top, sum);
    divide(in, out, C, lane, top, sum);
}
