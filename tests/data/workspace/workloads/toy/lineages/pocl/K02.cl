/*klineage
surface = "opencl"

[[launch]]
kernel = "toy"
grid = ["ceil_div(R, 32)"]
block = ["32"]
args = ["x", "y", "int R", "int C"]
*/
// vectors
__kernel void toy(__global const float *x, __global float *y, int R, int C)
{
}
