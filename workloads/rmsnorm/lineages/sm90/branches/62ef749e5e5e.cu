/*klineage
surface = "cuda"

[[launch]]
kernel = "rmsnorm"
grid = ["ceil_div(R, 4)"]
block = ["32", "4"]
args = ["x", "gamma", "y", "int R", "int C", "float rsqrt(C)"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[r,c] = x[r,c] / sqrt(mean of x[r]² + 1e-5) * gamma[c], f32.
//
// One warp computes one row in two passes: mean square, result.
// The reciprocal of the root is taken once a row; the elements are multiplied by it.
// The count's reciprocal is taken once a launch: rsqrtC is 1 / sqrt(C), its square 1 / C.
// threadIdx.x is the lane, threadIdx.y the row within the block.

// Sum over the 32 lanes of a warp; every lane gets the result.
static __device__ __forceinline__ float warpSum(float v)
{
    #pragma unroll
    for (int offset = 16; offset > 0; offset >>= 1)
        v += __shfl_xor_sync(0xffffffffu, v, offset);
    return v;
}

extern "C" __global__ void rmsnorm(const float *x, const float *gamma, float *y, int R, int C, float rsqrtC)
{
    const int row = blockIdx.x * blockDim.y + threadIdx.y;
    const int lane = threadIdx.x;
    if (row >= R)
        return; // the same for the whole warp; no block barrier follows
    x += size_t(row) * C;
    y += size_t(row) * C;

    float squares = 0.0f;
    for (int c = lane; c < C; c += 32)
        squares += x[c] * x[c];
    squares = warpSum(squares);

    // The sum is final here; the argument is at least 1e-5, so that the reciprocal root is at most about 317.
    const float scale = rsqrtf(squares * (rsqrtC * rsqrtC) + 1e-5f);

    for (int c = lane; c < C; c += 32)
        y[c] = x[c] * scale * gamma[c];
}
