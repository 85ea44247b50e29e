/*klineage
surface = "opencl"

[[launch]]
kernel = "silu"
grid = ["ceil_div(C, 64)", "R"]
block = ["64"]
args = ["x", "y", "int C"]
*/

// One work-item computes one element.
__kernel void silu(__global const float *x, __global float *y, int C)
{
    int c = get_global_id(0);
    int r = get_global_id(1);
    if (c >= C)
        return;
    float v = x[r * C + c];
    y[r * C + c] = v / (1.0f + exp(-v));
}
