// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/files/jsontext.h"
#include "core/workload/workload.h"

namespace klineage::interop {

/// An axis of a definition, by what it is here.
struct DatasetAxis {
    std::string name;
    kernel::Expression extent; ///< over the workload's axes
    std::optional<std::int64_t>
        constant; ///< its value in every case that the definition holds for; none: "var"
};

/// A workload as an operator of FlashInfer Trace.
struct DatasetDefinition {
    std::string name;
    std::string opType; ///< its folder: the oracle's name, or the workload's where that is in Python
    std::vector<DatasetAxis> axes;
    files::OrderedJson json;
    std::vector<std::string> lost; ///< what of the workload the format cannot say, whole sentences
};

/// Axes that differ between cases are variable, those that no input has are constant with the timed value; an extent that is an expression
/// becomes an axis of its own, tied by a constraint. Error: a type or an operator that the format cannot say, one sentence.
[[nodiscard]] Result<DatasetDefinition> datasetDefinitionOf(const workload::Workload &workload);

/// A text of a data set, by its path below the data set's folder.
struct DatasetFile {
    std::string path;
    std::string text;
};

/// An object of a data set with the files that it names.
struct DatasetLine {
    files::OrderedJson json;
    std::vector<DatasetFile> files;
};

/// A case without drawn axes as {"uuid", "axes", "inputs"}: the same each time. Integers that are the same in each trial are a file, all
/// else is random. The error's message is why the format cannot say it, a phrase that follows "N trials are left out: ".
[[nodiscard]] Result<DatasetLine> datasetWorkloadOf(const DatasetDefinition &definition,
                                                    const workload::Workload &workload,
                                                    const workload::Case &c);

} // namespace klineage::interop
