/*klineage
surface = "opencl"

[[launch]]
kernel = "sgemm"
grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
block = ["16", "16"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/

// Violates a precondition on purpose, to probe a risk of the card stage-operand-tiles: The barrier before a tile is
// read is left out, and the loop over the tile is written out, since around a loop this compiler synchronizes the
// work-items by itself.

#define TS 16  // side of a tile, in elements and in work-items
#define STEP(k) sum += tileA[y][k] * tileB[k][x];

// One work-item computes one element of c. A work-group stages TS x TS tiles of a and b in local memory, so
// that an element fetched once serves TS work-items.
__kernel void sgemm(__global const float *restrict a, __global const float *restrict b,
                    __global float *restrict c, int M, int N, int K)
{
    __local float tileA[TS][TS];
    __local float tileB[TS][TS];
    int x = get_local_id(0);
    int y = get_local_id(1);
    int col = get_global_id(0);
    int row = get_global_id(1);

    float sum = 0.0f;
    for (int k0 = 0; k0 < K; k0 += TS) {
        tileA[y][x] = (row < M && k0 + x < K) ? a[row * K + k0 + x] : 0.0f;
        tileB[y][x] = (col < N && k0 + y < K) ? b[(k0 + y) * N + col] : 0.0f;
        STEP(0) STEP(1) STEP(2) STEP(3) STEP(4) STEP(5) STEP(6) STEP(7)
        STEP(8) STEP(9) STEP(10) STEP(11) STEP(12) STEP(13) STEP(14) STEP(15)
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    if (row < M && col < N)
        c[row * N + col] = sum;
}
