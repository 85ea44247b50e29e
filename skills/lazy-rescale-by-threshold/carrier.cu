// before: in every block the reference becomes the true maximum, and all that was added up is multiplied
//   top = quadMax(max of the scores); shrink = power((largest - top) * factor); largest = top;
//   sum *= shrink; result[i] *= shrink;           // 64 multiplications a lane, and shuffles, in each block

// after: the reference follows late. `factor` is scale * log2(e); reference and tops are in powers of two.
constexpr float SLACK = 8.0f;                        // weights stay at or below 2^8: far from the end of f16 (below 2^16)
float reference[2], sum[2] = {}, shrink[2];
reference[0] = reference[1] = __int_as_float(0xff800000);  // -infinity: the first block outgrows it

// each block, after its mask
float top[2];                                        // of this lane's columns only, no shuffle; two chains of fmaxf a row
#pragma unroll
for (int half = 0; half < 2; ++half) {
    float low = score[2 * half], high = score[2 * half + 1];
#pragma unroll
    for (int i = 4 + 2 * half; i < 64; i += 4) {
        low = fmaxf(low, score[i]);
        high = fmaxf(high, score[i + 1]);
    }
    top[half] = fmaxf(low, high) * factor;
}
// one vote a warp: lanes that share a row take the same branch
const bool raised = __any_sync(~0u, fmaxf(top[0] - reference[0], top[1] - reference[1]) > SLACK);
if (raised)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
        const float now = fmaxf(reference[half], quadMax(top[half]));
        shrink[half] = power(reference[half] - now);
        reference[half] = now;
        sum[half] *= shrink[half];
    }
#pragma unroll
for (int i = 0; i < 64; ++i) {
    score[i] = power(fmaf(score[i], factor, -reference[i / 2 % 2]));  // may exceed 1, at most 2^SLACK
    sum[i / 2 % 2] += score[i];
}
// later, where no product in flight adds to the result any more
if (raised)
#pragma unroll
    for (int i = 0; i < 64; ++i)
        result[i] *= shrink[i / 2 % 2];
// adapt: where rows may be masked in a whole block, keep the reference finite: fmaxf(now, -1e30f). Without it, a row that
// has met nothing when another row of the warp is raised takes infinity from infinity.
