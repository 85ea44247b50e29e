/*klineage
surface = "cuda"

[[tunable]]
name = "WIDE"
default = 1
values = [0, 1]

[[tunable]]
name = "TYPE"
default = 0
values = [0, 1, 2]

[[launch]]
kernel = "compare"
grid = ["ceil_div(ELEMENTS, 65536)"]
block = ["256"]
args = ["out", "expected", "partials", "long ELEMENTS", "double ABSOLUTE", "double RELATIVE"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Every element of an output with what it has to be, as core/gate/check/comparison.h says: what 65,536 of them come to, block by block. An
// element is right when it is no further off than `absolute` + `relative` of what it has to be; what is not finite, when it is the same.
#define ELEMENTS_OF_BLOCK 65536

struct Partial {
    double errorSquares; // of what is finite on both sides
    double expectedSquares;
    double unroundedSquares; // of what errors were before results were rounded
    double largestError; // infinite where one side alone is not finite
    i64 mismatches;
    i64 first; // mismatch; `elements` when there is none
};

__device__ inline bool isFiniteNumber(double x)
{
    return x - x == 0;
}

// squareBeforeRounding() of comparison.h
__device__ inline double unroundedSquare(double error, double size)
{
    const int bits = TYPE == 2 ? 7 : TYPE == 1 ? 10 : 23;
    const int least = TYPE == 1 ? -14 : -126 + bits;
    int exponent = static_cast<int>(__float_as_uint(static_cast<float>(size)) >> 23) - 127; // of what is positive
    exponent = exponent > least ? exponent : least;
    const float distance = __uint_as_float(static_cast<u32>(exponent - bits + 127) << 23);
    const double excess = error - 0.5 * distance;
    return excess <= 0 ? 0 : excess * (excess > 2.0 * distance ? excess : 2.0 * distance);
}

extern "C" __global__ void __launch_bounds__(256)
    compare(const void *out, const Out *expected, Partial *partials, i64 elements, double absolute, double relative)
{
    __shared__ Partial parts[256];
    const double infinity = __uint_as_float(0x7f800000u);
    const i64 begin = static_cast<i64>(blockIdx.x) * ELEMENTS_OF_BLOCK;
    const i64 end = begin + ELEMENTS_OF_BLOCK < elements ? begin + ELEMENTS_OF_BLOCK : elements;
    Partial mine = {0, 0, 0, 0, 0, elements};
    for (i64 i = begin + threadIdx.x; i < end; i += 256) {
        const double want = expected[i];
        const double got = element<TYPE>(out, i);
        bool same = false;
        if (isFiniteNumber(want) && isFiniteNumber(got)) {
            const double error = got < want ? want - got : got - want;
            const double size = want < 0 ? -want : want;
            mine.errorSquares += error * error;
            mine.expectedSquares += want * want;
            mine.unroundedSquares += unroundedSquare(error, size);
            mine.largestError = error > mine.largestError ? error : mine.largestError;
            same = error <= absolute + relative * size;
        } else {
            same = (want != want && got != got) || want == got;
            mine.largestError = same ? mine.largestError : infinity;
        }
        if (!same) {
            mine.mismatches += 1;
            mine.first = i < mine.first ? i : mine.first;
        }
    }
    parts[threadIdx.x] = mine;
    for (int half = 128; half > 0; half /= 2) {
        __syncthreads();
        if (static_cast<int>(threadIdx.x) >= half)
            continue;
        Partial &sum = parts[threadIdx.x];
        const Partial &other = parts[threadIdx.x + half];
        sum.errorSquares += other.errorSquares;
        sum.expectedSquares += other.expectedSquares;
        sum.unroundedSquares += other.unroundedSquares;
        sum.largestError = other.largestError > sum.largestError ? other.largestError : sum.largestError;
        sum.mismatches += other.mismatches;
        sum.first = other.first < sum.first ? other.first : sum.first;
    }
    if (threadIdx.x == 0)
        partials[blockIdx.x] = parts[0];
}
