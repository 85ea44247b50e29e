// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/filedescriptor.h"
#include "core/kernel/surfaces/device.h"

#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>

namespace klineage::gate {

/// Gates of this machine take turns on a device, one trial each, in the order in which they asked: two kernels that are timed at once would
/// time each other. Advisory locks (flock) on two files of a folder that all of them name; the system gives back what a killed
/// process held. Others may read and lock the files, but not write to them.
class DeviceTurn
{
public:
    enum class Outcome {
        Had,       ///< it is this gate's turn
        Cancelled, ///< a stop was requested
        NotHad, ///< somebody kept the device for longer than `patience`, or there can be no lock: the trial goes on without
    };

    /// The folder for all gates of this machine, whatever their environment says.
    [[nodiscard]] static std::filesystem::path meetingPlace();

    /// What gates call the device that this process uses: "opencl", "cuda"; "cuda-2" where CUDA_VISIBLE_DEVICES, or Slurm's list of
    /// the GPUs that it gave to the step, says that it is another than the machine's first.
    [[nodiscard]] static std::string nameOf(kernel::DeviceKind kind);

    /// Waits; `waiting` is called before the first pause and every few seconds.
    Outcome take(const std::filesystem::path &folder, const std::string &device, double patienceSeconds,
                 const std::stop_token &stop, const std::function<void()> &waiting = {});
    void release() { m_turn.close(); }

private:
    FileDescriptor m_turn;
};

} // namespace klineage::gate
