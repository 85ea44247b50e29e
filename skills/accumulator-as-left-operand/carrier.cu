// before: the intermediate of a chain of two products goes through shared memory
//   weights[row][column] = weight;  __syncthreads();  result += weights * b   (scalar multiply-adds)

// after, mma.sync: a warp owns 16 rows; the sums of the first product have the layout of the left operand of the
// second one. A lane holds columns lane % 4 * 2 + (0, 1) of every 8, of row lane / 4 (sums 0, 1) and of the row 8
// below (sums 2, 3): two neighbouring groups of 8 columns, packed to 16 bits, are one fragment of 16 x 16.
float result[WIDTH / 8][4] = {};                     // adapt: BN columns a step, WIDTH columns of the result
for (int n0 = 0; n0 < n; n0 += BN) {
    float score[BN / 8][4] = {};
#pragma unroll
    for (int d = 0; d < WIDTH / 16; ++d)             // rowsOperand[d]: loaded once, before the loop
#pragma unroll
        for (int j = 0; j < BN / 8; j += 2) {
            unsigned b[4];
            loadMatrices(b, first + place(8 * j + lane / 16 * 8 + lane % 8, 2 * d + lane / 8 % 2));
            multiply(score[j], rowsOperand[d], b[0], b[1]);
            multiply(score[j + 1], rowsOperand[d], b[2], b[3]);
        }
    // adapt: elementwise and row-wise work on `score` in place; statistics of a row go over the 4 lanes of its
    // quad by two shuffles (xor 1, xor 2), kept as [2], one for each of the lane's rows; index i / 2
#pragma unroll
    for (int k = 0; k < BN / 16; ++k) {
        const unsigned left[4] = {pack(score[2 * k][0], score[2 * k][1]), pack(score[2 * k][2], score[2 * k][3]),
                                  pack(score[2 * k + 1][0], score[2 * k + 1][1]),
                                  pack(score[2 * k + 1][2], score[2 * k + 1][3])};
#pragma unroll
        for (int j = 0; j < WIDTH / 8; j += 2) {     // row-major second operand: transposed on the way
            unsigned b[4];
            loadTransposed(b, second + place(16 * k + lane % 16, j + lane / 16));
            multiply(result[j], left, b[0], b[1]);
            multiply(result[j + 1], left, b[2], b[3]);
        }
    }
}
// where:
//   ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];
//   ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];
//   mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};
//   place(row, chunk) = row * CHUNKS + (chunk ^ (row % 8)), chunks of 16 bytes

// the same on sm_90a: the first product by wgmma from shared memory into score[64] (64 rows a warpgroup, 128 columns),
// the second one with its left operand from registers. The layout is the same: sum i is of the lane's row i / 2 % 2.
unsigned left[32];
#pragma unroll
for (int i = 0; i < 32; ++i)
    left[i] = pack(score[2 * i], score[2 * i + 1]);
pin(result);                                         // asm volatile("" : "+f"(x[i]) :: "memory") for each register
pin(left);                                           // asm volatile("" : "+r"(x[i]) :: "memory") for each register
asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
for (int i = 0; i < 8; ++i)                          // 16 rows of the second operand are 2048 bytes further
    multiplyRegisters(result, left + 4 * i, value + (i * 2048 >> 4));
asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
pin(result);
pin(left);
// the second operand: boxes of 64 columns with 128-byte swizzle, BOX bytes apart; read transposed
//   value = (address & 0x3ffff) >> 4 | (unsigned long long)(BOX >> 4) << 16 | 1024ull >> 4 << 32 | 1ull << 62
// multiplyRegisters: "+f" of the 64 sums, "r" of the four words, "l" of the descriptor; the last 1 is the transpose
//   wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13,
//   %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36,
//   %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59,
//   %60, %61, %62, %63}, {%64, %65, %66, %67}, %68, accumulate, 1, 1, 1;
//   with before it: .reg .pred accumulate; setp.ne.b32 accumulate, 1, 0;
