// Describe rows of 128 swizzled bytes to wgmma, 1024 bytes from one group of 8 rows to the next; where they begin, in units
// of 16 bytes, is added. A right operand whose rows are the columns of the result;
constexpr unsigned long long ALONG = 1ull << 16 | 1024ull >> 4 << 32 | 1ull << 62;
// and one whose rows are summed over, 8192 bytes from 64 columns to the next 64.
constexpr unsigned long long ACROSS = 8192ull >> 4 << 16 | 1024ull >> 4 << 32 | 1ull << 62;

// The factors of this thread's columns of a result, in pairs.
__device__ __forceinline__ void readFactors(float2 (&to)[8], const float *from)
{
#pragma unroll
    for (int n = 0; n < 8; ++n)
        to[n] = *reinterpret_cast<const float2 *>(from + n * 8);
}
