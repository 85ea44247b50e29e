// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"
#include "core/device/backend.h"
#include "core/device/cuda/driver.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace klineage::gate::cuda {

/// Of what a thread has as local memory; a plan of which one takes more is refused. As much is overwritten between samples.
inline constexpr std::size_t mostLocalBytes = std::size_t{16} << 10;

/// Buffer name -> device address of its first element.
using AddressSet = std::map<std::string, CUdeviceptr>;

/// Something that can be enqueued on a stream: a candidate's plan or a vendor routine.
class Subject
{
public:
    virtual ~Subject() = default;

    /// Enqueues one run over the given set; also called during stream capture, so it must not synchronize.
    [[nodiscard]] virtual Status enqueue(CUstream stream, std::size_t set) = 0;
    /// The same for a run whose result is looked at: also brings operands into the layout that the routine takes, and its result back,
    /// which is no part of what is timed.
    [[nodiscard]] virtual Status enqueueChecked(CUstream stream, std::size_t set)
    {
        return enqueue(stream, set);
    }
    [[nodiscard]] virtual std::size_t setCount() const = 0;
    /// The kernels of one run, in order; empty when it is not known which they are.
    [[nodiscard]] virtual std::vector<std::string> kernels() const { return {}; }
    /// Other buffers of the same names and sizes; not for plans, which are made anew.
    virtual void rebind(std::vector<AddressSet>) {}
    [[nodiscard]] virtual std::string version() const { return {}; }
    /// Its threads may keep something in local memory.
    [[nodiscard]] virtual bool usesLocal() const { return false; }
    /// Blocks of a launch wait for each other (a cooperative launch).
    [[nodiscard]] virtual bool meets() const { return false; }
    [[nodiscard]] virtual std::vector<Metric> metrics() const { return {}; }
};

/// A launch plan with its tensor maps encoded for every set.
[[nodiscard]] Result<std::unique_ptr<Subject>> makePlanSubject(const Driver &driver, CUdevice device,
                                                               CUmodule module,
                                                               const kernel::ResolvedPlan &plan,
                                                               std::vector<AddressSet> sets);

/// cuBLAS "gemm_nt": out[m, n] = a[m, k] · b[n, k]ᵀ in bf16 with fp32 accumulation, "gemm_nn": b is [k, n]; roles a, b, out; sizes m, n, k,
/// and for several of them batch (gemmcall.h).
[[nodiscard]] Result<std::unique_ptr<Subject>> makeCublasSubject(const ReferenceCall &call,
                                                                 std::vector<AddressSet> sets);

} // namespace klineage::gate::cuda
