/*klineage
surface = "cuda"

[[launch]]
kernel = "topk"
grid = ["ceil_div(S, 256)", "B"]
block = ["256"]
args = ["x", "values", "indices", "int S", "int K"]
*/
// One thread an element, which counts those that come before it.
extern "C" __global__ void topk(const float *x, float *values, int *indices, int S, int K)
{
    __shared__ float tile[256];
    const int i = blockIdx.x * 256 + threadIdx.x;
    const float *row = x + (size_t)blockIdx.y * S;
    const float mine = i < S ? row[i] : 0.0f;
    int rank = 0;
    for (int base = 0; base < S; base += 256) {
        if (base + (int)threadIdx.x < S)
            tile[threadIdx.x] = row[base + threadIdx.x];
        __syncthreads();
        for (int j = 0; j < min(256, S - base); ++j)
            rank += tile[j] > mine || (tile[j] == mine && base + j < i);
        __syncthreads();
    }
    if (i < S && rank < K) {
        values[(size_t)blockIdx.y * K + rank] = mine;
        indices[(size_t)blockIdx.y * K + rank] = i;
    }
}
