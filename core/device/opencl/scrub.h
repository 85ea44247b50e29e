// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/device/opencl/program.h"

#include <cstdint>
#include <utility>
#include <vector>

namespace klineage::gate::opencl {

/// Overwrites what earlier launches left outside of buffers: local memory, and where private memory lies, to the depth of 256 KiB; what is
/// deeper in the stacks of a processor's threads is given back to the system. One work-group a compute unit does, and waits for the others (for
/// as long as a few hundred microseconds at most), so that none does the work of two.
class Scrub
{
public:
    /// Compiles its kernel.
    [[nodiscard]] static Result<Scrub> make(const Device &device, cl_context context);
    /// Enqueues it: of local memory all that there is, up to 4 MiB, or the first so many bytes.
    [[nodiscard]] Status run(cl_command_queue queue, std::uint32_t word, std::size_t localBytes = wholeLocal);
    static constexpr std::size_t wholeLocal = std::size_t{4}
                                              << 20; ///< some devices say as much as their main memory
    /// After run() has finished, and nothing else was enqueued.
    [[nodiscard]] Status forgetDeepStacks(cl_command_queue queue);

private:
    const Device *m_device = nullptr; ///< outlives it
    Program m_program;
    Kernel m_kernel;
    Memory m_arrived;    ///< one counter, of all runs
    cl_uint m_until = 0; ///< what it is when all of this run have arrived; it may come round
    Memory m_places;     ///< where each work-group's stack was
    std::vector<std::pair<std::uint64_t, std::uint64_t>> m_stacks; ///< as they were when this was made
};

} // namespace klineage::gate::opencl
