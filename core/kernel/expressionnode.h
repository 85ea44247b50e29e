// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernel/expression.h"

#include <vector>

namespace klineage::kernel {

enum class Operation {
    Constant,
    Name,
    Negate,
    Not,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Equal,
    NotEqual,
    And,
    Or,
    Choose,
    CeilDiv,
    RoundUp,
    Min,
    Max,
    Abs,
    Sqrt,
    Rsqrt,
    Log2,
    Pow2Ceil,
};

/// Internal to Expression: a node of its syntax tree.
struct Expression::Node {
    Operation operation = Operation::Constant;
    Value constant = std::int64_t{0};
    std::string name;
    int column = 1; ///< of the operator, name or literal, from 1
    std::vector<std::shared_ptr<const Node>> operands;
};

/// Column and words of a problem inside an expression.
struct ExpressionProblem {
    int column = 1;
    std::string message;
};

/// "column 5 of 'M / BM': division by zero."
[[nodiscard]] Error expressionError(const std::string &text, const ExpressionProblem &problem);

/// Limits: Expression::parse. The tree is as deep as its nesting plus the longest chain of operators.
[[nodiscard]] tl::expected<std::shared_ptr<const Expression::Node>, ExpressionProblem> parseExpression(
    std::string_view text);

[[nodiscard]] tl::expected<Value, ExpressionProblem> evaluateNode(const Expression::Node &node,
                                                                  const Bindings &bindings);

} // namespace klineage::kernel
