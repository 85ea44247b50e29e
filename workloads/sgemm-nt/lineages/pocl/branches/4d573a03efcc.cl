/*klineage
surface = "opencl"

[[launch]]
kernel = "sgemm_nt"
grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
block = ["16", "16"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/

#define TILE 16

// Read anew where they are used: no index lives across a barrier.
#define TX get_local_id(0)
#define TY get_local_id(1)

// One work-item computes one element of c, from tiles of both operands in local memory.
__kernel __attribute__((reqd_work_group_size(16, 16, 1)))
void sgemm_nt(__global const float *restrict a, __global const float *restrict b,
              __global float *restrict c, int M, int N, int K)
{
    __local float as[TILE][TILE];   // [row][k]
    __local float bs[TILE][TILE];   // [k][column]: transposed, so that the columns of a step lie side by side

    float sum = 0.0f;
    for (int k0 = 0; k0 < K; k0 += TILE) {
        // Neighbouring work-items load along k, the contiguous axis of both operands; zeros past the edges add nothing.
        {
            int k = k0 + (int)TX;
            int row = (int)get_group_id(1) * TILE + (int)TY;
            int col = (int)get_group_id(0) * TILE + (int)TY;
            as[TY][TX] = (row < M && k < K) ? a[(long)row * K + k] : 0.0f;
            bs[TX][TY] = (col < N && k < K) ? b[(long)col * K + k] : 0.0f;
        }
        barrier(CLK_LOCAL_MEM_FENCE);       // before the tiles are read

        sum += as[TY][0] * bs[0][TX];
        sum += as[TY][1] * bs[1][TX];
        sum += as[TY][2] * bs[2][TX];
        sum += as[TY][3] * bs[3][TX];
        sum += as[TY][4] * bs[4][TX];
        sum += as[TY][5] * bs[5][TX];
        sum += as[TY][6] * bs[6][TX];
        sum += as[TY][7] * bs[7][TX];
        sum += as[TY][8] * bs[8][TX];
        sum += as[TY][9] * bs[9][TX];
        sum += as[TY][10] * bs[10][TX];
        sum += as[TY][11] * bs[11][TX];
        sum += as[TY][12] * bs[12][TX];
        sum += as[TY][13] * bs[13][TX];
        sum += as[TY][14] * bs[14][TX];
        sum += as[TY][15] * bs[15][TX];
        barrier(CLK_LOCAL_MEM_FENCE);       // before they are overwritten
    }

    {
        int row = (int)get_group_id(1) * TILE + (int)TY;
        int col = (int)get_group_id(0) * TILE + (int)TX;
        if (row < M && col < N)
            c[(long)row * N + col] = sum;
    }
}
