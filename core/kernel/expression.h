// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <variant>

namespace klineage::kernel {

/// The value of an expression: an exact 64-bit integer or a double.
using Value = std::variant<std::int64_t, double>;

/// Names an expression may use: axes, tunables and device facts.
using Bindings = std::map<std::string, Value, std::less<>>;

/// A parsed arithmetic expression over shape names, tunables and device facts, such as "ceil_div(M, BM)".
/// Grammar and functions: core/kernel/README.md, "Candidate file". Immutable and cheap to copy; thread-safe.
class Expression
{
public:
    struct Node;

    Expression(); ///< the constant 0
    explicit Expression(std::int64_t constant);

    /// Parses text (at most 1,000 characters, nesting at most 64). The error message carries the column.
    [[nodiscard]] static Result<Expression> parse(std::string_view text);

    /// Fails on an unknown name, overflow, a division by zero or a non-finite result.
    [[nodiscard]] Result<Value> evaluate(const Bindings &bindings) const;
    /// As evaluate(), but the value must be a whole number.
    [[nodiscard]] Result<std::int64_t> evaluateInteger(const Bindings &bindings) const;
    [[nodiscard]] Result<double> evaluateReal(const Bindings &bindings) const;

    /// The names the expression uses.
    [[nodiscard]] std::set<std::string> names() const;
    /// The text it was parsed from, unchanged.
    [[nodiscard]] const std::string &text() const { return m_text; }

    friend bool operator==(const Expression &a, const Expression &b) { return a.m_text == b.m_text; }

private:
    std::string m_text;
    std::shared_ptr<const Node> m_root;
};

} // namespace klineage::kernel
