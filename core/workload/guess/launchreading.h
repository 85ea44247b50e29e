// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernel/outline/hostcode.h"
#include "core/workload/workload.h"

#include <map>
#include <optional>
#include <string>

/// Internal to guessPlan(): expressions of host code as expressions of a plan.
namespace klineage::workload {

/// What an argument of a launch names: "x" of x.data_ptr<float>(), (float *)d_x or thrust::raw_pointer_cast(x.data()); empty: nothing.
[[nodiscard]] std::string nameOfHostArgument(std::string_view argument);
/// Without what hosts put around the names of device memory: "A" of d_A, A_dev, gpuA.
[[nodiscard]] std::string plainHostName(std::string_view name);

class HostExpressions
{
public:
    HostExpressions(const kernel::HostLaunch &launch, const Workload &workload)
        : m_launch(launch)
        , m_workload(workload)
    {}

    /// What a name of the host is, because the kernel's argument says it.
    void know(const std::string &name, const std::string &planExpression) { m_known[name] = planExpression; }
    /// The same of a name that nothing is known of.
    void suppose(const std::string &name, const std::string &planExpression)
    {
        m_known.try_emplace(name, planExpression);
    }
    void knowTensor(const std::string &name, const std::string &tensor) { m_tensors[name] = tensor; }

    /// Nothing when it names what neither the workload, the host's constants nor what is known says, or uses what a plan has no sign for;
    /// missing() has the name then. Names are followed 8 deep, a result has at most 1,000 characters.
    [[nodiscard]] std::optional<std::string> planExpression(const std::string &text);
    [[nodiscard]] const std::string &missing() const { return m_missing; }

private:
    friend class HostExpressionReader;

    const kernel::HostLaunch &m_launch;
    const Workload &m_workload;
    std::map<std::string, std::string, std::less<>> m_known;
    std::map<std::string, std::string, std::less<>> m_tensors;
    std::string m_missing;
};

} // namespace klineage::workload
