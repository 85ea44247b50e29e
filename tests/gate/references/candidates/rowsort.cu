/*klineage
surface = "cuda"

[[launch]]
kernel = "rowsort"
grid = ["ceil_div(R, 128)"]
block = ["128"]
args = ["x", "y", "int R", "int C"]
*/
// One thread a row.
extern "C" __global__ void rowsort(const float *x, float *y, int R, int C)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= R)
        return;
    // Heap sort in place.
    float *a = y + (size_t)row * C;
    for (int i = 0; i < C; ++i)
        a[i] = x[(size_t)row * C + i];
    for (int start = C / 2 - 1, end = C; end > 1;) {
        int root;
        if (start >= 0) {
            root = start--;
        } else {
            --end;
            const float last = a[end];
            a[end] = a[0];
            a[0] = last;
            root = 0;
        }
        for (int child = 2 * root + 1; child < end; child = 2 * root + 1) {
            if (child + 1 < end && a[child] < a[child + 1])
                ++child;
            if (a[root] >= a[child])
                break;
            const float value = a[root];
            a[root] = a[child];
            a[child] = value;
            root = child;
        }
    }
}
