// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

namespace klineage::gate::metric {

// Names of Metric::name that a trial may hold; readers look them up, and must expect each of them to be missing. Metric::kernel is the
// launch's kernel, or empty for the whole run. Percentages are 0 … 100.

// From the compiler and the plan: there on every trial of CUDA.
inline constexpr auto registers = "registers";                        ///< per thread
inline constexpr auto staticShared = "static_shared";                 ///< B per block
inline constexpr auto dynamicShared = "dynamic_shared";               ///< B per block
inline constexpr auto blocks = "blocks";                              ///< of the launch
inline constexpr auto threadsPerBlock = "threads_per_block";          ///< of the launch
inline constexpr auto blocksPerSm = "blocks_per_sm";                  ///< that can be resident
inline constexpr auto theoreticalOccupancy = "theoretical_occupancy"; ///< %
inline constexpr auto waves = "waves";                                ///< blocks / (blocks_per_sm × SMs)

// From hardware counters: there when the trial was asked for with counters. Always one value for each launch of the plan; a kernel
// launched more than once in a plan has the sum of amounts and the time-weighted mean of rates.

// Set "essential"
inline constexpr auto kernelTime =
    "kernel_time"; ///< ns, as the device's timer saw the profiled launch; not the verdict's time
inline constexpr auto dramBytes = "dram_bytes";            ///< B, read and written
inline constexpr auto dramReadBytes = "dram_read_bytes";   ///< B
inline constexpr auto dramWriteBytes = "dram_write_bytes"; ///< B
inline constexpr auto tensorCycles = "tensor_cycles"; ///< cycles with the tensor pipe busy, summed over SMs
inline constexpr auto tensorActive =
    "tensor_active"; ///< % of elapsed cycles with the tensor pipe busy, mean over SMs
inline constexpr auto warpsActive =
    "warps_active"; ///< % of the warp slots filled while an SM is active: achieved occupancy
inline constexpr auto smActive =
    "sm_active"; ///< % of elapsed cycles with at least one warp on the SM, mean over SMs
inline constexpr auto smCycles = "sm_cycles"; ///< elapsed cycles of the SM with most

// Set "memory"
inline constexpr auto dramThroughput = "dram_throughput"; ///< % of the device memory's peak rate
inline constexpr auto l2HitRate = "l2_hit_rate";          ///< % of sectors looked up in L2
inline constexpr auto l1HitRate =
    "l1_hit_rate"; ///< % of sectors looked up in L1/TEX; bulk (TMA) copies go past it
inline constexpr auto issueActive =
    "issue_active"; ///< % of active cycles in which a scheduler issued an instruction
inline constexpr auto instExecuted = "inst_executed"; ///< warp instructions

// Set "access"
inline constexpr auto sectorsPerLoad =
    "sectors_per_load"; ///< 32-byte sectors a global load request of a warp touches; 4 is ideal for 4-byte elements, 16 at most for 16-byte ones
inline constexpr auto sectorsPerStore = "sectors_per_store"; ///< the same for global stores
inline constexpr auto localLoads =
    "local_loads"; ///< warp instructions that read local memory (spills, indexed arrays)
inline constexpr auto localStores = "local_stores";            ///< warp instructions that write it
inline constexpr auto bankConflicts = "shared_bank_conflicts"; ///< extra shared-memory cycles for conflicts
inline constexpr auto sharedWavefronts =
    "shared_wavefronts"; ///< all shared-memory cycles; conflicts / wavefronts is their share

// Set "operations"
inline constexpr auto ffma = "ffma"; ///< fp32 fused multiply-adds executed by threads (2 operations each)
inline constexpr auto fadd = "fadd"; ///< fp32 additions executed by threads
inline constexpr auto fmul = "fmul"; ///< fp32 multiplications executed by threads
inline constexpr auto tensorInstructions = "tensor_instructions"; ///< warp instructions to the tensor pipe
inline constexpr auto tensorOpsBf16 =
    "tensor_ops_bf16"; ///< multiplications and additions of the tensor pipe, by the inputs' type
inline constexpr auto tensorOpsFp16 = "tensor_ops_fp16";
inline constexpr auto tensorOpsTf32 = "tensor_ops_tf32";
inline constexpr auto tensorOpsFp8 = "tensor_ops_fp8";

// Set "stalls": % of the cycles of resident warps that were spent waiting for this.
inline constexpr auto stallLongScoreboard = "stall_long_scoreboard";   ///< global, local or texture memory
inline constexpr auto stallShortScoreboard = "stall_short_scoreboard"; ///< shared memory, special functions
inline constexpr auto stallBarrier = "stall_barrier";                  ///< __syncthreads and its like
inline constexpr auto stallMembar = "stall_membar";                    ///< memory fences
inline constexpr auto stallMathPipe = "stall_math_pipe_throttle";      ///< an arithmetic pipe that is full
inline constexpr auto stallMioThrottle =
    "stall_mio_throttle"; ///< the queue of shared memory and special functions
inline constexpr auto stallLgThrottle = "stall_lg_throttle"; ///< the queue of global and local memory
inline constexpr auto stallWait = "stall_wait";              ///< the fixed latency of the instruction before
inline constexpr auto stallNotSelected = "stall_not_selected";     ///< ready, but another warp was chosen
inline constexpr auto stallSelected = "stall_selected";            ///< issuing: no stall
inline constexpr auto stallNoInstruction = "stall_no_instruction"; ///< instruction cache misses, branches
inline constexpr auto stallSleeping = "stall_sleeping"; ///< nanosleep, or waiting in a barrier object
inline constexpr auto stallGmma = "stall_gmma";         ///< asynchronous warpgroup products (Hopper)

} // namespace klineage::gate::metric
