// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/device/opencl/device.h"
#include "core/device/opencl/handle.h"
#include "core/device/references/cpureference.h"

#include <functional>
#include <memory>

namespace klineage::gate::opencl {

/// Where a named tensor or workspace lies: inside an allocation, after its red zone.
struct Region {
    cl_mem buffer = nullptr; ///< view; the backend owns it
    std::size_t bufferBytes = 0;
    std::size_t offsetBytes = 0;
};
using RegionSet = std::map<std::string, Region>;

/// Something the OpenCL backend can run on a buffer set.
class Subject
{
public:
    virtual ~Subject() = default;
    /// Enqueued between two runs, and not timed.
    using Between = std::function<Status()>;
    /// Runs once on each of the sets, in order, and waits; returns the nanoseconds of all of them together, without what lies between
    /// them where something does.
    [[nodiscard]] virtual Result<double> run(const std::vector<std::size_t> &sets,
                                             const Between &between) = 0;
    /// Runs once on the set, the work-groups of each launch in an order that follows from the key. Only where stand-ins work.
    [[nodiscard]] virtual Status runInOrder(std::size_t set, std::uint64_t key)
    {
        static_cast<void>(key);
        return run({set}, {}).map([](double) {});
    }
    /// Hands every launch to the device without running it, so that it is compiled. Only for plans, and where stand-ins work.
    [[nodiscard]] virtual Status prime() { return {}; }
    [[nodiscard]] virtual std::size_t setCount() const = 0;
    /// Local memory that a work-group of any launch has, at most.
    [[nodiscard]] virtual std::size_t localBytes() const { return 0; }
    /// Other buffers of the same names and sizes; not for plans, which are made anew.
    virtual void rebind(std::vector<RegionSet>) {}
    [[nodiscard]] virtual std::string version() const { return {}; }
    [[nodiscard]] virtual std::vector<Metric> metrics() const { return {}; }
};

[[nodiscard]] Result<std::unique_ptr<Subject>> makePlanSubject(const Device &device, cl_command_queue queue,
                                                               cl_program program,
                                                               const kernel::ResolvedPlan &plan,
                                                               const std::vector<RegionSet> &sets);

/// A CPU library on the buffers' own bytes: they are mapped for the time of the call, which on a CPU device copies nothing.
[[nodiscard]] std::unique_ptr<Subject> makeReferenceSubject(const Device &device, cl_command_queue queue,
                                                            std::unique_ptr<CpuReference> reference,
                                                            std::map<std::string, std::string> roles,
                                                            std::vector<RegionSet> sets);

} // namespace klineage::gate::opencl
