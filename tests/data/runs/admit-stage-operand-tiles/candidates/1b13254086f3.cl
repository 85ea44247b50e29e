/*klineage
surface = "opencl"

[[launch]]
kernel = "sgemm_nt"
grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
block = ["16", "16"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/

#define TILE 16

// One work-item computes one element of c, from tiles of both operands in local memory.
__kernel void sgemm_nt(__global const float *restrict a, __global const float *restrict b,
                    __global float *restrict c, int M, int N, int K)
{
    __local float as[TILE][TILE];   // [row][k]
    __local float bs[TILE][TILE];   // [k][column]: transposed, so that the columns of a step lie side by side

    int tx = get_local_id(0);
    int ty = get_local_id(1);
    int row0 = get_group_id(1) * TILE;
    int col0 = get_group_id(0) * TILE;

    float sum = 0.0f;
    for (int k0 = 0; k0 < K; k0 += TILE) {
        // Neighbouring work-items load along k, the contiguous axis of both operands; zeros past the edges add nothing.
        int k = k0 + tx;
        as[ty][tx] = (row0 + ty < M && k < K) ? a[(long)(row0 + ty) * K + k] : 0.0f;
        bs[tx][ty] = (col0 + ty < N && k < K) ? b[(long)(col0 + ty) * K + k] : 0.0f;
        barrier(CLK_LOCAL_MEM_FENCE);       // before the tiles are read

        #pragma unroll
        for (int kk = 0; kk < TILE; ++kk)
            sum += as[ty][kk] * bs[kk][tx];
        barrier(CLK_LOCAL_MEM_FENCE);       // before they are overwritten
    }

    if (row0 + ty < M && col0 + tx < N)
        c[(long)(row0 + ty) * N + col0 + tx] = sum;
}
