// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/interop/problems/draft.h"

#include <stop_token>

namespace klineage::interop {

/// What the head of a Python function does not say, or says otherwise.
struct FunctionOptions {
    std::string function = "run";
    std::vector<std::string> inputs;           ///< "x=f32[R, C]": in place of annotations
    std::vector<std::string> outputs;          ///< the same, in the order in which they are returned
    std::map<std::string, std::string> values; ///< sizes of axes, and numbers in place of defaults
    std::string flops; ///< an expression over the axes; empty: one for each element of an output
};

/// A tensor as a text says it: "f32[R, 2 * C]", "bf16[R, 128]", perhaps with a name before it, "y: f32[R]" or "y=f32[R]".
struct TensorText {
    std::string name;
    std::string dtype; ///< the workload's word
    std::vector<std::string> shape;
};
[[nodiscard]] Result<TensorText> parseTensorText(std::string_view text);

/// A function as a workload: its source runs in a confined process that says its parameters; those annotated with a tensor's text are
/// inputs, those with a number as default are numbers, what it returns is annotated alike (several: a tuple of texts). The docstring
/// becomes the description. Errors: InvalidInput, a sentence that names the parameter; Unavailable, without what the source imports.
[[nodiscard]] Result<Draft> draftOfFunction(const std::string &name, const std::string &source,
                                            const FunctionOptions &options, const std::stop_token &stop);

/// The same from what the process said, as JSON. Pure.
[[nodiscard]] Result<Draft> draftOfSignature(const std::string &name, const std::string &source,
                                             const std::string &signature, const FunctionOptions &options);

} // namespace klineage::interop
