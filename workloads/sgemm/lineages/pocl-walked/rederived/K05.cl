/*klineage
surface = "opencl"

[[launch]]
kernel = "sgemm"
when = "M >= 12 && N >= 16"
grid = ["ceil_div(N, 64)", "ceil_div(M, 48)"]
block = ["1", "1"]
args = ["a", "b", "c", "int M", "int N", "int K"]

[[launch]]
kernel = "sgemm_small"
when = "M < 12 || N < 16"
grid = ["ceil_div(N, 16)", "ceil_div(M, 16)"]
block = ["16", "16"]
args = ["a", "b", "c", "int M", "int N", "int K"]
*/

#define MR 12   // rows of c in a tile
#define TILES 4 // a work-group computes TILES x TILES tiles

// A tile is MR rows of 16 columns of c. The 16 are neighbours in b and in c: a float16, as
// wide as a vector register of AVX-512 (two of AVX), loads, multiplies, adds and stores them at once. An
// element of b is loaded once for MR rows, and the MR sums do not wait for each other. A work-group is
// one work-item that computes 4 x 4 tiles, along the columns first: the MR rows of a stay in the L1 cache
// for four tiles, the four panels of b in the L2 cache for the next rows of tiles.
__kernel void sgemm(__global const float *restrict a, __global const float *restrict b,
                    __global float *restrict c, int M, int N, int K)
{
    int col_begin = get_global_id(0) * (16 * TILES);
    int row_begin = get_global_id(1) * (MR * TILES);
    if (row_begin >= M || col_begin >= N)
        return;
    int col_end = min(col_begin + 16 * TILES, N);
    int row_end = min(row_begin + MR * TILES, M);

#pragma unroll 1
    for (int tile_row = row_begin; tile_row < row_end; tile_row += MR) {
#pragma unroll 1
        for (int tile_col = col_begin; tile_col < col_end; tile_col += 16) {
            int row = min(tile_row, M - MR);  // the last tile slides back and repeats rows and columns of its neighbour
            int col = min(tile_col, N - 16);
            __global const float *at = a + row * K;
            __global const float *bt = b + col;
            __global float *ct = c + row * N + col;

            float16 sum[MR];
#pragma unroll
            for (int i = 0; i < MR; ++i)
                sum[i] = 0.0f;
            for (int k = 0; k < K; ++k) {
                float16 bk = vload16(0, bt + k * N);
#pragma unroll
                for (int i = 0; i < MR; ++i)
                    sum[i] += at[i * K + k] * bk;
            }
#pragma unroll
            for (int i = 0; i < MR; ++i)
                vstore16(sum[i], 0, ct + i * N);
        }
    }
}

// For matrices smaller than a tile: one work-item computes one element.
__kernel void sgemm_small(__global const float *restrict a, __global const float *restrict b,
                          __global float *restrict c, int M, int N, int K)
{
    int col = get_global_id(0);
    int row = get_global_id(1);
    if (row >= M || col >= N)
        return;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += a[row * K + k] * b[k * N + col];
    c[row * N + col] = sum;
}
