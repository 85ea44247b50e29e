/*klineage
surface = "cuda"

[[launch]]
kernel = "softmax"
shared = "max(4 * C, 131072)"
grid = ["R"]
block = ["1024"]
args = ["x", "y", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Keeps whole rows in most of the multiprocessor's shared memory.

extern __shared__ float row[];

extern "C" __global__ void softmax(const float *x, float *y, int C)
{
    __shared__ float cell[1024];
    const int mine = threadIdx.x;
    x += size_t(blockIdx.x) * C;
    y += size_t(blockIdx.x) * C;
    float top = __int_as_float(0xff800000);
    for (int i = mine; i < C; i += 1024) {
        row[i] = x[i];
        top = fmaxf(top, row[i]);
    }
    cell[mine] = top;
    __syncthreads();
    for (int span = 512; span > 0; span /= 2) {
        if (mine < span)
            cell[mine] = fmaxf(cell[mine], cell[mine + span]);
        __syncthreads();
    }
    top = cell[0];
    __syncthreads();
    float sum = 0.0f;
    for (int i = mine; i < C; i += 1024) {
        row[i] = expf(row[i] - top);
        sum += row[i];
    }
    cell[mine] = sum;
    __syncthreads();
    for (int span = 512; span > 0; span /= 2) {
        if (mine < span)
            cell[mine] += cell[mine + span];
        __syncthreads();
    }
    for (int i = mine; i < C; i += 1024)
        y[i] = row[i] / cell[0];
}
