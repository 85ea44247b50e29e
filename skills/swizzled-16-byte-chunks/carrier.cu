// Elements → chunks of 16 bytes, on both ways. Adapt: elements a chunk (8 for bf16), chunks a row (8: 128 bytes).

+ constexpr int CHUNKS = BK / 8;
+ struct alignas(16) Chunk { unsigned words[4]; };

+ // Chunk c of row r lies at c ^ (r % 8): the same c of 8 neighbouring rows covers all 32 banks, with no padding.
+ // With another row length, take as many bits of r as it takes rows to go once around the banks.
+ __device__ int place(int row, int chunk) { return row * CHUNKS + (chunk ^ (row % 8)); }

- xs[r][c] = row0 + r < M && k < K ? x[size_t(row0 + r) * K + k] : zero;
+ // K % 8 == 0: a chunk is inside the matrix or outside, never half.
+ xs[place(r, c)] = row0 + r < M && k < K ? chunkAt(x + size_t(row0 + r) * K + k) : Chunk{};

- for (int kk = 0; kk < BK; ++kk) {
-     for (int i = 0; i < TM; ++i) a[i] = __bfloat162float(xs[ty + 16 * i][kk]);
+ for (int c = 0; c < CHUNKS; ++c) {
+     Chunk a[TM], b[TN];
+     for (int i = 0; i < TM; ++i) a[i] = xs[place(ty + 16 * i, c)];
+     for (int j = 0; j < TN; ++j) b[j] = ws[place(tx + 16 * j, c)];
+ #pragma unroll                               // w must be a constant, or a and b move to local memory
+     for (int w = 0; w < 4; ++w)
+         for (int i = 0; i < TM; ++i)
+             for (int j = 0; j < TN; ++j) {   // bf16 is the upper half of an fp32: shift and mask unpack a word
+                 acc[i][j] += lower(a[i].words[w]) * lower(b[j].words[w]);
+                 acc[i][j] += upper(a[i].words[w]) * upper(b[j].words[w]);
+             }
+ }
- __launch_bounds__(256, 2)
+ __launch_bounds__(256, 1)                    // (TM + TN) · 4 more registers
