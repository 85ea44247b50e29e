// Before: each warp multiplies its 16 rows by mma.sync, and loads every tile of the right operand by ldmatrix for itself.
//   packOperand(left, d[2 * step], d[2 * step + 1]);
//   loadMatrices(right, tile + place(row, chunk));
//   multiply(next[2 * n], left, right[0], right[1]);
//   multiply(next[2 * n + 1], left, right[2], right[3]);

// After: the four warps are one warpgroup. The 64 rows of the left operand come from registers, 16 a warp, and the
// tensor cores read the tile from shared memory once for all of them. The fragments have the same layout as before:
// number i of a thread is at row lane / 4 + i % 4 / 2 * 8 of its warp's 16, column i / 4 * 8 + lane % 4 * 2 + i % 2.
unsigned left[8][4];                             // one operand of 16 columns a step
#pragma unroll
for (int i = 0; i < 32; ++i)
    left[i / 4][i % 4] = pack(state[2 * i], state[2 * i + 1]);   // float results to bf16 operands, no shuffle
hold(left);                                      // the compiler may not move what it does to them
asm volatile("wgmma.fence.sync.aligned;" ::: "memory");          // registers are written before the products read them
#pragma unroll
for (int step = 0; step < 8; ++step)             // 32 bytes of a swizzled row a step, 8192 to the next 64 columns
    multiplyAlong(d, left[step], describeAlong(tile + step / 4 * 8192 + step % 4 * 32), step > 0);
// adapt: further independent products here, in the same group
asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
hold(d);                                         // nothing reads d before the wait

// multiplyAlong: d (64 x 64) = or += a (64 x 16) * b^T, b is K-major: its rows are the columns of d.
asm volatile(
    "{\n"
    ".reg .pred accumulate;\n"
    "setp.ne.b32 accumulate, %37, 0;\n"
    "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 "
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
    " %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
    "{%32, %33, %34, %35}, %36, accumulate, 1, 1, 0;\n"   // the last 0: b is not transposed; 1 for rows that are summed over
    "}"
    : SUMS32(0)
    : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));

// The same tile as right operand whose rows are summed over (transposed by the hardware): 16 rows, 2048 bytes, a step.
#pragma unroll
for (int step = 0; step < 4; ++step)
    multiplyAcross(state, decayed[step], describeAcross(tile + step * 2048));
