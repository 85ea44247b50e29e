// Takes one more score into the running state; the weight of that score, relative to the largest so far.
template <int WIDTH>
__device__ __forceinline__ float onlineWeight(float score, float scale, float &largest, float &sum, float (&result)[WIDTH])
{
    if (score > largest) {
        const float shrink = expf((largest - score) * scale);
        sum *= shrink;
#pragma unroll
        for (int i = 0; i < WIDTH; ++i)
            result[i] *= shrink;
        largest = score;
    }
    const float weight = expf((score - largest) * scale);
    sum += weight;
    return weight;
}
