// Before: N dependent steps, a thread a column, and half of the threads idle.
//   if (thread < N)
//       for (int t = 0; t < N; ++t) {
//           float sum = t == thread ? 1.0f : 0.0f;
//           for (int s = 0; s < t; ++s) sum -= m[t][s] * inverse[s][thread];
//           inverse[t][thread] = sum;
//       }

// After, in place, for a lower triangular matrix with ones on its diagonal and zeros above it, N = 64, 4 warps:
//   [A 0; B C]^-1 = [A^-1 0; -C^-1 B A^-1 C^-1]
constexpr int N = 64, PITCH = 68;    // adapt: PITCH % 32 == 4, so that the rows of a left operand lie in different banks

// 1. The 16 x 16 blocks of the diagonal, a thread a column, fully unrolled in registers.
float x[16];
#pragma unroll
for (int i = 0; i < 16; ++i) x[i] = i == column ? 1.0f : 0.0f;
#pragma unroll
for (int k = 0; k < 16; ++k)
#pragma unroll
    for (int i = k + 1; i < 16; ++i) x[i] -= m[first + i][first + k] * x[k];
__syncwarp();                        // all lanes have read the block before it is overwritten
// m[first + i][first + column] = x[i]

// 2. Two products a merge: product = C^-1 B, and then -product A^-1, both in tf32.
asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
             "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
             : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
             : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
// The result of the first product is the left operand of the second without a shuffle: its columns 2c and 2c + 1
// are taken for numbers c and c + 4 of the sum, on both sides:
//   a = {-d[0], -d[2], -d[1], -d[3]},   b0 = Ainv[k + 2 * c][n + g],   b1 = Ainv[k + 2 * c + 1][n + g]

// 3. The merges: 16 to 32 by a warp each, 32 to 64 by all four, 16 x 16 of the result each.
if (warp < 2) {
    invertDiagonal(m);
    __syncwarp();
    float block[2][4] = {};
    mergeBlocks<16>(block, m, warp * 32, 0, 0);
    __syncwarp();                    // B has been read by all lanes
    storeBlock(m, block, warp * 32 + 16, warp * 32);
}
__syncthreads();
float block[2][4] = {};
mergeBlocks<32>(block, m, 0, warp / 2 * 16, warp % 2 * 16);
__syncthreads();                     // B has been read by all warps
storeBlock(m, block, 32 + warp / 2 * 16, warp % 2 * 16);
__syncthreads();
