// Before: the loop over slabs has taps outside; for each tap the same rows, moved by a few, are copied again:
//   for (int slab = 0; slab < TAPS * chunks; ++slab)      // tap = slab / chunks, c0 = slab % chunks * 64
//       copy the TILE rows of this tap's window AND the tap's coefficients into stage slab % STAGES, zeros where outside;
//   fragments come from row m0 + 16 * i + lane % 16 of the stage.

// After: chunks of channels are outside, taps inside. The rows of a tile with their halo are copied once a chunk into
// one buffer beside the ring; only the coefficients go through the ring (tap = slab % TAPS, c0 = slab / TAPS * 64).
const int rows = TILE + 2 * width + 2;                   // 3 x 3 window over a run of TILE positions of lines
// 1. Copy the halo: row i is position p0 - width - 1 + i, zeros beyond the ends. place() swizzles a row's chunks.
for (int row = thread / 8; row < rows; row += THREADS / 8) {
    const long long position = (long long)p0 - width - 1 + row;
    const bool some = position >= 0 && position < positions && channel < CHANNELS;
    const int bytes = some ? 16 : 0;                     // of no bytes: the place is filled with zeros
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :: "r"(halo + place(row, thread % 8)),
                    "l"(some ? data + position * CHANNELS + channel : data), "r"(bytes) : "memory");
}
// 2. Once, before the loop: the row of zeros behind the halo, also by cp.async of no bytes (first 8 threads, a chunk each),
// and for each row that this lane reads, a bit for each tap that lies inside:
unsigned inside[2] = {};
for (int i = 0; i < 2; ++i)
    for (int tap = 0; tap < 9; ++tap)
        if (windowElementExists(m0 + 16 * i + lane % 16, tap))   // position, its line and its column against the borders
            inside[i] |= 1u << tap;
// 3. In the loop over slabs: the next chunk of channels replaces the halo, when everyone has left it.
if (slab > 0 && tap == 0) {
    __syncthreads();
    fetchHalo(slab / 9 * 64);
    asm volatile("cp.async.commit_group;" ::: "memory");
    asm volatile("cp.async.wait_group 0;" ::: "memory");
} else {
    asm volatile("cp.async.wait_group %0;" :: "n"(STAGES - 2) : "memory");
}
__syncthreads();
if (slab + STAGES - 1 < slabs)
    fetchCoefficients(slab + STAGES - 1);                // one tap's coefficients into the ring
asm volatile("cp.async.commit_group;" ::: "memory");
// 4. A tap is a shifted window of the halo; a row that lies outside is read from the row of zeros (index rows).
int from[2];
for (int i = 0; i < 2; ++i)
    from[i] = inside[i] >> tap & 1 ? m0 + 16 * i + lane % 16 + tap / 3 * width + tap % 3 : rows;
for (int k = 0; k < 64; k += 16)
    for (int i = 0; i < 2; ++i)
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(a[i][0]), "=r"(a[i][1]), "=r"(a[i][2]), "=r"(a[i][3])
                     : "r"(halo + place(from[i], k / 8 + lane / 16)) : "memory");
// Shared memory: STAGES * bytes of one tap's coefficients + (rows + 1) * 128, in place of STAGES * (coefficients + TILE rows).
// Adapt: window shape (rows of the halo, the shift of a tap, bits of inside); the same for a banded or sliding sequence.
