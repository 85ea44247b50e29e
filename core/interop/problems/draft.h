// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/interop/problems/definition.h"
#include "core/workload/workload.h"

namespace klineage::interop {

/// A workload that was made of somebody else's problem, before anything of it has run.
struct Draft {
    workload::Workload workload;    ///< the oracle's source is in it; its first case is timed
    std::vector<std::string> notes; ///< what was left out or chosen, whole sentences
};

struct DraftOptions {
    std::map<std::string, std::string>
        values; ///< of axes and scalars, in place of the bindings' ("M" -> "512", "eps" -> "1e-6")
    std::size_t shapes = 3; ///< of the bindings that become cases; at least 1
    bool isCounted = false; ///< the caller says the operations: no note of them
};

/// A word for a folder from any name: lower-case letters, digits, '_' and '-', at most 64; "problem" when nothing is left.
[[nodiscard]] std::string slugOf(const std::string &name);

/// The definition as a workload. Timed is the largest of its bindings whose tensors have at most 256 MiB, or else the smallest one; the
/// reference is handed torch tensors, numpy arrays or lists, as `arrays` says. Unavailable content (files, custom inputs, integers whose range
/// nobody says), types and shapes that workload.toml cannot say are an Error, a sentence that names them. Pure.
[[nodiscard]] Result<Draft> draftOf(const Definition &definition, const std::vector<Binding> &bindings,
                                    const DraftOptions &options);

/// Adds a copy of the case, named "spread", in which rows of the inputs that it takes are of very different scale; nothing where the
/// case would say nothing of its inputs.
void addSpreadCase(workload::Workload &workload, workload::Case spread,
                   bool (*takes)(const workload::Tensor &));

/// Sets what nobody has counted: 'bytes' to all tensors once, 'flops' to one for each element of an output. The message of an Error has no
/// full stop.
[[nodiscard]] Status countWork(workload::Workload &workload);

/// What `precision = "double"` and the arrays of a Python text can be, best first: torch or numpy where it imports them.
[[nodiscard]] std::vector<workload::PythonArrays> arraysOf(const std::string &source);

} // namespace klineage::interop
