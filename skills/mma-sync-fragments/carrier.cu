// Scalar multiply-adds on unpacked bf16 → ldmatrix and mma.sync on the same chunks in shared memory.
// Adapt: the warp's patch (WM × WN) to warps and registers; .trans when an operand is not K-major.

+ constexpr int WM = 64, WN = 32, TM = WM / 16, TN = WN / 8;   // 8 warps, 2 × 4, on 128 × 128
+ const int warpRow = thread / 128 * WM, warpCol = thread / 32 % 4 * WN;

- float acc[TM][TN];
+ float acc[TM][TN][4] = {};
+ #pragma unroll
+ for (int c = 0; c < CHUNKS; c += 2) {        // 16 numbers of K: two chunks
+     unsigned a[TM][4], b[TN / 2][4];
+     // ldmatrix.x4 reads four 8 × 8 matrices; lanes 8i … 8i+7 give the row addresses of matrix i.
+     for (int i = 0; i < TM; ++i)             // a: rows 0-7 | 8-15 of chunk c, then the same of chunk c + 1
+         loadMatrices(a[i], xs + place(warpRow + 16 * i + lane % 16, c + lane / 16));
+     for (int j = 0; j < TN / 2; ++j)         // b: chunks c | c + 1 of 8 rows, then of the next 8 rows
+         loadMatrices(b[j], ws + place(warpCol + 16 * j + lane / 16 * 8 + lane % 8, c + lane / 8 % 2));
+     for (int i = 0; i < TM; ++i)
+         for (int j = 0; j < TN; ++j)         // mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32
+             multiply(acc[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
+ }

+ // In a 16 × 8 tile a lane holds two neighbours of row lane / 4 (acc[0], acc[1]) and of the row 8 below (acc[2], acc[3]).
+ const int row = row0 + warpRow + 16 * i + 8 * half + lane / 4;
+ const int col = col0 + warpCol + 8 * j + lane % 4 * 2;       // even: one 4-byte store, needs N even
+ if (row < M && col < N)
+     *reinterpret_cast<__nv_bfloat162 *>(y + size_t(row) * N + col) =
+         __floats2bfloat162_rn(acc[i][j][2 * half], acc[i][j][2 * half + 1]);
