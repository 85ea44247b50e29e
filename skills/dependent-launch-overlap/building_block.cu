// Lets the next launch begin where there is room; this one's results are not there yet.
__device__ __forceinline__ void launchDependents()
{
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

// Waits until the launch before this one has ended.
__device__ __forceinline__ void waitForParents()
{
    asm volatile("griddepcontrol.wait;" ::: "memory");
}
