// before: one walk for the maximum, a second one that computes every score again
//   float largest = __int_as_float(0xff800000);
//   for (int i = first; i < last; ++i)
//       largest = fmaxf(largest, score(i));
//   for (int i = first; i < last; ++i) {
//       const float weight = expf((score(i) - largest) * scale);
//       sum += weight;
//       for (int d = 0; d < WIDTH; ++d)
//           result[d] += weight * value(i, d);
//   }

// after: one walk; all that was added up is relative to the maximum so far
float largest = __int_as_float(0xff800000); // -infinity: sound only with the guard below (see the note on tiles)
float sum = 0.0f, result[WIDTH] = {};
for (int i = first; i < last; ++i) {
    const float s = score(i);               // adapt: computed once an element
    if (s > largest) {                      // rare: about log(elements) times for scores in random order
        const float shrink = expf((largest - s) * scale); // 0 at the first element
        sum *= shrink;
#pragma unroll
        for (int d = 0; d < WIDTH; ++d)
            result[d] *= shrink;
        largest = s;
    }
    const float weight = expf((s - largest) * scale);     // at most 1, as scale > 0
    sum += weight;
#pragma unroll
    for (int d = 0; d < WIDTH; ++d)
        result[d] += weight * value(i, d);  // adapt: what is weighted
}
const float inverse = sum > 0.0f ? 1.0f / sum : 0.0f;     // nothing walked over: zeros
// then result[d] * inverse

// Tiles: where a whole tile of scores is taken at once, the maximum of the tile joins the running one and
// everything is shrunk once a tile without the guard. A tile, or row, that is masked wholly then forms
// -infinity - -infinity, which is not a number: begin with a finite maximum there, as
//   float largest = -1e30f;                // masked scores stay -infinity and weigh 0
