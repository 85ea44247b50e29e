/*klineage
surface = "cuda"

[[launch]]
kernel = "rowscan"
grid = ["ceil_div(R, 128)"]
block = ["128"]
args = ["x", "y", "int R", "int C"]
*/
// One thread a row.
extern "C" __global__ void rowscan(const float *x, float *y, int R, int C)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= R)
        return;
    double sum = 0.0;
    for (int i = 0; i < C; ++i) {
        sum += x[(size_t)row * C + i];
        y[(size_t)row * C + i] = (float)sum;
    }
}
