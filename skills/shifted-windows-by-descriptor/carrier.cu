// Before: for each tap of a sliding window, fragments come by ldmatrix from rows chosen lane by lane; a mask for each
// row and tap decides whether to read the row or a row of zeros; products are mma.sync:
//   from[i] = inside[i] >> tap & 1 ? m0 + 16 * i + lane % 16 + offset(tap) : zeroRow;
//   ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];
//   mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {...} on fragments in registers.

// After: 1. Positions are the elements of a line with one zero more at its left, so PITCH = width + 1. That zero is also
// the right border of the line before. A window moved by (dy, dx) is then the same run of rows, dy * PITCH + dx further.
const int pitch = width + 1;
const int rows = TILE + 2 * pitch + 2;                   // 3 x 3 window: halo of a run of TILE positions
// 2. Stage the halo once for all taps: a position is a row of 128 bytes (64 channels), zero-filled where it is padding.
for (int row = thread / 8; row < rows; row += THREADS / 8) {
    const int line = (q0 + row) / pitch - 1, x = (q0 + row) % pitch - 1;
    const bool some = line >= 0 && line < height && x >= 0 && channel < CHANNELS;   // channel = c0 + thread % 8 * 8
    // place(row, chunk) = row * 128 + (chunk ^ (row % 8)) * 16, from a base aligned to 1024 bytes.
    const int bytes = some ? 16 : 0;                     // 0: the 16 bytes become zeros
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(halo + place(row, thread % 8)),
                    "l"(some ? image + (line * width + x) * CHANNELS + channel : image), "r"(bytes) : "memory");
}
// 3. Before the products: every copier waits for its copies, then makes them visible to wgmma, then the block meets.
asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
__syncthreads();
// 4. A tap only moves the start address of the descriptor, by whole rows. No mask, no fragment loads.
// The other operand is the rows of the product (M = 64 a warpgroup), positions are its columns (N = TILE).
const unsigned long long other = describe(ringStage + warpgroup * 8192);   // 64 rows (k) of 64 elements (m)
const unsigned long long window = describe(halo + (tap / 3 * pitch + tap % 3) * 128);
asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
for (int k = 0; k < 64; k += 16)                         // the other operand advances by rows, the window by bytes of a row
    multiply(sums, other + (k * 128 >> 4), window + (k * 2 >> 4));
asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
// describe: (address & 0x3ffff) >> 4 | 1ull << 16 | 1024ull >> 4 << 32 | 1ull << 62   (128-byte swizzle)
// The base-offset field (bit 49) stays 0 for any row: the swizzle follows from the address bits themselves.
// 5. Columns that are padding are computed and thrown away: store only where x < width and line < height.
// A thread has neighbouring positions of one row of the product. Turn them back through shared memory, then store 16 bytes:
asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};"
             :: "r"(to), "r"(p0), "r"(p1), "r"(p2), "r"(p3) : "memory");   // p: pairs of sums as f16x2
// Adapt: window shape (halo and the offset of a tap), a pad for each side that the window reaches beyond one element,
// the type in the instruction's name, N (and the number of sums, N / 2).
