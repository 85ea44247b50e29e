// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/device/cuda/driver.h"
#include "core/device/cuda/scattered.h"
#include "core/device/handle.h"

#include <cstddef>
#include <functional>
#include <string>
#include <utility>

namespace klineage::gate::cuda {

using Stream = Handle<Driver, CUstream, &Driver::streamDestroy>;
using Event = Handle<Driver, CUevent, &Driver::eventDestroy>;
using Module = Handle<Driver, CUmodule, &Driver::moduleUnload>;
using Graph = Handle<Driver, CUgraph, &Driver::graphDestroy>;
using ExecutableGraph = Handle<Driver, CUgraphExec, &Driver::graphExecDestroy>;
using DeviceMemory = Handle<Driver, CUdeviceptr, &Driver::memFree>;
/// Of another process.
using OpenedMemory = Handle<Driver, CUdeviceptr, &Driver::ipcCloseMemHandle>;

/// One of these.
class BufferMemory
{
public:
    BufferMemory() = default;
    explicit BufferMemory(DeviceMemory own)
        : m_own(std::move(own))
    {}
    explicit BufferMemory(OpenedMemory opened)
        : m_opened(std::move(opened))
    {}
    explicit BufferMemory(ScatteredMemory scattered)
        : m_scattered(std::move(scattered))
    {}
    [[nodiscard]] CUdeviceptr get() const
    {
        return m_scattered ? m_scattered.get() : m_own ? m_own.get() : m_opened.get();
    }

private:
    DeviceMemory m_own;
    OpenedMemory m_opened;
    ScatteredMemory m_scattered;
};

/// As C interfaces take it.
[[nodiscard]] inline void *pointerTo(const DeviceMemory &memory)
{
    return reinterpret_cast<void *>(memory.get());
}

// Each fails with the driver's words; `what` completes "Cannot …".
[[nodiscard]] Result<Stream> makeStream(const Driver &driver); ///< that waits for no other
[[nodiscard]] Result<Event> makeEvent(const Driver &driver);
[[nodiscard]] Result<Module> loadModule(const Driver &driver, const void *image, const std::string &what);
/// At least one byte.
[[nodiscard]] Result<DeviceMemory> allocateMemory(const Driver &driver, std::size_t bytes,
                                                  const std::string &what);
/// The allocation that begins there, for openMemory() in another process. Unavailable where the system has no such thing.
[[nodiscard]] Result<std::string> shareMemory(const Driver &driver, CUdeviceptr address);
[[nodiscard]] Result<OpenedMemory> openMemory(const Driver &driver, const std::string &handle);
/// What enqueue() puts on the stream, to be launched as a whole; it is not run.
[[nodiscard]] Result<Graph> captureGraph(const Driver &driver, CUstream stream,
                                         const std::function<Status()> &enqueue);
[[nodiscard]] Result<ExecutableGraph> instantiateGraph(const Driver &driver, const Graph &graph);

} // namespace klineage::gate::cuda
