/*klineage
surface = "opencl"

[[launch]]
kernel = "toy"
grid = ["ceil_div(R, 64)"]
block = ["64"]
args = ["x", "y", "int R", "int C"]
*/
// no barrier
__kernel void toy(__global const float *x, __global float *y, int R, int C)
{
}
