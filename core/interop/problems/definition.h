// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace klineage::interop {

/// An axis of a definition of the FlashInfer Trace format.
struct DefinitionAxis {
    enum class Kind { Constant, Variable, Expression };
    std::string name;
    Kind kind = Kind::Variable;
    std::int64_t value = 0; ///< Constant
    std::string expression; ///< Expression, a dialect's: over other axes, with Python's operators
};

/// An input or output. Without a shape it is a plain number.
struct DefinitionTensor {
    std::string name;
    std::optional<std::vector<std::string>> shape; ///< names of axes
    std::string dtype;                             ///< as it stands there: "bfloat16"
    std::string description;
};

/// An operator as FlashInfer Trace and SOL-ExecBench define it.
struct Definition {
    std::string name;
    std::string description;
    std::string reference;    ///< Python with a function run(inputs in order)
    std::string customInputs; ///< a dialect's function that makes the inputs; empty: none
    std::vector<DefinitionAxis> axes;
    std::vector<DefinitionTensor> inputs;
    std::vector<DefinitionTensor> outputs;
    std::vector<std::string> constraints;
    std::vector<std::string> unread; ///< keys that nothing here stands for
};

/// Where the content of an input comes from.
struct InputSource {
    std::string type;                 ///< "random", "scalar", "safetensors", "custom"
    std::optional<std::string> value; ///< of a scalar, as JSON
};

/// One shape of a definition: a line of a file of workloads or traces.
struct Binding {
    std::string definition; ///< empty: the line does not say of which
    std::string uuid;
    std::map<std::string, std::int64_t> axes;
    std::map<std::string, InputSource> inputs;
};

inline constexpr std::size_t maxDefinitionBytes = std::size_t{4} << 20;

/// Whether a JSON text looks like a definition at all: an object with axes, inputs and outputs.
[[nodiscard]] bool looksLikeDefinition(std::string_view text);
/// Every text, count and number has a limit. Errors are one sentence that names the key.
[[nodiscard]] Result<Definition> parseDefinition(std::string_view text, const std::string &where);
/// A workload, or a trace that has one.
[[nodiscard]] Result<Binding> parseBinding(std::string_view line, const std::string &where);

} // namespace klineage::interop
