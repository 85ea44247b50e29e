// The inclusive sum over the lanes up to this one: two instructions a step, the shuffle's own predicate guards the sum.
__device__ unsigned scan(unsigned sum)
{
#pragma unroll
    for (int step = 1; step < 32; step *= 2)
        asm volatile("{\n"
                     ".reg .u32 other;\n"
                     ".reg .pred inside;\n"
                     "shfl.sync.up.b32 other|inside, %0, %1, 0, 0xffffffff;\n"
                     "@inside add.u32 %0, %0, other;\n"
                     "}"
                     : "+r"(sum)
                     : "r"(step));
    return sum;
}
