// Before: both operands of wgmma come from shared memory by descriptor. The rows of the product must then lie one behind
// the other, so padding is stored among them and multiplied, and its sums are thrown away:
//   multiply(sums, otherDescriptor, windowDescriptor);   // wgmma, both from shared memory; columns are padded positions

// After: the gathered operand is the first one, M = 64 rows a warpgroup, 16 a warp, as fragments in registers. ldmatrix
// reads them, where every lane names a row of its own: any gather works, and a row that must count nothing is a row of zeros.
const int local = warp * 16 + lane % 16;                 // the row whose address this lane gives
unsigned inside = 0;                                     // a bit for each slab (tap) whose row exists for this lane
const auto loadRows = [&](unsigned (&a)[4][4], int slab) {
    const int from = inside >> slab & 1 ? local + offsetOf(slab) : zeros;        // zeros: index of a row of zeros
#pragma unroll
    for (int k = 0; k < 4; ++k)                          // 64 elements of a row: 4 fragments of 16
        asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                     : "=r"(a[k][0]), "=r"(a[k][1]), "=r"(a[k][2]), "=r"(a[k][3])
                     : "r"(rowsBase + place(from, 2 * k + lane / 16)) : "memory");   // place: 128-byte rows, swizzled
};
const auto multiplySlab = [&](const unsigned (&a)[4][4], int slab) {
    waitPhase(otherFull + 8 * slab, parity);             // the other operand's slab has landed (TMA, mbarrier)
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");   // orders sums and fragments before the products
#pragma unroll
    for (int k = 0; k < 4; ++k)
        multiply(sums, a[k], otherDescriptor + ((slab * SLAB_BYTES + k * 16 * 128) >> 4));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
};
// Two sets of fragments: while one is multiplied, the rows of the next slab are read into the other.
const auto nextRows = [&](unsigned (&a)[4][4], int slab) {
    asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");   // the group before the last has left its registers
    hold(a);                                             // the compiler must not reuse them earlier
    loadRows(a, slab);
};
unsigned even[4][4], odd[4][4];
loadRows(even, 0);
#pragma unroll 1
for (int slab = 0; slab < SLABS - 1; slab += 2) {        // SLABS is odd here (9)
    multiplySlab(even, slab);
    nextRows(odd, slab + 1);
    multiplySlab(odd, slab + 1);
    nextRows(even, slab + 2);
}
multiplySlab(even, SLABS - 1);
asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
hold(even); hold(odd); hold(sums);
// Rows are written by cp.async of all threads; each thread arrives on an mbarrier of THREADS arrivals when its copies land:
asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" :: "r"(rowsFull) : "memory");
// ldmatrix reads as ordinary loads do, so these rows need no proxy fence; several such barriers let first slabs begin early.
// The epilogue has rows as rows: stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4}; without .trans, a stage
// for each warp and __syncwarp only.
// Adapt: what inside and offsetOf mean (a window's tap, an index list, a mask), SLABS, the width N and its N / 2 sums.
