// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/device/opencl/program.h"

#include <cstdint>

namespace klineage::gate::opencl {

/// Overwrites what earlier launches left outside of buffers: local memory, and where private memory lies. One work-group a compute unit
/// does, and waits for the others (for as long as a few hundred microseconds at most), so that none does the work of two.
class Scrub
{
public:
    /// Compiles its kernel.
    [[nodiscard]] static Result<Scrub> make(const Device &device, cl_context context);
    /// Enqueues it.
    [[nodiscard]] Status run(cl_command_queue queue, std::uint32_t word);

private:
    const Device *m_device = nullptr; ///< outlives it
    Program m_program;
    Kernel m_kernel;
    Memory m_arrived; ///< one counter
};

} // namespace klineage::gate::opencl
