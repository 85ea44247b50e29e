// Counts one more in the bin, if it is one of the window, and returns how many were there. A predicate rather than
// a branch around the atomic: those of one thread are under way together.
__device__ unsigned claim(unsigned *bins, unsigned bin, unsigned last)
{
    unsigned number = 0;
    asm volatile("{\n"
                 ".reg .pred inside;\n"
                 "setp.le.u32 inside, %2, %3;\n"
                 "@inside atom.shared.add.u32 %0, [%1], 1;\n"
                 "}"
                 : "+r"(number)
                 : "r"(unsigned(__cvta_generic_to_shared(bins)) + 4 * bin), "r"(bin), "r"(last)
                 : "memory");
    return number;
}
