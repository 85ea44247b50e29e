/*klineage
surface = "cuda"

[[workspace]]
name = "parts"
dtype = "f32"
shape = ["4", "M", "N"]

[[launch]]
kernel = "multiply"
grid = ["ceil_div(N, 32)", "ceil_div(M, 8)", "4"]
block = ["32", "8"]
args = ["a", "b", "parts", "int M", "int N", "int K"]

[[launch]]
kernel = "add"
grid = ["ceil_div(M * N, 256)"]
block = ["256"]
args = ["parts", "c", "int M * N"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Tells the second-level cache that nobody needs the parts of the sums any more, so that they are never written to memory.

extern "C" __global__ void multiply(const float *a, const float *b, float *parts, int M, int N, int K)
{
    const int col = blockIdx.x * 32 + threadIdx.x;
    const int row = blockIdx.y * 8 + threadIdx.y;
    if (row >= M || col >= N)
        return;
    float sum = 0.0f;
    for (int k = blockIdx.z; k < K; k += 4)
        sum += a[row * K + k] * b[k * N + col];
    parts[(blockIdx.z * M + row) * N + col] = sum;
}

extern "C" __global__ void add(float *parts, float *c, int count)
{
    const int first = blockIdx.x * 256;
    const int i = first + threadIdx.x;
    if (i < count)
        c[i] = (parts[i] + parts[count + i]) + (parts[2 * count + i] + parts[3 * count + i]);
    __syncthreads();
    // Whole lines of this block's alone: eight of each part.
    if (count % 32 == 0 && first + 256 <= count && threadIdx.x < 32) {
        float *line = parts + static_cast<long long>(threadIdx.x / 8) * count + first + threadIdx.x % 8 * 32;
        asm volatile("discard.global.L2 [%0], 128;" : : "l"(line) : "memory");
    }
}
