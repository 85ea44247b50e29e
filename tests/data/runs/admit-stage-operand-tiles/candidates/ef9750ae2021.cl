/*klineage
surface = "opencl"

[[launch]]
kernel = "sgemm_nt"
grid = ["ceil_div(N, 32)", "ceil_div(M, 32)"]
block = ["32", "32"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/

#define TILE 32

// Read anew where they are used: no index lives across a barrier.
#define TX get_local_id(0)
#define TY get_local_id(1)
#define ROW0 (get_group_id(1) * TILE)
#define COL0 (get_group_id(0) * TILE)

#define STEP(kk) sum += as[TY][kk] * bs[kk][TX];
#define STEPS(kk) STEP(kk) STEP(kk + 1) STEP(kk + 2) STEP(kk + 3) STEP(kk + 4) STEP(kk + 5) STEP(kk + 6) STEP(kk + 7)

// One work-item computes one element of c, from tiles of both operands in local memory.
__kernel __attribute__((reqd_work_group_size(32, 32, 1)))
void sgemm_nt(__global const float *restrict a, __global const float *restrict b,
              __global float *restrict c, int M, int N, int K)
{
    __local float as[TILE][TILE];   // [row][k]
    __local float bs[TILE][TILE];   // [k][column]: transposed, so that the columns of a step lie side by side

    float sum = 0.0f;
    for (size_t k0 = 0; k0 < (size_t)K; k0 += TILE) {
        // Neighbouring work-items load along k, the contiguous axis of both operands.
        if (k0 + TILE <= (size_t)K && ROW0 + TILE <= (size_t)M && COL0 + TILE <= (size_t)N) {
            as[TY][TX] = a[(ROW0 + TY) * K + k0 + TX];
            bs[TX][TY] = b[(COL0 + TY) * K + k0 + TX];
        } else {
            // Zeros past the edges add nothing to a sum.
            as[TY][TX] = (ROW0 + TY < (size_t)M && k0 + TX < (size_t)K) ? a[(ROW0 + TY) * K + k0 + TX] : 0.0f;
            bs[TX][TY] = (COL0 + TY < (size_t)N && k0 + TX < (size_t)K) ? b[(COL0 + TY) * K + k0 + TX] : 0.0f;
        }
        barrier(CLK_LOCAL_MEM_FENCE);       // before the tiles are read

        STEPS(0)
        STEPS(8)
        STEPS(16)
        STEPS(24)
        barrier(CLK_LOCAL_MEM_FENCE);       // before they are overwritten
    }

    if (ROW0 + TY < (size_t)M && COL0 + TX < (size_t)N)
        c[(ROW0 + TY) * N + COL0 + TX] = sum;
}
