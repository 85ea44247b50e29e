// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/rawbytes.h"

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace klineage::gate {

/// Expected values, row-major, in double; or rounded to single precision, where half the memory is worth an error of 2^-24 of each.
class ExpectedView
{
public:
    // NOLINTBEGIN(google-explicit-constructor)
    ExpectedView(std::span<const double> values)
        : m_wide(values)
    {}
    ExpectedView(std::span<const float> values)
        : m_narrow(values)
    {}
    ExpectedView(const std::vector<double> &values)
        : m_wide(values)
    {}
    ExpectedView(const RawVector<float> &values)
        : m_narrow(values)
    {}
    // NOLINTEND(google-explicit-constructor)

    [[nodiscard]] std::size_t size() const { return m_wide.size() + m_narrow.size(); }
    [[nodiscard]] bool empty() const { return size() == 0; }
    [[nodiscard]] double operator[](std::size_t i) const
    {
        return m_narrow.empty() ? m_wide[i] : static_cast<double>(m_narrow[i]);
    }
    [[nodiscard]] ExpectedView first(std::size_t count) const
    {
        return m_narrow.empty() ? ExpectedView(m_wide.first(count)) : ExpectedView(m_narrow.first(count));
    }

private:
    std::span<const double> m_wide; ///< one of them is empty
    std::span<const float> m_narrow;
};

/// The values themselves.
class ExpectedValues
{
public:
    ExpectedValues() = default;
    // NOLINTBEGIN(google-explicit-constructor)
    ExpectedValues(std::vector<double> values)
        : m_values(std::move(values))
    {}
    ExpectedValues(RawVector<float> values)
        : m_values(std::move(values))
    {}
    operator ExpectedView() const
    {
        return std::visit([](const auto &values) { return ExpectedView(values); }, m_values);
    }
    // NOLINTEND(google-explicit-constructor)
    [[nodiscard]] std::size_t size() const { return ExpectedView(*this).size(); }
    [[nodiscard]] double operator[](std::size_t i) const { return ExpectedView(*this)[i]; }
    /// Empty when they are in single precision.
    [[nodiscard]] const std::vector<double> &doubles() const
    {
        static const std::vector<double> none;
        const auto *values = std::get_if<std::vector<double>>(&m_values);
        return values ? *values : none;
    }

private:
    std::variant<std::vector<double>, RawVector<float>> m_values;
};

class DeviceContent;

/// Expected outputs by tensor name, as they are compared.
struct ExpectedOutputs : std::map<std::string, ExpectedValues> {
    using std::map<std::string, ExpectedValues>::map;
    /// Where they lie on the device too, with the inputs; or nothing.
    std::shared_ptr<const DeviceContent> onDevice;
};

} // namespace klineage::gate
